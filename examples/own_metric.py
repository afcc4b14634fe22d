"""An energy with a metric of your own: −Δu + u³ = f as a minimization, in the metric of its second derivative.

E(u) = ∫ ½|∇u|² + ¼u⁴ − fu, and E''(u)(v, w) = ∫ ∇v·∇w + 3u² vw = ∫ F_u v · F_u w with F_u v = (∇v, √3 u v).
The u in F_u is frozen: the library differentiates v alone. (This metric also has a name: ng.metrics.NewtonCubic().)
"""

import argparse

import jax
import jax.numpy as jnp

import natgrad as ng

jax.config.update("jax_enable_x64", True)


def exact(x):
    return 2 * jnp.prod(jnp.sin(jnp.pi * x))


def f(x):
    return 2 * jnp.pi**2 * exact(x) + exact(x) ** 3


def energy(u, x):
    return 0.5 * jnp.sum(ng.gradient(u, x) ** 2) + 0.25 * u(x) ** 4 - f(x) * u(x)


def change(u, new, x):
    """energy(new, x) − energy(u, x), in powers of the difference, so that nothing cancels near the minimum."""
    a, d = u(x), new(x) - u(x)
    g, h = ng.gradient(u, x), ng.gradient(new, x) - ng.gradient(u, x)
    return g @ h + 0.5 * h @ h + d * (a**3 + 1.5 * a**2 * d + a * d**2 + 0.25 * d**3) - f(x) * d


def main(steps):
    metric = ng.Metric(lambda u, v, x: jnp.append(ng.gradient(v, x), jnp.sqrt(3) * u(x) * v(x)))
    network = ng.HardBoundary(
        ng.MLP(in_size=2, out_size=1, width=16, depth=2, key=jax.random.key(0)),
        distance=lambda x: jnp.prod(x * (1 - x)),
    )
    points = ng.Box([0, 0], [1, 1]).interior(900, rule="gauss")
    problem = ng.EnergyMinimization(
        network, interior=ng.Energy(energy, points, metric=metric, difference=change), exact=exact
    )
    solution = ng.solve(problem, ng.NystromNGD(max_rank=150), steps=steps)
    print(f"relative H¹ error {solution.errors['h1']:.2e}, energy {solution.loss:.10f}")
    return solution.errors["h1"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    assert main(parser.parse_args().steps) < 1e-4
