"""The Poisson equation in 5, 10 and 100 dimensions: error over time, at the sizes of the literature.

    python -m benchmarks.high_dimensions --case 5d --seconds 300 --out DIR [--recipe spring] [--steps N]

The problems are the presets of `poisson_nd`: networks of 10 thousand, 118 thousand and 1.3 million parameters, fresh
points every step (24,000, 9,000 and 2,800 rows). Relative and absolute L² errors (the unit cube has measure one) on
points of their own, which the training never sees; seconds are those of stepping, without compilation and evaluation.
`BEST` has what measured best, `RECIPES` the alternatives, and every part can be replaced on the command line.
DIR/CASE-RECIPE.json has all that is printed.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import natgrad as ng
from benchmarks.machine import description
from natgrad.experiment.config import keys
from natgrad.optim.damping import LevenbergMarquardt, LossPower, Spectral
from natgrad.optim.kernel import Kernel
from natgrad.zoo import get

jax.config.update("jax_enable_x64", True)

CASES = ("5d", "10d", "100d")
RECIPES: dict[str, dict[str, Any]] = {
    # The natural gradient of each batch through its kernel, with geodesic acceleration.
    "kernel": {"direction": "kernel", "damping": "fixed:1e-14"},
    # SPRING: momentum where the batch itself says nothing, a search on a grid, no acceleration.
    "spring": {"direction": "kernel", "damping": "fixed:1e-11", "momentum": 0.9, "acceleration": 0.0, "search": "grid"},
    # More points than parameters: the Gramian itself, factored.
    "direct": {"direction": "direct", "damping": "fixed:1e-14"},
    "nystrom": {"direction": "nystrom", "damping": "fixed:2e-17"},
}
#: What measured best, with the points and the damping of the presets.
BEST: dict[str, dict[str, Any]] = {
    "5d": {"direction": "nystrom"},
    "10d": {"direction": "kernel"},
    "100d": {"direction": "kernel"},
}


def damping(text: str) -> Any:
    """`fixed:c` is μ = c·λ̂₁, `lm:c` Levenberg–Marquardt's from μ = c, `loss:c` is μ = c·L."""
    name, _, value = text.partition(":")
    number = float(value or "nan")
    rules = {
        "fixed": lambda: Spectral(gamma=number / float(jnp.finfo(jnp.float64).eps)),
        "lm": lambda: LevenbergMarquardt(start=number),
        "loss": lambda: LossPower(scale=number, power=1.0),
    }
    if name not in rules or not number > 0:
        raise ValueError(f"damping is fixed:c, lm:c or loss:c with a positive c, got {text!r}")
    return rules[name]()


def preset_damping(case: str) -> Any:
    """The rule of the case's preset."""
    options = get("poisson_nd").preset(case).solver_options()
    return options["damping"](gamma=options["gamma"])


def direction(name: str, rank: int) -> Any:
    known = {
        "kernel": lambda: Kernel(),
        "kernel-pcg": lambda: Kernel(ng.PCG(ng.RowFactor(max_rank=rank))),
        "direct": lambda: ng.Direct(),
        "nystrom": lambda: ng.PCG(ng.RowFactor(max_rank=rank)),
    }
    if name not in known:
        raise ValueError(f"unknown direction {name!r}: choose one of {', '.join(known)}")
    return known[name]()


def solver(args: argparse.Namespace) -> ng.NaturalGradient:
    """The recipe with what the command line replaces of it."""
    recipe = RECIPES[args.recipe] if args.recipe else BEST[args.case]
    chosen = {"momentum": 0.0, "acceleration": 1.5, "search": "armijo", "damping": None, **recipe}
    chosen |= {name: value for name in chosen if (value := getattr(args, name, None)) is not None}
    return ng.NaturalGradient(
        direction=direction(chosen["direction"], args.rank),
        damping=damping(chosen["damping"]) if chosen["damping"] else preset_damping(args.case),
        search=ng.GridSearch(points=args.trials) if chosen["search"] == "grid" else ng.Armijo(max_trials=args.trials),
        gramian=args.gramian,
        batch=args.batch,
        acceleration=chosen["acceleration"],
        momentum=chosen["momentum"],
    )


def build(args: argparse.Namespace) -> Any:
    names = ("interior", "boundary", "weight", "dim", "fresh")
    options = {name: value for name in names if (value := getattr(args, name)) is not None}
    if args.width:
        options["width"] = tuple(int(w) for w in args.width.split("-"))
    return get("poisson_nd").problem(keys(args.seed).problem, args.case, **options)


def train(args: argparse.Namespace) -> dict[str, Any]:
    problem = build(args)
    norms = problem.norms
    size = float(jnp.sqrt(norms.weights @ jnp.sum(norms.values**2, axis=1)))
    print(
        f"{args.case}: p = {problem.num_parameters}, q = {problem.num_rows}, |u| = {size:.4g}, {description()}",
        flush=True,
    )
    began = time.perf_counter()
    rows: list[dict[str, float]] = []

    def show(record: dict[str, Any]) -> None:
        if not record["errors"]:
            return
        l2, h1 = record["errors"]["l2"], record["errors"]["h1"]
        told = {name: float(record[name]) for name in ("step", "time", "loss", "mu", "step_size", "largest")}
        rows.append({**told, "l2": l2, "l2_absolute": l2 * size, "h1": h1})
        print(
            f"step {record['step']:6d}  {record['time']:7.1f} s  loss {record['loss']:.2e}  l2 {l2:.3e}  "
            f"absolute {l2 * size:.3e}  h1 {h1:.3e}  mu {told['mu']:.1e}  step {told['step_size']:.1e}",
            flush=True,
        )

    solution = ng.solve(
        problem,
        solver(args),
        steps=args.steps,
        key=keys(args.seed).solver,
        time_limit=args.seconds,
        evaluate_every=args.every,
        callback=show,
        progress=False,
    )
    best = min(rows, key=lambda row: row["l2"]) if rows else None
    return {
        "case": args.case,
        "command": " ".join(sys.argv[1:]),
        "machine": description(),
        "parameters": problem.num_parameters,
        "rows": problem.num_rows,
        "size": size,
        "status": solution.status,
        "steps": solution.steps,
        "time": solution.time,
        "compile_time": solution.compile_time,
        "wall": time.perf_counter() - began,
        "errors": solution.errors,
        "best": best,
        "history": rows,
    }


def write(path: Path, result: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(result, indent=1))
    os.replace(part, path)


def parser() -> argparse.ArgumentParser:
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parse.add_argument
    add("--case", choices=CASES, required=True)
    add("--recipe", choices=RECIPES, help="by default what measured best for the case")
    add("--seconds", type=float, default=None, help="of stepping")
    add("--steps", type=int, default=1_000_000)
    add("--every", type=int, default=20, help="steps between evaluations of the error")
    add("--out", type=Path, default=None, help="folder of the JSON file")
    add("--name", default=None, help="of the JSON file")
    add("--seed", type=int, default=0)
    add("--direction", help="kernel, kernel-pcg, direct or nystrom")
    add("--damping", help="fixed:c (μ = c·λ₁), lm:c or loss:c")
    add("--momentum", type=float)
    add("--acceleration", type=float)
    add("--search", choices=("grid", "armijo"))
    add("--trials", type=int, default=20, help="of the line search")
    add("--rank", type=int, default=1000)
    add("--gramian", default="auto")
    add("--batch", type=int, default=None)
    add("--width", help="hidden layers, such as 64-64-48-48, in place of the preset's")
    add("--dim", type=int)
    add("--interior", type=int)
    add("--boundary", type=int)
    add("--weight", type=float)
    add("--fixed", dest="fresh", action="store_false", default=None, help="the same points at every step")
    return parse


def main() -> None:
    args = parser().parse_args()
    result = train(args)
    if args.out is not None:
        name = args.name or "-".join([args.case, args.recipe or "best"])
        write(args.out / f"{name}.json", result)
    best = result["best"]
    told = f", least l2 {best['l2']:.3e} ({best['l2_absolute']:.3e}) at {best['time']:.1f} s" if best else ""
    print(f"{result['status']} after {result['steps']} steps, {result['time']:.1f} s{told}")


if __name__ == "__main__":
    main()
