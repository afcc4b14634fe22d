"""How fast a rule for μ is, and whether it is safe: errors along the way on many problems and seeds.

    python -m benchmarks.damping small [--seeds 0:3] [--jobs 2] [--damping EXPRESSION] [--out results.json]
    python -m benchmarks.damping paper --jobs 4                      # on a GPU
    python -m benchmarks.damping helmholtz_66 burgers_shock --steps 250

`small` stands for the small presets of the zoo, `paper` for the five problems of the paper, NAME:PRESET for one; the
last two are of the field, with a plain tanh network of 3×64. The solver is `ng.NystromNGD` with the preset's options,
and `--damping` an expression in ng, the default's otherwise. A row has the final errors of all seeds, the steps to the
error of the paper or to twice what the preset states, and the share of short steps. One process runs one case.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng
from benchmarks.cases import run_all
from benchmarks.machine import description
from natgrad import zoo
from natgrad.calculus import value_gradient_laplacian
from natgrad.experiment.config import keys
from natgrad.zoo import _reference
from natgrad.zoo._shock import layered
from natgrad.zoo.burgers import NU

PAPER = {"poisson3d": 1.6e-6, "heat3d": 1.8e-6, "kovasznay": 5.5e-7, "deepritz2d": 1.6e-5, "drt2d": 6.6e-5}
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
EVERY = 5  # steps between two evaluations of the error


def helmholtz_66(key: Any) -> ng.LeastSquares:
    """Δu + u = f with u = sin 6πx sin 6πy."""
    net, inside, rim = jax.random.split(key, 3)
    square, a = ng.Box([0, 0], [1, 1]), 6 * math.pi
    exact = lambda x: jnp.sin(a * x[0]) * jnp.sin(a * x[1])
    return ng.LeastSquares(
        ng.MLP(2, 1, 64, 3, key=net),
        pde=ng.Residual(
            lambda u, x: ng.laplacian(u, x) + u(x) + (2 * a**2 - 1) * exact(x), square.interior(10_000, key=inside)
        ),
        boundary=ng.Residual(lambda u, x: u(x), square.boundary(800, key=rim), weight=100),
        exact=exact,
    )


def burgers_shock(key: Any) -> ng.LeastSquares:
    """Burgers' equation with ν = 0.01/π, exact initial and boundary values, half of the points at the shock."""
    net, inside, others = jax.random.split(key, 3)

    def burgers(u, z):
        value, (u_t, u_x), u_xx = value_gradient_laplacian(u, z, dims=1)
        return u_t + value * u_x - NU * u_xx

    network = ng.HardBoundary(
        ng.MLP(2, 1, 64, 3, key=net),
        distance=lambda z: z[0] * (1 - z[1] ** 2),
        lift=lambda z: -jnp.sin(jnp.pi * z[1]),
    )
    return ng.LeastSquares(
        network,
        pde=ng.Residual(burgers, layered(10_500, inside)),
        exact=_reference.burgers(NU),
        evaluation=layered(50_000, others, "monte-carlo"),
    )


FIELD = {"helmholtz_66": (helmholtz_66, 150, 1e-4), "burgers_shock": (burgers_shock, 250, 3e-8)}


def prepare(case: dict[str, Any]) -> tuple[Any, dict[str, Any], str, int, float | None]:
    """Problem, options of the solver, norm, steps, and the error to count the steps to."""
    name, _, preset = case["case"].partition(":")
    key = keys(case["seed"]).problem
    if name in FIELD:
        build, steps, target = FIELD[name]
        return build(key), {}, "l2", steps, target
    benchmark = zoo.get(name)
    chosen = benchmark.preset(preset)
    steps, target = (100, PAPER[name]) if preset == "paper" else (chosen.steps["ngd"], chosen.error)
    return benchmark.problem(key, preset), dict(chosen.solver), benchmark.norm, steps, target


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Trains one case."""
    problem, options, norm, steps, target = prepare(case)
    damping = {"damping": eval(case["damping"], {"ng": ng})} if case["damping"] else {}
    solution = ng.solve(
        problem, ng.NystromNGD(**options, **damping), case["steps"] or steps, key=keys(case["seed"]).solver,
        evaluate_every=EVERY, progress=False,
    )  # fmt: skip
    history = solution.history
    errors = history.errors[norm]
    reached = [int(step) for step, error in zip(history.step, errors, strict=True) if target and error <= target]
    return {
        **case,
        "error": solution.errors[norm],
        "target": target,
        "reached": reached[0] if reached else None,
        "short": float(np.mean(history.step_size < 0.2)),
        "status": solution.status,
        "diagnosis": list(solution.diagnosis),
        "seconds": solution.time,
        "taken": len(history),
    }


def table(results: list[dict[str, Any]]) -> str:
    """One row per case, seeds in order."""
    lines = ["| case | steps | errors | steps to | of error | short steps |", "|---" * 6 + "|"]
    for name in dict.fromkeys(r["case"] for r in results):
        good = [r for r in results if r["case"] == name and "error" in r]
        if not good:
            lines.append(f"| {name} | failed |" + " |" * 4)
            continue
        errors = ", ".join(f"{r['error']:.1e}" for r in good)
        reached = ", ".join("–" if r["reached"] is None else str(r["reached"]) for r in good)
        short = np.mean([r["short"] for r in good])
        lines.append(f"| {name} | {good[0]['taken']} | {errors} | {reached} | {good[0]['target']} | {short:.0%} |")
    return "\n".join(lines)


def main() -> None:
    """Runs all cases, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=["small"])
    parser.add_argument("--seeds", default="0:3", help="first:end")
    parser.add_argument("--steps", type=int, default=None, help="by default the preset's, 100 for paper")
    parser.add_argument("--damping", default="", help="an expression in ng; the default's otherwise")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--out", type=Path, default=None, help="a file for the results")
    parser.add_argument("--case", type=json.loads, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if options.case is not None:
        print(json.dumps(run(options.case)))
        return
    groups = {"small": [f"{n}:small" for n in zoo.names()], "paper": [f"{n}:paper" for n in PAPER]}
    names = [name for group in options.cases for name in groups.get(group, [group])]
    seeds = range(*map(int, options.seeds.split(":")))
    common = {"damping": options.damping, "steps": options.steps}
    cases = [{"case": name, "seed": seed, **common} for name in names for seed in seeds]
    results = run_all("benchmarks.damping", cases, options.jobs, options.out, ALONE)
    print(f"{options.damping or 'the default damping'}; {description()}\n{table(results)}")


if __name__ == "__main__":
    main()
