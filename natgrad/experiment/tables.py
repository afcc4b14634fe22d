"""The table of the paper: the error at the plateau and the time to it, an optimizer a row, a problem a column.

Medians over seeds; where there are several, the quartiles stand in brackets.
"""

import csv
import io
from collections.abc import Callable, Sequence

from natgrad.diagnosis import EXHAUSTED
from natgrad.experiment.runs import Group, Run, group, rank

FORMATS = ("markdown", "csv", "latex")
Cell = Group | None


def table(runs: Sequence[Run], form: str = "markdown") -> str:
    """The table in one of the formats."""
    if form not in FORMATS:
        raise ValueError(f"unknown format {form!r}: choose one of {', '.join(FORMATS)}")
    groups = group(runs)
    problems = list(dict.fromkeys(g.problem for g in groups))
    labels = list(dict.fromkeys(g.label for g in sorted(groups, key=lambda g: rank(g.optimizer))))
    cells: list[list[Cell]] = [
        [next((g for g in groups if (g.problem, g.label) == (p, name)), None) for p in problems] for name in labels
    ]
    return {"markdown": _markdown, "csv": _csv, "latex": _latex}[form](problems, labels, cells)


def cell(entry: Cell, number: Callable[[float], str], dash: str = "–") -> str:
    """`error (time)`, with quartiles where there are several seeds, and a word where the runs broke down or fit nothing
    but their points."""
    if entry is None:
        return dash
    error, time = entry.quartiles("error"), entry.quartiles("time")
    broken = sum(run.status in ("not finite", "no descent") for run in entry.runs)
    note = f" {broken} of {len(entry.runs)} broke down" if broken else ""
    if exhausted := sum(run.exhausted for run in entry.runs):
        note += f" {exhausted} of {len(entry.runs)} with {EXHAUSTED}"
    if error is None or time is None:
        return (dash + note).strip()
    if len(entry.runs) == 1:
        return f"{number(error[0])} ({seconds(time[0])} s){note}"
    return (
        f"{number(error[0])} [{number(error[1])}, {number(error[2])}] "
        f"({seconds(time[0])} s [{seconds(time[1])}, {seconds(time[2])}]){note}"
    )


def seconds(value: float) -> str:
    """Three figures, no exponent."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _markdown(problems: list[str], labels: list[str], cells: list[list[Cell]]) -> str:
    rows = [["optimizer", *problems]]
    rows += [[name, *(cell(c, lambda x: f"{x:.2e}") for c in row)] for name, row in zip(labels, cells, strict=True)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"


def _csv(problems: list[str], labels: list[str], cells: list[list[Cell]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    parts = ("error", "error q1", "error q3", "time", "time q1", "time q3", "runs")
    writer.writerow(["optimizer", *(f"{problem} {part}" for problem in problems for part in parts)])
    for name, row in zip(labels, cells, strict=True):
        numbers: list[str | int] = []
        for entry in row:
            for what in ("error", "time"):
                values = entry.quartiles(what) if entry else None
                numbers += [repr(value) for value in values] if values else ["", "", ""]
            numbers.append(len(entry.runs) if entry else 0)
        writer.writerow([name, *numbers])
    return buffer.getvalue()


def _latex(problems: list[str], labels: list[str], cells: list[list[Cell]]) -> str:
    escape = lambda text: "".join("\\" + c if c in "_%&#$" else c for c in text)
    lines = [rf"\begin{{tabular}}{{l{'c' * len(problems)}}}", r"\toprule"]
    lines += [" & ".join(["optimizer", *map(escape, problems)]) + r" \\", r"\midrule"]
    for name, row in zip(labels, cells, strict=True):
        lines.append(" & ".join([escape(name), *(cell(c, _power, "--") for c in row)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    return rf"${mantissa}\times10^{{{int(exponent)}}}$"
