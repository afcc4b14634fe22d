"""Natgrad and four packages on three small problems: seconds to given errors, compilation included.

    python -m benchmarks.peers.run --out DIR [--problems poisson2d …] [--peers natgrad jinns …] [--repeats 3]

Each package runs in an environment of its own, made on the first call under `--cache` with the versions below, one run
after the other on the whole machine. Same network, start, points, weights and float64 for all (see `case`); the
settings of the packages are in their `on_…` files. Clocks start after imports and stop while errors are evaluated.
natgrad's method `auto` is `ng.NGD()` in a process that finds no compiled program on disk; `warm` is the same in a
later process. With repeats, rows are medians, and the figure has the first. Writes runs as JSON, `table.md` and
`errors.png`; with `--report results/packages.tar.xz` the latter two, of the kept runs. Times are those of a quiet
machine, or they mean nothing.
"""

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

from benchmarks.peers import case
from benchmarks.peers.record import first
from benchmarks.peers.table import load, markdown, number

ROOT = Path(__file__).parents[2]
ERRORS = (1e-3, 1e-4, 1e-5)
RATIO = 1e-4  # the error at which packages are compared
#: package: what to install (natgrad runs where this program does) and its methods.
PEERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "natgrad": ((), ("auto", "warm", "nystrom", "full")),
    "randngd": (("randngd==0.1.1", "scipy"), ("nystrom", "full")),
    "scimba": (("torch==2.13.0", "scimba==1.4.1"), ("eng", "lm", "nystrom")),
    "jinns": (("jinns==1.10.0",), ("ngd",)),
    "deepxde": (("torch==2.13.0", "deepxde==1.15.0"), ("lbfgs", "nncg")),
}
STYLES = ("-", "--", ":", "-.")  # of a package's methods in the figure
HEAD = (
    "problem",
    "package",
    "setup",
    *(f"to {error:.0e}" for error in ERRORS),
    "ratio",
    "steps",
    "end error",
    "status",
)


def environment(peer: str, cache: Path) -> Path:
    """The interpreter of a package's environment, which is made where it is not there yet."""
    packages, _ = PEERS[peer]
    if not packages:
        return Path(sys.executable)
    folder, wanted = cache / peer, "\n".join(packages)
    python, stamp = folder / "bin" / "python", folder / "installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {', '.join(packages)} into {folder}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        stamp.write_text(wanted)
    return python


def train(
    python: Path, peer: str, method: str, path: Path, out: Path, options: argparse.Namespace, repeat: int
) -> dict[str, Any]:
    """One run in a process of its own; one that hangs or fails has a record too."""
    target = out / f"{path.stem}-{peer}-{method}-{repeat}.json"
    target.unlink(missing_ok=True)
    command = [str(python), "-m", f"benchmarks.peers.on_{peer}", str(path), "--method", method, "--out", str(target)]
    command += ["--seconds", str(options.budget), "--stop-at", str(options.stop_at)]
    environ = os.environ | {"PYTHONPATH": str(ROOT), "NATGRAD_CACHE": "0"}
    if method == "warm":
        programs = out.parent / "programs" / path.stem
        environ["NATGRAD_CACHE"] = str(programs)
        if not programs.exists():  # the first process compiles, and does not count
            subprocess.run(command, env=environ, cwd=out, capture_output=True, check=False)
    status = "failed"
    with (out / f"{target.stem}.log").open("w") as log:
        try:
            limit = 2 * options.budget + 30
            subprocess.run(command, env=environ, cwd=out, stdout=log, stderr=log, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            status = "no end"
    facts = {"peer": peer, "setting": method, "problem": path.stem, "budget": options.budget, "versions": {}}
    run = {**facts, "status": "running", "setup": None, "history": []}
    if target.exists():
        run = json.loads(target.read_text())
    if run["status"] == "running":  # killed, by us or by itself
        run["status"] = status
        target.write_text(json.dumps(run))
    return run


def rows(runs: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each problem, package and method, medians over its runs; the ratio is to natgrad's fastest method that
    finds nothing compiled, a bound where time ran out."""
    table: list[tuple[str, ...]] = []
    for problem in dict.fromkeys(run["problem"] for run in runs):
        groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for run in (run for run in runs if run["problem"] == problem):
            groups.setdefault((run["peer"], run["setting"]), []).append(run)
        cold = [key for key in groups if key[0] == "natgrad" and key[1] != "warm"]
        ours = min((median(groups[key], RATIO) for key in cold), default=math.inf)
        for (peer, method), group in groups.items():
            needed = median(group, RATIO)
            bound = "" if math.isfinite(needed) else "> "
            spent = needed if math.isfinite(needed) else max(map(lasted, group))
            setups = [math.inf if run["setup"] is None else run["setup"] for run in group]
            ends = [run["history"][-1]["l2"] if run["history"] else None for run in group]
            known = [end for end in ends if end is not None]
            table.append(
                (
                    problem,
                    f"{peer} {method}",
                    number(statistics.median(setups), "{:.1f}"),
                    *(number(median(group, error), "{:.1f}") for error in ERRORS),
                    bound + number(spent / ours) if math.isfinite(ours) else "–",
                    f"{statistics.median(run['history'][-1]['step'] if run['history'] else 0 for run in group):.0f}",
                    f"{statistics.median(known):.1e}" if known else "–",
                    ", ".join(dict.fromkeys(run["status"] for run in group)),
                )
            )
    return table


def median(group: list[dict[str, Any]], error: float) -> float:
    """The median of the seconds to an error; infinite where most runs did not reach it."""
    return statistics.median(seconds(run, error) for run in group)


def lasted(run: dict[str, Any]) -> float:
    """How many seconds a run had, at least."""
    return max(run["budget"], run["history"][-1]["wall"] if run["history"] else 0.0)


def seconds(run: dict[str, Any], error: float) -> float:
    """All seconds until a relative L² error, infinite where it was not reached."""
    reached = first(run["history"], error, "l2", "wall")
    return math.inf if reached is None else reached


def figure(runs: list[dict[str, Any]], path: Path) -> None:
    """Error over time, a panel a problem."""
    import matplotlib.pyplot as plt

    problems = list(dict.fromkeys(run["problem"] for run in runs))
    runs = list({(run["problem"], run["peer"], run["setting"]): run for run in reversed(runs)}.values())[::-1]
    names = list(dict.fromkeys(f"{run['peer']} {run['setting']}" for run in runs))
    peers = list(PEERS)
    plots, axes = plt.subplots(1, len(problems), figsize=(4.2 * len(problems), 3.6), sharey=True, squeeze=False)
    for ax, problem in zip(axes[0], problems, strict=True):
        for run in (run for run in runs if run["problem"] == problem and run["history"]):
            style = STYLES[PEERS[run["peer"]][1].index(run["setting"])]
            points = [(row["wall"], row["l2"]) for row in run["history"] if row["l2"] is not None]
            ax.semilogy(*zip(*points, strict=True), style, color=f"C{peers.index(run['peer'])}", lw=1.4)
        ax.set(title=problem, xlabel="seconds, compilation included", xlim=(0, None), ylim=(1e-6, 3))
        ax.grid(alpha=0.3)
    axes[0, 0].set_ylabel("relative L² error")
    for name in names:
        peer, method = name.split(" ", 1)
        style = STYLES[PEERS[peer][1].index(method)]
        axes[0, -1].plot([], [], style, color=f"C{peers.index(peer)}", label=name)
    axes[0, -1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    plots.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(plots)


def report(runs: list[dict[str, Any]]) -> str:
    """The table, and under it what was run."""
    versions = {name: version for run in runs for name, version in run["versions"].items()}
    used = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    note = f"Seconds with compilation on {len(os.sched_getaffinity(0))} cores, float64, errors relative in L². {used}."
    return f"{markdown(HEAD, rows(runs))}\n\n{note}\n"


def main() -> None:
    """Environments, runs, table and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--problems", nargs="+", choices=case.PROBLEMS, default=case.PROBLEMS)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--budget", type=float, default=25.0, help="seconds for each run, compilation included")
    parser.add_argument("--stop-at", type=float, default=5e-6, help="relative L² error at which a run ends")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=1, help="of every run; the table has medians")
    parser.add_argument("--methods", nargs="+", default=None, help="some of the packages' methods alone")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "natgrad-peers")
    parser.add_argument("--report", type=Path, metavar="RUNS", help="train nothing: table and figure of these runs")
    options = parser.parse_args()
    out = options.out.resolve()
    (out / "runs").mkdir(parents=True, exist_ok=True)
    if options.report is None:
        pythons = {peer: environment(peer, options.cache.resolve()) for peer in options.peers}
        for problem in options.problems:
            path = out / "cases" / f"{problem}.npz"
            case.write(problem, path, options.seed)
            methods = [(peer, method) for peer in options.peers for method in PEERS[peer][1]]
            methods = [pair for pair in methods if options.methods is None or pair[1] in options.methods]
            for repeat, (peer, method) in itertools.product(range(options.repeats), methods):
                started = time.perf_counter()
                run = train(pythons[peer], peer, method, path, out / "runs", options, repeat)
                best = min((row["l2"] for row in run["history"] if row["l2"] is not None), default=math.nan)
                took = time.perf_counter() - started
                print(f"{problem:10s} {peer:8s} {method:8s} {best:8.1e} {run['status']}, {took:.0f} s", flush=True)
    names = [(peer, method) for peer in PEERS for method in PEERS[peer][1]]
    order = lambda run: (case.PROBLEMS.index(run["problem"]), names.index((run["peer"], run["setting"])))
    runs = sorted(load(options.report or out / "runs"), key=order)
    text = report(runs)
    (out / "table.md").write_text(text)
    figure(runs, out / "errors.png")
    print("\n" + text)


if __name__ == "__main__":
    main()
