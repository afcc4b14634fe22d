"""Points that stay, fresh ones at every step, and adaptive ones: the same numbers of points and steps.

    python -m benchmarks.points                                    # docs/points.md has a part of it
    python -m benchmarks.points --problems burgers --ways fixed adaptive --seeds 1

All points of a problem move, or none. Printed are, for all seeds, the relative L² errors and the losses after the last
step, the number of runs that ended with the warning of exhausted points, and the seconds of the processor for all.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng
from benchmarks import tables
from benchmarks.tables import short
from natgrad.zoo import _reference, _shock, burgers

WAYS = {
    "fixed": {},
    "fresh": {"fresh": True},
    "adaptive": {"adaptive": ng.ByResidual()},
    "adaptive, every 20": {"adaptive": ng.ByResidual(every=20)},
}
SPEED = 80.0


def burgers_shock(key, moves, layered=False):
    """ν = 0.01/π: a shock at x = 0; `layered` points are crowded there by hand."""
    net, inside, rim, start = jax.random.split(key, 4)

    def residual(u, z):
        value, (u_t, u_x), u_xx = ng.value_gradient_laplacian(u, z, dims=1)
        return u_t + value * u_x - burgers.NU * u_xx

    domain = burgers.DOMAIN
    points = _shock.layered(900, inside) if layered else domain.interior(900, key=inside, **moves)
    return ng.LeastSquares(
        ng.MLP(2, 1, 16, 2, key=net),
        pde=ng.Residual(residual, points),
        boundary=ng.Residual(lambda u, z: u(z), domain.boundary(80, key=rim, **moves), weight=10),
        initial=ng.Residual(
            lambda u, z: u(z) + jnp.sin(jnp.pi * z[1]), domain.initial(80, key=start, **moves), weight=10
        ),
        exact=_reference.burgers(burgers.NU),
        evaluation=domain.interior(9_000, key=jax.random.key(1_000)),
    )


def allen_cahn(key, moves):
    """u_t = 10⁻³ u_xx + 5 (u − u³), periodic, from −cos πx."""
    net, inside, start = jax.random.split(key, 3)
    domain = ng.Interval(0, 1) * ng.Box([-1], [1])

    def residual(u, z):
        value, (u_t, _), u_xx = ng.value_gradient_laplacian(u, z, dims=1)
        return u_t - 1e-3 * u_xx - 5 * (value - value**3)

    return ng.LeastSquares(
        ng.Periodic(ng.MLP(3, 1, 16, 2, key=net), periods=(None, 2.0)),
        pde=ng.Residual(residual, domain.interior(600, key=inside, **moves)),
        initial=ng.Residual(
            lambda u, z: u(z) + jnp.cos(jnp.pi * z[1]), domain.initial(100, key=start, **moves), weight=10
        ),
        exact=_reference.allen_cahn(1e-3, 5.0),
    )


def advection(key, moves):
    """u_t + 80 u_x = 0, periodic, from sin x."""
    net, inside, start = jax.random.split(key, 3)
    domain = ng.Interval(0, 1) * ng.Box([0], [2 * np.pi])
    return ng.LeastSquares(
        ng.Periodic(ng.MLP(3, 1, 20, 2, activation=jnp.sin, key=net), periods=(None, 2 * np.pi)),
        pde=ng.Residual(
            lambda u, z: ng.gradient(u, z) @ jnp.array([1.0, SPEED]), domain.interior(800, key=inside, **moves)
        ),
        initial=ng.Residual(lambda u, z: u(z) - jnp.sin(z[1]), domain.initial(100, key=start, **moves), weight=1_000),
        exact=lambda z: jnp.sin(z[1] - SPEED * z[0]),
    )


def poisson3d(key, moves):
    """A smooth solution: Π sin πxᵢ in the cube."""
    net, inside, rim = jax.random.split(key, 3)
    cube, exact = ng.Box([0] * 3, [1] * 3), lambda x: jnp.prod(jnp.sin(jnp.pi * x))
    return ng.LeastSquares(
        ng.MLP(3, 1, 16, 2, key=net),
        pde=ng.Residual(
            lambda u, x: ng.laplacian(u, x) + 3 * jnp.pi**2 * exact(x), cube.interior(600, key=inside, **moves)
        ),
        boundary=ng.Residual(lambda u, x: u(x), cube.boundary(240, key=rim, **moves)),
        exact=exact,
    )


def energy(key, moves):
    """½|∇u|² − fu in the square, u = 0 on its boundary by the network; the quadrature is Monte Carlo."""
    net, inside = jax.random.split(key)
    square, exact = ng.Box([0, 0], [1, 1]), lambda x: jnp.prod(jnp.sin(jnp.pi * x))
    density = lambda u, x: 0.5 * jnp.sum(ng.gradient(u, x) ** 2) - 2 * jnp.pi**2 * exact(x) * u(x)
    return ng.EnergyMinimization(
        ng.HardBoundary(ng.MLP(2, 1, 12, 2, key=net), lambda x: 16 * jnp.prod(x * (1 - x))),
        inside=ng.Energy(density, square.interior(600, key=inside, **moves), metric=ng.metrics.EnergyNorm()),
        exact=exact,
    )


PROBLEMS = {
    "burgers": (burgers_shock, 150),
    "burgers, layered": (lambda key, moves: burgers_shock(key, moves, layered=True), 150),
    "allen_cahn": (allen_cahn, 120),
    "advection": (advection, 150),
    "poisson3d": (poisson3d, 60),
    "energy": (energy, 40),
}

HEAD = ("problem", "points", "relative L² errors", "losses", "warned", "processor s")
POSSIBLE = {"burgers, layered": ("fixed",), "energy": ("fixed", "fresh")}


def measure(problem, way, seeds):
    """The solutions of all seeds, and the processor's seconds."""
    build, steps = PROBLEMS[problem]
    problems = [build(jax.random.key(seed), WAYS[way]) for seed in range(seeds)]
    started = time.process_time()
    solver = ng.NystromNGD(max_rank=300)
    return ng.solve_many(problems, solver, steps, evaluate_every=steps, progress=False), time.process_time() - started


def rows(args):
    """One for each problem and way."""
    for problem in args.problems:
        for way in [way for way in args.ways if way in POSSIBLE.get(problem, WAYS)]:
            solutions, seconds = measure(problem, way, args.seeds)
            errors = " · ".join(short(s.errors["l2"]) for s in solutions)
            losses = " · ".join(short(s.loss, 0) for s in solutions)
            warned = sum("exhausted" in sentence for s in solutions for sentence in s.diagnosis)
            yield problem, way, errors, losses, str(warned), f"{seconds:.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--seeds", type=int, default=3)
    tables.option(parser)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    tables.show(HEAD, rows(args), args.keep)


if __name__ == "__main__":
    main()
