"""The tables of the docs that were measured by a command: their cells in results/tables/, and the pages from there.

    python -m benchmarks.tables                # which there are, and by what command
    python -m benchmarks.tables --run NAME     # measures one again

results/tables/NAME.csv has the cells of a table as they are shown, the head first; index.csv has a row a table: its
page, its commands (a line each), what it was measured on, what else there is to say of it, and whether the command
makes it (`command`) or it was put together from what the commands print (`hand`). A benchmark with `--keep NAME`
writes both. `benchmarks.pages` puts tables and what they were measured by into the pages.
"""

import argparse
import csv
import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.markers import filled
from natgrad.storage.files import write

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "tables"
INDEX = "index.csv"
COLUMNS = ("table", "page", "by", "command", "on", "note")
MODULE = "benchmarks.tables"


def read(path: Path) -> list[list[str]]:
    """The rows of a file."""
    return list(csv.reader(io.StringIO(path.read_text())))


def save(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """Rows as a file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write(path, text.getvalue())


def index() -> dict[str, dict[str, str]]:
    """What is known of each table, by its name."""
    return {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in read(FOLDER / INDEX)[1:]}


def pages() -> set[str]:
    """The pages that have such tables, by their paths in the repository."""
    return {row["page"] for row in index().values()}


def line(cells: Sequence[str]) -> str:
    """A row in Markdown."""
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join([line(head), "|---" * len(head) + "|", *map(line, rows)])


def short(value: float, digits: int = 1) -> str:
    """1.6e-6 for 1.6e-06, 1.6 for 1.6e+00."""
    return f"{value:.{digits}e}".replace("e-0", "e-").replace("e+00", "").replace("e+0", "e")


def brief(value: float) -> str:
    """Two digits of seconds or milliseconds: 0.12, 1.2, 12, and 124 for 124.3."""
    return f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"


def caption(row: Mapping[str, str]) -> str:
    """By what it was measured, and on what."""
    commands = ", ".join(f"`{command}`" for command in row["command"].splitlines())
    parts = [": ".join(filter(None, (commands, row["on"]))) + ".", row["note"]]
    return f"({' '.join(filter(None, parts))})"


def made(name: str) -> str:
    """A table as its page shows it."""
    head, *rows = read(FOLDER / f"{name}.csv")
    return f"{markdown(head, rows)}\n\n{caption(index()[name])}"


def filled_page(page: str, text: str) -> str:
    """A page with its tables."""
    return filled(text, MODULE, {name: made(name) for name, row in index().items() if row["page"] == page})


def option(parser: argparse.ArgumentParser) -> None:
    """`--keep NAME` of a benchmark: the table of the docs that it makes."""
    module = f"benchmarks.{Path(sys.argv[0]).stem}"
    own = [name for name, row in index().items() if row["by"] == "command" and module in row["command"].split()]
    parser.add_argument("--keep", choices=own, metavar="NAME", help=f"into results/tables/: {', '.join(own)}")


def show(head: Sequence[str], rows: Iterable[Sequence[str]], name: str | None) -> None:
    """Prints a table row by row, after what the first row prints, and keeps it where it has a name."""
    found: list[Sequence[str]] = []
    for row in rows:
        print(line(row) if found else markdown(head, [row]), flush=True)
        found.append(row)
    if name is not None:
        keep(name, [head, *found])


def keep(name: str, rows: Iterable[Sequence[str]]) -> None:
    """Writes a table, and into the index the command and the machine: those of this process."""
    from benchmarks.machine import description

    known = index()
    before, _, _ = known[name]["command"].partition("python ")
    words = ["-m", f"benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]]
    at = words.index("--keep")
    known[name]["command"] = f"{before}python {shlex.join(words[:at] + words[at + 2 :])}"
    known[name]["on"] = description()
    save(FOLDER / f"{name}.csv", rows)
    save(FOLDER / INDEX, [COLUMNS, *(list(row.values()) for row in known.values())])


def run(name: str) -> int:
    """Measures a table again; how the command ended."""
    row = index()[name]
    if row["by"] != "command":
        commands = ", ".join(row["command"].splitlines()) or "what its page says"
        raise ValueError(f"{name} is put together by hand, from {commands}")
    words = shlex.split(row["command"])
    at = words.index("python")
    environ = dict(word.split("=", 1) for word in words[:at])
    command = [sys.executable, *words[at + 1 :], "--keep", name]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environ).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", choices=index(), metavar="NAME")
    chosen = parser.parse_args().run
    if chosen is None:
        for name, row in index().items():
            print(f"{name:<20} {row['page']:<22} {row['by']:<8} {', '.join(row['command'].splitlines())}")
        return
    try:
        sys.exit(run(chosen))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
