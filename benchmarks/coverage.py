"""How often the 95 % interval of an unknown covers the truth, over draws of the noise.

    python -m benchmarks.coverage                        # 100 draws with 2 % noise
    python -m benchmarks.coverage --noise 0.1 --seed 1

ν of u_t = ν u_xx, from 40 measurements. The network is tiny (106 parameters with ν), one program trains all draws
(`ng.solve_many`). The interval is ν ± 1.96 std of `ng.uncertainty`. With 100 draws a right one covers 95 ± 2.2 of them.
"""

import argparse
import math

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng

NU, SENSORS, WEIGHT = 0.1, 40, 1e6


def exact(z):
    return jnp.exp(-NU * jnp.pi**2 * z[0]) * jnp.sin(jnp.pi * z[1])


def heat(net, z):
    return ng.partial(net.u, z, 0) - net.nu.value * ng.partial(net.u, z, 1, 1)


def misfit(net, z, value):
    return net.u(z) - value


def distance(z):
    return z[0] * z[1] * (1 - z[1])


def lift(z):
    return jnp.sin(jnp.pi * z[1])


def problems(draws: int, noise: float, seed: int) -> list[ng.LeastSquares]:
    """One for each draw of the noise; the network, the sensors and the points are those of all."""
    network, spots, errors = jax.random.split(jax.random.key(seed), 3)
    domain = ng.Interval(0, 1) * ng.Box([0], [1])
    sensors, inside = domain.interior(SENSORS, key=spots), domain.interior(625, rule="gauss")
    u = ng.HardBoundary(ng.MLP(2, 1, width=8, depth=2, key=network), distance, lift)
    net = ng.Fields(u=u, nu=ng.Unknown(0.2, positive=True))
    measured = jax.vmap(exact)(sensors.x) + noise * jax.random.normal(errors, (draws, SENSORS))
    return [
        ng.LeastSquares(
            net,
            pde=ng.Residual(heat, inside, weight=WEIGHT),
            data=ng.Residual(misfit, sensors, data=values, noise=noise),
        )
        for values in measured
    ]


def formula(problem: ng.LeastSquares, noise: float) -> float:
    """The standard deviation where the equation holds exactly: σ / ‖∂u/∂ν‖ at the sensors."""
    t, x = np.asarray(problem.features[1].inputs[0]).T
    slope = -(np.pi**2) * t * np.exp(-NU * np.pi**2 * t) * np.sin(np.pi * x)
    return noise / float(np.linalg.norm(slope))


def study(draws: int = 100, noise: float = 0.02, seed: int = 0, steps: int = 100) -> dict[str, float]:
    """How often the interval covers, and what ν, its standard deviation and χ²/n are over the draws."""
    many = problems(draws, noise, seed)
    solutions = ng.solve_many(many, ng.FullNGD(), steps, evaluate_every=steps, progress=False)
    found = np.array([float(s.u.nu.value) for s in solutions])
    std = np.array([float(ng.uncertainty(*pair).std("nu")) for pair in zip(many, solutions, strict=True)])
    chi2 = [2 * float(p.losses(s.params)["data"]) / SENSORS for p, s in zip(many, solutions, strict=True)]
    return {
        "draws": draws, "covered": int(np.sum(np.abs(found - NU) <= 1.96 * std)), "mean": found.mean(),
        "spread": found.std(ddof=1), "std": float(np.median(std)), "formula": formula(many[0], noise),
        "chi2": float(np.median(chi2)), "chi2 least": min(chi2), "chi2 most": max(chi2),
        "parameters": many[0].num_parameters, "steps": sum(s.steps for s in solutions),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--noise", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    it = study(args.draws, args.noise, args.seed, args.steps)
    print(f"{args.draws} draws, {args.noise:.0%} noise, seed {args.seed}, {it['parameters']} parameters")
    print(f"the 95 % interval covers ν       {it['covered']} of {args.draws}")
    print(f"ν                                {it['mean']:.5f}, spread {it['spread']:.5f}")
    print(f"standard deviation               median {it['std']:.5f}, formula {it['formula']:.5f}")
    print(f"χ²/n                             median {it['chi2']:.2f}, {it['chi2 least']:.2f} to {it['chi2 most']:.2f}")
    print(f"steps                            {it['steps']}")
    low, high = math.floor(0.9 * args.draws), math.ceil(0.99 * args.draws)
    if not low <= it["covered"] <= high:
        raise SystemExit(f"the interval covers {it['covered']} of {args.draws}: {low} to {high} were expected")


if __name__ == "__main__":
    main()
