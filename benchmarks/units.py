"""The same problems in other units: u times 1e-3, 30 and 1e3, lengths times 0.01 and 100; does it train as well?

    python -m benchmarks.units [--jobs 16] [--out results.json] [--problems poisson3d,kovasznay] [--seeds 0:3]

The small presets of the zoo, and `burgers`, Burgers' equation with ν = 0.1/π and values by residuals. With
v(y) = U u(y/s), s the unit of length (time stays), the equation for v is that for u with other coefficients: its
residual at y is U times that of the problem, of v pulled back, at y/s. Networks are those of the problem, "plain" (u
and lengths as they are) or "normalized", by `ng.Normalized` with scale U on the box of the problem; for other lengths
normalized alone, so that the row with lengths × 1 is what to compare with. Errors are those of u, in the problem's own
units and norm, after the preset's steps N and after 1.5 N; medians over the seeds. A second table has the errors after
N alone as docs/units.md shows them, or with `--later` the worst ones after 1.5 N.

A process runs one case; `--out` keeps what is done, and a run with the same file goes on.
"""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng
from benchmarks import tables
from benchmarks.cases import run_all
from benchmarks.machine import description
from benchmarks.tables import short
from natgrad import zoo
from natgrad.experiment.config import keys
from natgrad.zoo import _reference
from natgrad.zoo._grid import grid
from natgrad.zoo._shock import layered
from natgrad.zoo.burgers import equation

PROBLEMS = {"poisson3d": (1, 1, 1), "heat3d": (0, 1, 1, 1), "kovasznay": (1, 1), "burgers": (0, 1)}  # 1 is a length
SIZES, LENGTHS = (1e-3, 1.0, 30.0, 1e3), (0.01, 100.0)
COLUMNS = {  # of the tables of docs/units.md
    "u × 0.001": (1e-3, 1.0), "u": (1.0, 1.0), "u × 30": (30.0, 1.0), "u × 1000": (1e3, 1.0),
    "lengths × 0.01": (1.0, 0.01), "lengths × 100": (1.0, 100.0),
}  # fmt: skip
SOLVER = "ng.NystromNGD(**options)"
ALONE = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


class Known(NamedTuple):
    """A problem in its own units: how it is built from a key, its box, the norm of its errors, steps and solver."""

    build: Any
    box: ng.Box
    norm: str
    steps: int
    options: dict[str, Any]


def wide_shock(key: Any) -> ng.LeastSquares:
    """Burgers' equation with ν = 0.1/π, whose values at the boundary and at the start are residuals."""
    net, inside, rim, start = jax.random.split(key, 4)
    domain, nu = ng.Interval(0, 1) * ng.Box(-1, 1), 0.1 / math.pi
    return ng.LeastSquares(
        ng.MLP(2, 1, 20, 2, key=net),
        pde=ng.Residual(equation(nu), layered(1_200, inside)),
        boundary=ng.Residual(lambda u, z: u(z), domain.boundary(100, key=rim), weight=10),
        initial=ng.Residual(lambda u, z: u(z) + jnp.sin(jnp.pi * z[1]), domain.initial(100, key=start), weight=10),
        exact=_reference.burgers(nu),
        evaluation=grid(domain, 101, 257),
    )


def known(name: str) -> Known:
    """`burgers` of this file, or a small preset of the zoo."""
    if name == "burgers":
        return Known(wide_shock, ng.Box([0, -1], [1, 1]), "h1", 120, {"max_rank": 300})
    benchmark, preset = zoo.get(name), zoo.get(name).preset("small")
    picture, build = benchmark.fields({}), lambda key: benchmark.problem(key, "small")
    return Known(build, ng.Box(picture.lower, picture.upper), benchmark.norm, preset.steps["ngd"], dict(preset.solver))


def variants(networks: str) -> Iterator[dict[str, Any]]:
    """Network, size of u, and unit of length."""
    for network in networks.split(","):
        yield from ({"network": network, "size": size, "length": 1.0} for size in SIZES)
    if "normalized" in networks:
        yield from ({"network": "normalized", "size": 1.0, "length": length} for length in LENGTHS)


class Pulled:
    """u(x) = v(s x) / U, field by field, of a network v in other units."""

    def __init__(self, v: Any, stretch: np.ndarray, size: float):
        self.v, self.stretch, self.size = v, stretch, size

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.v(x * self.stretch) / self.size

    def __getattr__(self, name: str) -> "Pulled":
        return Pulled(getattr(self.v, name), self.stretch, self.size)


def in_units(problem: ng.LeastSquares, case: dict[str, Any]) -> tuple[ng.LeastSquares, np.ndarray]:
    """The problem in other units, and s."""
    size, stretch = case["size"], np.where(PROBLEMS[case["problem"]], case["length"], 1.0)
    box = known(case["problem"]).box
    box = ng.Box(np.asarray(box.lower) * stretch, np.asarray(box.upper) * stretch)
    wrap = lambda part: part if case["network"] == "plain" else ng.Normalized(part, box, scale=size)
    network: Any = problem.network(problem.params)
    if isinstance(network, ng.Fields):
        network = ng.Fields(**{name: wrap(getattr(network, name)) for name in network.names})
    else:
        network = wrap(network)

    def block(features: Any) -> ng.Residual:
        def residual(v, y, *data):
            u = Pulled(v, stretch, size)
            return size * features.evaluate(u, u, y / stretch, *data)

        x, *data = features.inputs
        points = ng.Points(x * stretch, features.weights * np.prod(stretch))
        return ng.Residual(residual, points, data=tuple(data))

    return ng.LeastSquares(network, **{features.name: block(features) for features in problem.features}), stretch


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Trains one case and measures it twice."""
    own = known(case["problem"])
    reference = own.build(keys(case["seed"]).problem)
    problem, stretch = in_units(reference, case)
    solver = eval(case["solver"], {"ng": ng, "options": own.options})
    marks, now, found = (case["steps"], case["steps"] + case["steps"] // 2), {"step": 0}, {}
    assert reference.norms is not None
    norms = reference.norms
    measure = jax.jit(lambda params: norms(Pulled(problem.network(params), stretch, case["size"]))[own.norm])

    def look(params: Any, state: Any) -> None:
        if now["step"] == marks[0]:
            found["error"] = float(measure(params))

    solution = ng.solve(
        problem, solver, marks[1], key=keys(case["seed"]).solver, progress=False, checkpoint=look, group=1,
        callback=lambda record: now.update(step=record["step"]),
    )  # fmt: skip
    later = float(measure(solution.params))
    return {**case, "error": found.get("error", later), "later": later, "status": solution.status,
            "loss": solution.loss, "seconds": solution.time}  # fmt: skip


def table(results: list[dict[str, Any]]) -> str:
    """A row a problem and variant, medians over the seeds and the worst of them."""
    head = "| problem | network | u × | lengths × | steps | error | worst | after 1.5 N | worst | seeds |"
    lines = [head, "|---" * 10 + "|"]
    for name in PROBLEMS:
        for variant in variants("plain,normalized"):
            found = [r for r in results if r["problem"] == name and all(r[k] == v for k, v in variant.items())]
            if not (good := [r for r in found if "error" in r]):
                continue
            errors = [[np.inf if r[k] is None else r[k] for r in good] for k in ("error", "later")]
            numbers = [f"{f(e):.1e}" for e in errors for f in (np.median, np.max)]
            cells = [name, variant["network"], f"{variant['size']:g}", f"{variant['length']:g}", str(good[0]["steps"])]
            lines.append("| " + " | ".join([*cells, *numbers, f"{len(good)}/{len(found)}"]) + " |")
    return "\n".join(lines)


def compact(results: list[dict[str, Any]], later: bool) -> Iterator[tuple[str, ...]]:
    """A row a problem and network: the median error after N steps, or the worst one after 1.5 N."""
    key, choose = ("later", np.max) if later else ("error", np.median)
    labels = {"normalized": ", `Normalized`", "plain": ", bare MLP"}
    alone = len({r["network"] for r in results}) == 1
    for name, network in ((name, network) for name in PROBLEMS for network in labels):
        mine = [r for r in results if (r["problem"], r["network"]) == (name, network)]
        cells = []
        for size, length in COLUMNS.values():
            found = [r for r in mine if (r["size"], r["length"]) == (size, length)]
            good = [np.inf if r[key] is None else r[key] for r in found if "error" in r]
            cells.append(short(float(choose(good))) if good else "failed" if found else "")
        if mine:
            yield name if alone else name + labels[network], *cells


def main() -> None:
    """Runs all cases that are not done yet, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--seeds", default="0:3", help="first:end")
    parser.add_argument("--steps", type=int, default=None, help="N, by default the preset's")
    parser.add_argument("--networks", default="plain,normalized", help="one of these, or both")
    parser.add_argument("--solver", default=SOLVER, help=f"an expression in ng and options (default: {SOLVER})")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time, a core each")
    parser.add_argument("--out", type=Path, default=None, help="a file for the results, and to go on from")
    parser.add_argument("--later", action="store_true", help="the second table: the worst errors after 1.5 N")
    parser.add_argument("--case", type=json.loads, default=None, help=argparse.SUPPRESS)
    tables.option(parser)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if options.case is not None:
        print(json.dumps(run(options.case)))
        return
    seeds = range(*map(int, options.seeds.split(":")))
    steps = lambda name: options.steps or known(name).steps
    cases = [
        {"problem": name, **variant, "seed": seed, "solver": options.solver, "steps": steps(name)}
        for name in options.problems.split(",")
        for variant in variants(options.networks)
        for seed in seeds
    ]
    results = run_all("benchmarks.units", cases, options.jobs, options.out, ALONE)
    print(f"{options.solver}; {description()}\n{table(results)}\n")
    tables.show(("", *COLUMNS), compact(results, options.later), options.keep)


if __name__ == "__main__":
    main()
