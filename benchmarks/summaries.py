"""Tables of the docs that sum up archives of results/: `benchmarks.pages` puts them into the pages.

    python -m benchmarks.summaries            # prints them

Where runs have different lengths, an error at the end is that at the last step that all of them took.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from benchmarks.keep import RESULTS
from benchmarks.markers import filled
from benchmarks.peers import table as peers
from benchmarks.peers.table import TARGETS
from benchmarks.published import at, of
from benchmarks.tables import markdown, short
from natgrad.experiment.runs import Run, find

MODULE = "benchmarks.summaries"
PAGES = {
    "README.md": ("five",),
    "docs/performance.md": ("ten_seeds", "milliseconds"),
    "docs/peers.md": ("randngd",),
    "docs/kernel.md": ("high_dimensions",),
}
#: Row, error and seconds of Dangel, Müller and Zeinhofer: absolute L² errors in 5 and 10 dimensions, relative in 100.
OTHERS = {
    "5d": ("5D, NyströmNGD, rank 1000, μ = 2e-17 λ₁", 2.6e-7, 7_000),
    "10d": ("10D, Kernel, μ = 1e-12 λ₁", 1.2e-5, 6_249),
    "100d": ("100D, Kernel, μ = 1e-8 λ₁", 3.6e-3, 7_000),
}


def reached(run: Run, error: float) -> float:
    """The first step at which a run was seen at an error."""
    steps, errors = run.series("h1")
    return float(next((step for step, seen in zip(steps, errors, strict=True) if seen <= error), np.inf))


def steps_to(runs: Sequence[Run], problem: str) -> tuple[str, str]:
    """Steps to the paper's best error: the median, 38 for 37.5, and the slowest seed."""
    steps = [reached(run, TARGETS[problem]) for run in runs]
    return f"{np.floor(np.median(steps) + 0.5):.0f}", f"{max(steps):.0f}"


def ends(runs: Sequence[Run]) -> tuple[str, str]:
    """Errors at the end, the median and the worst; three digits where a mesh ends them."""
    common, digits = min(float(run.series("h1")[0][-1]) for run in runs), 2 if mesh(runs) else 1
    errors = [at(run, common) for run in runs]
    return short(float(np.median(errors)), digits), short(max(errors), digits)


def mesh(runs: Sequence[Run]) -> str:
    """The error of the Galerkin solution in words, where there is one."""
    galerkin = runs[0].result["errors"].get("h1_galerkin")
    return f" (the mesh: {short(galerkin, 2)})" if galerkin else ""


@cache
def paper() -> list[Run]:
    return find([RESULTS / "paper.tar.xz"])


def five() -> str:
    """The paper's problems in short; seconds are those of single runs, alone on the device."""
    alone = {run["problem"]: run for run in peers.load(RESULTS / "peers.tar.xz") if run["peer"] == "natgrad"}
    rows = []
    for problem, best in TARGETS.items():
        runs = of(paper(), problem, "nystrom")
        seconds = peers.number(peers.median([alone[problem]], best, "time"), "{:.2g}")
        rows.append((f"`{problem}`", short(best, 2), steps_to(runs, problem)[0], seconds, ends(runs)[0] + mesh(runs)))
    return markdown(("", "the paper's best error", "steps to it (median)", "seconds, of stepping",
                     "after 75 steps, 100 on finite elements (median)"), rows)  # fmt: skip


def ten_seeds() -> str:
    """The same with the spread, and by RPCholesky."""
    rows = []
    for problem, best in TARGETS.items():
        ours, other = (of(paper(), problem, optimizer) for optimizer in ("nystrom", "rpcholesky"))
        rows.append((problem, short(best, 2), ", ".join(steps_to(ours, problem)), ", ".join(ends(ours)) + mesh(ours),
                     ", ".join(steps_to(other, problem)), ", ".join(ends(other))))  # fmt: skip
    return markdown(("", "paper's best", "steps to it (median, slowest seed)", "NyströmNGD ends at (median, worst)",
                     "RPCholNGD: steps", "ends at"), rows)  # fmt: skip


def milliseconds() -> str:
    """Of a step of natgrad's runs beside randngd, the mean of steps 41 to 70."""
    means = {}
    for run in peers.load(RESULTS / "peers.tar.xz"):
        if run["peer"] == "natgrad":
            times = {row["step"]: row["time"] for row in run["history"]}
            means[run["problem"]] = f"{1e3 * (times[70] - times[40]) / 30:.1f}"
    return markdown(tuple(TARGETS), [[means[problem] for problem in TARGETS]])


def randngd() -> str:
    """natgrad and randngd to the paper's best errors."""
    found = peers.rows(peers.load(RESULTS / "peers.tar.xz"), TARGETS)
    head = ("to", "", "steps", "seconds of stepping", "× natgrad's", "seconds in all", "× natgrad's", "least error")
    return markdown(head, [(row[0].replace("e-0", "e-"), row[1], row[3], row[4], row[6], row[5], row[7],
                            row[8].replace("e-0", "e-")) for row in found])  # fmt: skip


def high_dimensions() -> str:
    """When natgrad falls below the best published error, and its least one."""
    runs = {run["case"]: run for run in peers.load(RESULTS / "high_dimensions.tar.xz")}
    rows = []
    for case, (name, error, seconds) in OTHERS.items():
        run, measure = runs[case], "l2" if case == "100d" else "l2_absolute"
        below = next(row for row in run["history"] if row[measure] <= error)
        sizes = (f"{run['parameters']:,}", f"{run['rows']:,}")
        rows.append((name, *sizes, short(error), f"{seconds:,} s", *told(below, measure), *told(run["best"], measure)))
    return markdown(("", "parameters", "rows", "best published", "its time", "natgrad", "after", "its least error",
                     "after"), rows)  # fmt: skip


def told(row: Mapping[str, float], measure: str) -> tuple[str, str]:
    """An error, the absolute one too where that is what others published, and when it was seen."""
    absolute = "" if measure == "l2" else f"{short(row[measure], 2)} absolute, "
    return f"{absolute}{short(row['l2'], 2)} relative", f"{row['time']:.0f} s, {row['step']:.0f} steps"


TABLES = {table.__name__: cache(table) for table in (five, ten_seeds, milliseconds, randngd, high_dimensions)}


def filled_page(page: str, text: str) -> str:
    """A page with its summaries."""
    made: Mapping[str, str] = {name: TABLES[name]() for name in PAGES.get(page, ())}
    return filled(text, MODULE, made)


if __name__ == "__main__":
    print("\n\n".join(table() for table in TABLES.values()))
