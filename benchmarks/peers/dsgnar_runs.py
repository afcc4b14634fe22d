"""DSGNAR (Webb, Jerad and Cartis, 2026) and natgrad on DSGNAR's own problems, in one run: seconds to each digit.

    python -m benchmarks.peers.dsgnar_runs all --pinn FOLDER --out DIR [--seconds 300] [--python INTERPRETER]
    python -m benchmarks.peers.dsgnar_runs --report DIR               # the table and the figure, into docs/records.md

FOLDER is `src` of the repository wephy/physics-informed-neural-networks, which no registry has; INTERPRETER is that of
its environment, by default this one. Networks, points and options of DSGNAR are those of its examples
(`on_dsgnar.py`). natgrad runs the records of the same names (`benchmarks/published_records.csv`), its
networks and points its own. Both are scored by natgrad's references, on regular grids (poisson5d: at
random points). One run follows the other; compilation and errors are off both clocks. Several such commands at a time
share the device, and the page must say so.
"""

import argparse
import os
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks import records
from benchmarks.keep import RESULTS
from benchmarks.markers import filled
from benchmarks.peers.record import first
from benchmarks.peers.table import load, markdown, number
from natgrad import zoo
from natgrad.experiment import runs
from natgrad.problem.evolution import Tabulated
from natgrad.storage.files import write, write_json

ROOT = Path(__file__).parents[2]
KEPT = RESULTS / "dsgnar.tar.xz"  # where `python -m benchmarks.keep DIR --into` it puts them
PAGE, FIGURE = ROOT / "docs" / "records.md", ROOT / "docs" / "img" / "dsgnar.png"
PROBLEMS = ("burgers_001", "kdv", "wave", "multiscale", "poisson5d")
ERRORS = (1e-3, 1e-6, 1e-9, 1e-12)
CELLS = 64  # an axis of the grid of errors


def grid(name: str) -> np.ndarray:
    """The points of errors (n, d), space before time as DSGNAR has them: middles of a regular grid, or a sample."""
    if name == "poisson5d":
        return np.random.default_rng(0).uniform(size=(20_000, 5))
    middles = (np.arange(CELLS) + 0.5) / CELLS
    x, y = np.meshgrid(middles, middles, indexing="ij")
    both = np.stack([x.ravel(), y.ravel()], axis=1)
    return both * [2, 1] - [1, 0] if name in ("burgers_001", "kdv") else both


def solution(name: str, z: np.ndarray) -> np.ndarray:
    """natgrad's reference there (n,)."""
    record = record_of(name)
    fields = zoo.get(record.problem).fields
    assert fields is not None
    preset = zoo.get(record.problem).preset(record.preset)
    (_, exact), *_ = fields(dict(preset.options)).fields.values()
    points = z[:, ::-1] if name in ("burgers_001", "kdv", "wave") else z
    if isinstance(exact, Tabulated):
        return np.asarray(exact.values(np.array(points))).ravel()
    return np.asarray(jax.vmap(exact)(jax.numpy.asarray(points))).ravel()


def record_of(name: str) -> records.Record:
    """What natgrad runs."""
    return records.published()[name]


def reference(name: str, path: Path) -> None:
    """The file that DSGNAR's trainer reads; its display, which is off, would want a grid of its own."""
    z = grid(name)
    values, axis = solution(name, z), np.linspace(0, 1, 2)
    values = values / 4 if name == "multiscale" else values  # its solution is the mean of the scales
    steady = name in ("multiscale", "poisson5d")
    more = {"slice_val": np.array(0.5)} if z.shape[1] > 2 else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path, coords=z, solution=values[:, None], channels=np.array(["u"]), plot_x0=axis, plot_x1=axis,
        plot_axes=np.array(["x", "y" if steady else "t"]), plot_u=np.zeros((2, 2)), **more,
    )  # fmt: skip


def dsgnar(name: str, options: argparse.Namespace) -> str:
    """One run of DSGNAR in a process of its own; how it ended."""
    path, target = options.out / "references" / f"{name}.npz", options.out / f"dsgnar-{name}-{options.seed}.json"
    reference(name, path)
    words = [options.python, "-m", "benchmarks.peers.on_dsgnar", str(path), "--problem", name, "--out", str(target)]
    words += ["--seconds", str(options.seconds), "--seed", str(options.seed), "--set", *options.set]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(options.pinn.resolve())])}
    done = subprocess.run(words, env=environ, cwd=options.out, capture_output=True, text=True)
    return "done" if not done.returncode else (done.stderr.strip().splitlines() or ["?"])[-1]


def natgrad(name: str, options: argparse.Namespace) -> str:
    """One run of natgrad in a process of its own, written down in the same form."""
    record = replace(record_of(name), sets=(*record_of(name).sets, *options.natgrad_set))
    more = ["--time-limit", str(options.seconds), "--evaluate-every", "1", "--recipe", "default"]
    told = records.run(record, options.seed, options.out / "natgrad", more)
    folder = options.out / "natgrad" / name / f"seed{options.seed}"
    if not (folder / "result.json").exists():
        return told
    run = runs.load(folder)
    windows = "windows" in run.config
    rows = [] if windows else [row for row in run.records if row.get("errors", {}).get("l2") is not None]
    history = [{"step": row["step"], "time": row["time"], "l2": row["errors"]["l2"]} for row in rows]
    if windows:  # errors on the way are those of a window
        end = run.result["errors"]["l2"]
        history = [{"step": run.result["steps"], "time": run.result["time"], "l2": end}]
    facts = {key: run.config["versions"].get(key) for key in ("jax", "jaxlib", "equinox", "natgrad")}
    write_json(
        options.out / f"natgrad-{name}-{options.seed}.json",
        {
            "peer": "natgrad", "problem": name, "setting": " ".join([record.optimizer, *options.natgrad_set]),
            "seed": options.seed, "device": run.result["device"], "dtype": run.result["dtype"], "versions": facts,
            "python": run.config["versions"]["python"], "status": run.status, "history": history,
            "command": " ".join(run.config["command"]),
        },
    )  # fmt: skip
    return told


HEAD = ("problem", "package", *(f"to {error:.0e}" for error in ERRORS), "end", "s to its end", "steps", "status")


def table(found: list[dict[str, Any]]) -> str:
    """A row a problem and package, medians over its seeds; the least error of a run is its end."""
    lines: list[tuple[str, ...]] = []
    for problem in PROBLEMS:
        for peer in ("dsgnar", "natgrad"):
            group = [run for run in found if (run["problem"], run["peer"]) == (problem, peer)]
            rows = [min((r for r in run["history"] if r["l2"] is not None), key=lambda r: r["l2"], default=None)
                    for run in group]  # fmt: skip
            ends = [row for row in rows if row is not None]
            if not ends:
                continue
            reached = [
                statistics.median(
                    float("inf") if (s := first(run["history"], error, "l2", "time")) is None else s for run in group
                )
                for error in ERRORS
            ]
            middle = lambda key, ends=ends: statistics.median(row[key] for row in ends)
            status = ", ".join(dict.fromkeys(run["status"] for run in group))
            lines.append(
                (
                    problem, f"{peer} {group[0]['setting']}", *(number(s, "{:.1f}") for s in reached),
                    f"{middle('l2'):.1e}", f"{middle('time'):.1f}", f"{middle('step'):.0f}", status,
                )
            )  # fmt: skip
    return markdown(HEAD, lines)


def report(found: list[dict[str, Any]]) -> str:
    """The table, and under it what was run."""
    machines = dict.fromkeys(
        f"{run['peer']}: {run['device']}, {run['dtype']}, " + ", ".join(f"{k} {v}" for k, v in run["versions"].items())
        for run in found
    )
    seeds = ", ".join(str(seed) for seed in sorted({run["seed"] for run in found}))
    return f"{table(found)}\n\n" + "\n".join(f"- {machine}" for machine in machines) + f"\n- seeds {seeds}"


def figure(found: list[dict[str, Any]], path: Path) -> None:
    """Error over seconds of stepping, a panel a problem."""
    import matplotlib.pyplot as plt

    problems = [name for name in PROBLEMS if any(run["problem"] == name for run in found)]
    plots, axes = plt.subplots(1, len(problems), figsize=(3.6 * len(problems), 3.4), sharey=True, squeeze=False)
    for ax, problem in zip(axes[0], problems, strict=True):
        for run in (run for run in found if run["problem"] == problem):
            points = [(row["time"], row["l2"]) for row in run["history"] if row["l2"] is not None]
            look: dict[str, Any] = {"color": "C0" if run["peer"] == "natgrad" else "C1", "lw": 1.4}
            look |= {"marker": "o"} if len(points) == 1 else {}
            ax.loglog(*zip(*points, strict=True), label=run["peer"], **look) if points else None
        ax.set(title=problem, xlabel="seconds of stepping")
        ax.grid(alpha=0.3)
        ax.legend(frameon=False)
    axes[0, 0].set_ylabel("relative L² error")
    plots.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(plots)


def page(text: str, source: Path = KEPT) -> str:
    """docs/records.md with the comparison of a folder or an archive; what is kept in results/, if anything is."""
    made = "This comparison was not run yet."
    if source.exists():
        made = report(load(source)) + "\n\n![Error over seconds](img/dsgnar.png)"
    return filled(text, "benchmarks.peers.dsgnar_runs", {"dsgnar": made})


def main() -> None:
    """Runs, or the report of some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", choices=[*PROBLEMS, "all", []], metavar="PROBLEM")
    parser.add_argument("--pinn", type=Path, help="the folder that has DSGNAR's package `pinn`")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of DSGNAR's environment")
    parser.add_argument("--packages", nargs="+", choices=("natgrad", "dsgnar"), default=["natgrad", "dsgnar"])
    parser.add_argument("--seconds", type=float, default=300.0, help="of stepping, at most, for each run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=INTEGER", help="other options of DSGNAR")
    parser.add_argument("--natgrad-set", nargs="*", default=[], metavar="NAME=VALUE", help="of natgrad's problem")
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--report", type=Path, metavar="DIR")
    options = parser.parse_args()
    if bool(options.problems) != (options.out is not None) or not (options.problems or options.report):
        parser.error("give problems and --out DIR, or --report DIR")
    if options.problems and "dsgnar" in options.packages and not (options.pinn and (options.pinn / "pinn").is_dir()):
        parser.error("--pinn must be the folder `src` of DSGNAR's repository, with its package pinn")
    if options.problems:
        jax.config.update("jax_enable_x64", True)
        options.out = options.out.resolve()
        options.out.mkdir(parents=True, exist_ok=True)
        for name in PROBLEMS if "all" in options.problems else options.problems:
            for package in options.packages:
                print(f"{name} {package}: {(natgrad if package == 'natgrad' else dsgnar)(name, options)}", flush=True)
    if options.report:
        found = load(options.report)
        figure(found, FIGURE)
        write(PAGE, page(PAGE.read_text(), options.report))
        print(report(found))


if __name__ == "__main__":
    main()
