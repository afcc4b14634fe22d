"""The paper's comparison, nine optimizers on five problems, beside the paper's own numbers: a table and a figure.

    python -m benchmarks.published [RUNS] [--default RUNS] [--figure docs/img/published.png]

The runs are those of `natgrad run PROBLEM --preset paper --recipe published --optimizer OPTIMIZER --seed SEED`, by
default those in results/published.tar.xz, and those of the default recipe in results/paper.tar.xz. A cell has the
paper's error, then the median over the seeds at the last step that all of them took, and, where one went on alone, its
own last error. A second table has seeds 0, 1 and 2 of the default recipe.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks import tables
from benchmarks.peers.table import TARGETS
from benchmarks.tables import short
from natgrad.experiment.plots import COLORS
from natgrad.experiment.runs import Run, find

#: Relative H¹ errors at the plateau, medians of ten runs, in the order of TARGETS.
PAPER = {
    "ngd-full": (1.56e-6, 1.75e-6, 1.08e-6, 1.63e-5, 6.61e-5),
    "ngd-matrix-free": (3.44e-4, 9.13e-5, 1.99e-5, 2.34e-4, 8.42e-4),
    "rpcholesky": (1.69e-6, 2.18e-6, 1.12e-6, 1.63e-5, 6.61e-5),
    "nystrom-gaussian": (1.66e-6, 1.89e-6, 8.24e-7, 1.63e-5, 6.60e-5),
    "nystrom-sampling": (1.97e-6, 1.93e-6, 1.22e-6, 1.63e-5, 6.63e-5),
    "bfgs": (8.91e-5, 1.03e-4, 2.92e-5, 3.64e-5, 7.30e-5),
    "ssbroyden": (2.69e-6, 2.39e-6, 5.45e-7, 1.60e-5, 6.61e-5),
    "lbfgs": (7.91e-4, 3.91e-4, 1.04e-4, 1.68e-3, 4.94e-3),
    "adam": (1.95e-2, 1.87e-3, 2.47e-3, 2.37e-2, 2.54e-2),
}

DEFAULT = ("ngd-full", "rpcholesky", "nystrom", "nystrom-gaussian", "nystrom-sampling")

LINES = [color for color in COLORS if color != "#000000"] + ["#882255"]  # black is for the default recipe


def at(run: Run, step: float) -> float:
    """The last error evaluated up to a step."""
    steps, errors = run.series("h1")
    return float(errors[np.searchsorted(steps, step, side="right") - 1])


def cell(runs: list[Run]) -> str:
    """Median at the last common step, and the longest run's end."""
    if not runs:
        return "–"
    ends = [float(run.series("h1")[0][-1]) for run in runs]
    common, longest = min(ends), max(ends)
    middle = float(np.median([at(run, common) for run in runs]))
    text = f"{short(middle)} ({common:,.0f})"
    if longest > 1.2 * common:
        text += f", {short(at(runs[int(np.argmax(ends))], longest))} ({longest:,.0f})"
    return text


def markdown(rows: dict[str, list[str]]) -> str:
    """An optimizer a row, a problem a column."""
    return tables.markdown(("", *TARGETS), ((optimizer, *cells) for optimizer, cells in rows.items()))


def published_table(runs: list[Run]) -> str:
    """The paper's error → ours."""
    rows = {}
    for optimizer, errors in PAPER.items():
        cells = [cell(of(runs, problem, optimizer)) for problem in TARGETS]
        rows[optimizer] = [f"{short(error, 2)} → {cell}" for error, cell in zip(errors, cells, strict=True)]
    return markdown(rows)


def default_table(runs: list[Run]) -> str:
    """Seeds 0, 1 and 2 of the natural gradients."""
    runs = [run for run in runs if run.config["seed"] < 3]
    return markdown({optimizer: [cell(of(runs, problem, optimizer)) for problem in TARGETS] for optimizer in DEFAULT})


def of(runs: list[Run], problem: str, optimizer: str) -> list[Run]:
    return [run for run in runs if (run.problem, run.optimizer) == (problem, optimizer)]


def figure(published: list[Run], default: list[Run], path: Path) -> None:
    """A panel a problem: every optimizer of the published recipe, seed 0, and the default NyströmNGD in bold."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots(1, len(TARGETS), figsize=(3.3 * len(TARGETS), 3.6), sharey=True, layout="constrained")
    for axis, (problem, best) in zip(axes, TARGETS.items(), strict=True):
        for color, optimizer in zip(LINES, PAPER, strict=True):
            for run in of(published, problem, optimizer):
                if run.config["seed"] == 0:
                    axis.plot(*run.series("h1"), color=color, linewidth=1.1, label=optimizer)
        for run in of(default, problem, "nystrom"):
            if run.config["seed"] == 0:
                axis.plot(*run.series("h1"), color="black", linewidth=2.4, label="natgrad, default NyströmNGD")
        axis.axhline(best, color="gray", linestyle=":", linewidth=1, label="the paper's best")
        axis.set(xscale="log", yscale="log", title=problem, xlabel="steps", ylim=(2e-9, 2))
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("relative H¹ error")
    drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=9, frameon=False)
    drawing.savefig(path, dpi=110)
    print(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="?", default=Path("results/published.tar.xz"))
    parser.add_argument("--default", type=Path, default=Path("results/paper.tar.xz"))
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    published, default = find([arguments.runs]), find([arguments.default])
    print(published_table(published), default_table(default), sep="\n\n")
    if arguments.figure:
        figure(published, default, arguments.figure)


if __name__ == "__main__":
    main()
