"""Runs of `natgrad_runs` and `randngd_runs` as a table: seconds to the paper's best error, problem by problem.

    python -m benchmarks.peers.table results/peers.tar.xz [--error poisson3d=1e-6 …]

Two times a run: of stepping alone, and of everything, compilation included. Where several seeds were run, the median;
a run that never came so far counts as infinitely long. The ratios are to natgrad's default.
"""

import argparse
import math
import statistics
from pathlib import Path
from typing import Any

from benchmarks.peers.record import first
from natgrad.experiment.records import content
from natgrad.storage.files import parse_json

#: The best relative H¹ error of the paper's table, whichever the optimizer.
TARGETS = {"poisson3d": 1.56e-6, "heat3d": 1.75e-6, "kovasznay": 5.45e-7, "deepritz2d": 1.60e-5, "drt2d": 6.60e-5}
HEAD = ("problem", "run", "seeds", "steps", "s stepping", "s in all", "ratio", "ratio in all", "end H¹", "s stepping")


def rows(runs: list[dict[str, Any]], targets: dict[str, float]) -> list[tuple[str, ...]]:
    """One row a problem, package and setting: natgrad's default first, then by time."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["problem"], name(run)), []).append(run)
    table: list[tuple[str, ...]] = []
    for problem in [p for p in targets if any(key[0] == p for key in groups)]:
        target = targets[problem]
        times = {
            label: tuple(median(group, target, clock) for clock in ("time", "wall", "step"))
            for (of, label), group in groups.items()
            if of == problem
        }
        ours = times.get("natgrad default", (math.nan, math.nan))
        for label in sorted(times, key=lambda label: (label != "natgrad default", times[label])):
            stepping, wall, steps = times[label]
            group = groups[problem, label]
            last = [run["history"][-1] for run in group]
            table.append(
                (
                    f"{problem} ≤ {target:.3g}",
                    label,
                    str(len(group)),
                    number(steps, "{:.0f}"),
                    number(stepping),
                    number(wall),
                    number(stepping / ours[0]),
                    number(wall / ours[1]),
                    f"{statistics.median(best(run) for run in group):.1e}",
                    number(statistics.median(row["time"] for row in last)),
                )
            )
    return table


def load(source: Path) -> list[dict[str, Any]]:
    """The runs in a folder or an archive, by file name."""
    runs = [parse_json(data, path) for path, data in content(source, "*.json").items() if path.parent == source]
    if not runs:
        raise ValueError(f"no runs in {source}: it has no *.json file")
    return runs


def name(run: dict[str, Any]) -> str:
    """What a row is called: package, setting, and the options of the problem where there are some."""
    return " ".join([run["peer"], run["setting"], *run.get("options", [])])


def median(group: list[dict[str, Any]], target: float, clock: str) -> float:
    """Seconds (or steps) to a relative H¹ error, over the seeds."""
    reached = [first(run["history"], target, "h1", clock) for run in group]
    return statistics.median(math.inf if value is None else value for value in reached)


def best(run: dict[str, Any]) -> float:
    """The smallest error of a run."""
    return min((row["h1"] for row in run["history"] if row["h1"] is not None), default=math.nan)


def number(value: float, form: str = "{:.3g}") -> str:
    """A number, or a dash for one that is not finite."""
    return form.format(value) if math.isfinite(value) else "–"


def markdown(head: tuple[str, ...], body: list[tuple[str, ...]]) -> str:
    """A table with aligned columns."""
    widths = [max(len(row[i]) for row in (head, *body)) for i in range(len(head))]
    line = lambda row: "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
    return "\n".join([line(head), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, body)])


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="a folder or an archive")
    parser.add_argument("--error", nargs="*", default=[], metavar="PROBLEM=ERROR")
    options = parser.parse_args()
    targets = TARGETS | {key: float(value) for key, value in (pair.split("=", 1) for pair in options.error)}
    runs = load(options.runs)
    facts = {(run["device"], run["dtype"], run["preset"], *run["versions"].items()) for run in runs}
    print(markdown(HEAD, rows(runs, targets)))
    for device, dtype, preset, *packages in sorted(facts, key=str):
        print(f"\n{device}, {dtype}, preset {preset}, " + ", ".join(" ".join(pair) for pair in packages))


if __name__ == "__main__":
    main()
