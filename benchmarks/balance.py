"""Weights found in training against weights by hand: the least-squares problems of the zoo, small presets.

    python -m benchmarks.balance [PROBLEM …] [--seeds 0:3] [--scales 1,1e3,1e-3] [--every 20] [--jobs 8]
                                 [--rules preset,ones,auto] [--out balance.json] [--solver EXPRESSION]

`preset` has the weights of the preset, `ones` the weight 1 in all blocks; `auto` balances all blocks by
`natgrad.optim.balance`, every so many steps (`auto@5`: every 5). `--scales`
multiply the residual of the block `boundary` (or of the last one): what a wrong choice of units does. A case is a
process of its own, on one core; `--out` is rewritten after each, and cases that are in it already are not run again.
"""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import run_all

PROBLEMS = (
    "allen_cahn", "heat3d", "helmholtz2d", "inverse_poisson", "kovasznay", "poisson3d", "poisson_nd",
    "stokes2d",
)  # fmt: skip
SOFT = {"helmholtz2d": {"boundary": 300}}  # what makes a block of boundary values that the preset has built in
SOLVER = "ng.NystromNGD(**preset)"
ALONE = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_ENABLE_X64": "1",
}


@dataclass(frozen=True)
class Times:
    """A residual in other units."""

    evaluate: Any
    factor: float

    def __call__(self, *args: Any) -> Any:
        return self.factor * self.evaluate(*args)


def one(case: dict[str, Any]) -> dict[str, Any]:
    """Trains a case; errors, the steps to the preset's error, and the last weights."""
    import equinox as eqx
    import jax

    import natgrad as ng
    from natgrad import zoo

    benchmark = zoo.get(case["problem"])
    chosen = benchmark.preset("small")
    problem: Any = benchmark.problem(jax.random.key(case["seed"]), "small", **SOFT.get(case["problem"], {}))
    names = [block.name for block in problem.features]
    target = names.index("boundary") if "boundary" in names else len(names) - 1
    rule, _, every = case["rule"].partition("@")
    if rule != "preset":
        problem = problem.with_weights(np.ones(len(names)))
    blocks = [
        dataclasses.replace(
            block,
            evaluate=Times(block.evaluate, case["scale"]) if i == target else block.evaluate,
            auto=rule not in ("preset", "ones") and i > 0,
        )
        for i, block in enumerate(problem.features)
    ]
    problem = eqx.tree_at(lambda p: p.features, problem, tuple(blocks))
    solver = eval(case["solver"], {"ng": ng, "preset": dict(chosen.solver)})
    if problem.auto:
        solver = ng.Balanced(solver, every=int(every or case["every"]))
    steps = case["steps"] or chosen.steps["ngd"]
    key = jax.random.fold_in(jax.random.key(case["seed"]), 1)
    solution = ng.solve(problem, solver, steps, key=key, evaluate_every=2, progress=False)
    errors = solution.history.errors[benchmark.norm]
    reached = np.nonzero(errors <= (chosen.error or 0.0))[0]
    return case | {
        "error": solution.errors[benchmark.norm],
        "best": float(np.nanmin(errors)),
        "reached": int(reached[0]) + 1 if len(reached) else None,
        "target": chosen.error,
        "ended": solution.steps,
        "status": solution.status,
        "seconds": solution.time,
        "weights": {name: [float(v[0]), float(v[-1])] for name, v in solution.history.weights.items()},
    }


def table(rows: Sequence[dict[str, Any]], rules: Sequence[str]) -> str:
    """Medians over seeds: the final error, and the steps to the preset's error where half of the seeds come to it."""
    lines = ["| problem | boundary × | " + " | ".join(rules) + " |", "|" + "---|" * (len(rules) + 2)]
    for problem, scale in dict.fromkeys((row["problem"], row["scale"]) for row in sorted(rows, key=_order)):
        cells = []
        for rule in rules:
            found = [r for r in rows if (r["problem"], r["scale"], r["rule"]) == (problem, scale, rule)]
            good = [row for row in found if "error" in row]
            steps = (
                np.median([np.inf if row["reached"] is None else row["reached"] for row in good]) if good else np.inf
            )
            cell = f"{np.median([row['error'] for row in good]):.1e}" if good else "failed"
            cells.append(cell + (f" ({steps:.0f})" if np.isfinite(steps) else ""))
        lines.append(f"| {problem} | {scale:g} | " + " | ".join(cells) + " |")
    means = []
    for rule in rules:
        logs = [np.log(row["error"]) for row in rows if row["rule"] == rule and "error" in row]
        means.append(f"{np.exp(np.mean(logs)):.1e}" if logs else "")
    return "\n".join([*lines, "| geometric mean | | " + " | ".join(means) + " |"])


def _order(row: dict[str, Any]) -> tuple[str, float]:
    return row["problem"], abs(np.log(row["scale"]))


def seeds(text: str) -> list[int]:
    """`0:3` or `0,2`."""
    first, colon, last = text.partition(":")
    return list(range(int(first), int(last))) if colon else [int(word) for word in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=[], metavar="PROBLEM", help=", ".join(PROBLEMS))
    parser.add_argument("--seeds", type=seeds, default=[0, 1, 2])
    parser.add_argument("--scales", default="1,1e3,1e-3")
    parser.add_argument("--rules", default="preset,ones,auto")
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--steps", type=int, help="those of the preset by default")
    parser.add_argument("--solver", default=SOLVER, help="an expression of ng and preset, the preset's solver options")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(one(json.loads(options.case))))
        return
    rules, scales = options.rules.split(","), [float(word) for word in options.scales.split(",")]
    shared = {name: getattr(options, name) for name in ("every", "steps", "solver")}
    cases = [
        {"problem": problem, "scale": scale, "rule": rule, "seed": seed, **shared}
        for problem in options.problems or PROBLEMS
        for scale in scales
        for rule in rules
        for seed in options.seeds
    ]
    print(table(run_all("benchmarks.balance", cases, options.jobs, options.out, ALONE), rules))


if __name__ == "__main__":
    main()
