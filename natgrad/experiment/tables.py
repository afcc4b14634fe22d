"""The table of the paper: the error at the plateau and the time to it, by optimizer (rows) and problem (columns).
Beyond the paper's it has the error at the end, and a word where runs ended badly or not at all.

Medians over seeds; where there are several, the quartiles stand in brackets.
"""

import csv
import io
import math
from collections.abc import Callable, Sequence

from natgrad.diagnosis import EXHAUSTED
from natgrad.experiment.runs import Group, Run, group, rank
from natgrad.experiment.statuses import BROKEN
from natgrad.options import suggest
from natgrad.stopping import STOPPED

FORMATS = ("markdown", "csv", "latex")
NUMBERS = ("error", "time", "end")
CAPTION = "Error at the plateau (seconds of stepping to it) → error at the end"
#: What is said of runs that are not what they should be.
WORDS: dict[str, Callable[[Run], bool]] = {
    "broke down": lambda run: run.status in BROKEN,
    "interrupted": lambda run: run.status in STOPPED,
    "unfinished": lambda run: not run.result,
    f"with {EXHAUSTED}": lambda run: run.exhausted,
}
Cell = Group | None
Cells = tuple[list[str], list[str], list[list[Cell]]]


def table(runs: Sequence[Run], form: str = "markdown") -> str:
    """The table in one of the formats."""
    if form not in FORMATS:
        raise ValueError(f"unknown format {form!r}: {suggest(form, FORMATS)}")
    return {"markdown": _markdown, "csv": _csv, "latex": _latex}[form](*arrange(group(runs)))


def document(runs: Sequence[Run], form: str = "markdown") -> str:
    """The table, and under it how it is read; a CSV has that in its head."""
    said = caption(group(runs))
    return table(runs, form) + {"markdown": f"\n{said}\n", "latex": f"% {said}\n"}.get(form, "")


def caption(groups: Sequence[Group]) -> str:
    """How the table is read, and how many runs are not in it."""
    seeds = "; medians over seeds, quartiles in brackets" if any(len(g.runs) > 1 for g in groups) else ""
    return f"{CAPTION}{seeds}.{left_out(groups)}"


def left_out(groups: Sequence[Group]) -> str:
    """How many runs are not in a table, in a sentence; nothing where all are."""
    count = sum(g.repeats for g in groups)
    return f" Left out: {count} with the options and the seed of another that went at least as far." if count else ""


def arrange(groups: Sequence[Group]) -> Cells:
    """Problems, labels, and one row for each label, with the group of each problem if there is one."""
    problems = list(dict.fromkeys(g.problem for g in groups))
    labels = list(dict.fromkeys(g.label for g in sorted(groups, key=lambda g: rank(g.optimizer))))
    found = {(g.problem, g.label): g for g in groups}
    return problems, labels, [[found.get((problem, name)) for problem in problems] for name in labels]


def cell(entry: Cell, number: Callable[[float], str], dash: str = "–", arrow: str = "→") -> str:
    """`error (time) → error at the end`, with quartiles where there are several seeds, and the remarks."""
    if entry is None:
        return dash
    several = len(entry.runs) > 1

    def written(name: str, number: Callable[[float], str], unit: str = "") -> str:
        middle, low, high = entry.quartiles(name) or (math.nan,) * 3
        return f"{number(middle)}{unit}" + (f" [{number(low)}, {number(high)}]" if several else "")

    numbers = f"{written('error', number)} ({written('time', seconds, ' s')}) {arrow} {written('end', number)}"
    if entry.quartiles("error") is None:
        numbers = dash
    return ", ".join([numbers, *remarks(entry)])


def remarks(entry: Group) -> list[str]:
    """What else is to be known of a cell: how many of its runs ended badly, and whether they differ in length."""
    total = len(entry.runs)
    found = [f"{count} of {total} {word}" for word, mark in WORDS.items() if (count := marked(entry, mark))]
    lengths = sorted({run.config["steps"] for run in entry.runs})
    return found + ([f"of {lengths[0]} to {lengths[-1]} steps"] if len(lengths) > 1 else [])


def marked(entry: Group, mark: Callable[[Run], bool]) -> int:
    return sum(map(mark, entry.runs))


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
    names = [f"{name}{part}" for name in NUMBERS for part in ("", " q1", " q3")]
    parts = (*names, "runs", "repeats", *WORDS)
    writer.writerow(["optimizer", *(f"{problem} {part}" for problem in problems for part in parts)])
    for name, row in zip(labels, cells, strict=True):
        numbers: list[str | int] = []
        for entry in row:
            for number in NUMBERS:
                values = entry.quartiles(number) if entry else None
                numbers += [repr(value) for value in values] if values else ["", "", ""]
            numbers += [len(entry.runs), entry.repeats] if entry else [0, 0]
            numbers += [marked(entry, mark) if entry else 0 for mark in WORDS.values()]
        writer.writerow([name, *numbers])
    return buffer.getvalue()


def _latex(problems: list[str], labels: list[str], cells: list[list[Cell]]) -> str:
    escape = lambda text: "".join("\\" + c if c in "_%&#$" else c for c in text)
    lines = [rf"\begin{{tabular}}{{l{'c' * len(problems)}}}", r"\toprule"]
    lines += [" & ".join(["optimizer", *map(escape, problems)]) + r" \\", r"\midrule"]
    for name, row in zip(labels, cells, strict=True):
        lines.append(" & ".join([escape(name), *(cell(c, _power, "--", r"$\to$") for c in row)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    return rf"${mantissa}\times10^{{{int(exponent)}}}$"
