"""The gallery of the docs: a picture of every problem of the zoo, from trained networks that are kept in results/.

    python -m benchmarks.gallery --train NAME … [--preset small] [--runs out/gallery/runs]
    python -m benchmarks.gallery --draw out/gallery            # what the build of the docs does

`--train` runs `natgrad run NAME --preset small --optimizer nystrom --seed 0` in a process of its own (what is finished
in the folder of runs is not run again), and keeps its network in results/gallery/NAME.ng and a row with sizes, errors
and command in results/gallery.csv, unless it ended far above the error that the preset states. `--draw` draws what is
new into a folder, and writes there, as gallery.md, a section for each problem of `zoo.names()`; one without a record
says so, as does one whose preset has changed since.
"""

import argparse
import csv
import io
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

import natgrad as ng
from benchmarks.keep import RESULTS, listed
from benchmarks.presets import FACTOR, unchanged
from natgrad import zoo
from natgrad.experiment import fields, plots
from natgrad.experiment.config import keys
from natgrad.experiment.runs import load
from natgrad.problem.feinn import FEINN
from natgrad.storage.files import write

TABLE = RESULTS / "gallery.csv"
NETWORKS = RESULTS / "gallery"
PAGE = "gallery.md"
COLUMNS = (
    "problem", "preset", "seed", "parameters", "rows", "steps", "status", "norm", "error", "seconds", "options",
    "device", "versions", "command",
)  # fmt: skip
Row = Mapping[str, Any]


def table() -> dict[str, dict[str, str]]:
    """The rows of results/gallery.csv by problem."""
    rows = csv.DictReader(io.StringIO(TABLE.read_text())) if TABLE.exists() else ()
    return {row["problem"]: row for row in rows}


def current() -> dict[str, dict[str, str]]:
    """Those of presets that are still what they were."""
    return {name: row for name, row in table().items() if name in zoo.names() and unchanged(zoo.get(name), row)}


def train(name: str, preset: str, runs: Path) -> None:
    """Runs a preset, or goes on with it, and keeps it."""
    folder = runs / name
    words = ["run", name, "--preset", preset, "--optimizer", "nystrom", "--seed", "0", "--out", str(folder)]
    again = ["--resume"] if (folder / "config.json").exists() else []
    subprocess.run([sys.executable, "-m", "natgrad", *words, "--no-plots", *again], check=True)
    keep(folder)


def keep(folder: Path) -> None:
    """The network of a run that has ended, and its row in the table."""
    run = load(folder)
    if not run.result:
        raise ValueError(f"{folder} has not ended: run it to its end first")
    error, stated = run.result["errors"][run.norm], zoo.get(run.problem).preset(run.result["preset"]).error
    if stated is not None and not error <= FACTOR * stated:
        raise ValueError(
            f"{folder} ended with an error of {error:.1e}, and its preset states {stated:g}: it is not kept"
        )
    network = kept_of(run)
    NETWORKS.mkdir(exist_ok=True)
    ng.save(NETWORKS / f"{run.problem}.ng", network)
    row = {
        **{name: run.result[name] for name in ("problem", "preset", "seed", "parameters", "rows", "steps", "status")},
        "norm": run.norm,
        "error": f"{error:.3g}",
        "seconds": f"{run.result['time']:.3g}",
        "options": json.dumps(run.config["options"]["problem"], ensure_ascii=False),
        "device": run.result["device"],
        "versions": listed(run.config["versions"]),
        "command": " ".join(run.config["command"]),
    }
    rows = {**table(), run.problem: row}
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows[name] for name in sorted(rows))
    write(TABLE, buffer.getvalue())


def kept_of(run: Any) -> Any:
    """The network, or of windows all of them; on a mesh the values of the network at the nodes are the solution."""
    problem, params = run.restore()
    return problem.network(params) if isinstance(problem, FEINN) else run.function()


def solution(row: Row) -> Any:
    """The solution of a record as a function, on a mesh that of the finite elements."""
    path, benchmark = NETWORKS / f"{row['problem']}.ng", zoo.get(row["problem"])
    problem = benchmark.build(keys(int(row["seed"])).problem, **json.loads(row["options"]))
    try:
        network = ng.load(path)
    except ValueError:  # it has functions that a file does not hold
        network = ng.load(path, like=problem.solution(problem.params))
    on_mesh = isinstance(problem, FEINN)
    return problem.solution(eqx.filter(network, eqx.is_inexact_array)) if on_mesh else network


def draw(row: Row, path: Path) -> None:
    """A row a field: the solution, and where there is an exact one, that and the difference."""
    view = zoo.get(row["problem"]).fields(json.loads(row["options"]))
    u = solution(row)
    held = {name: float(view.at[name]) for name in view.coordinates if name in view.at}
    place = ", ".join(f"{name} = {value:.3g}" for name, value in held.items())
    rows = [
        fields.row(view, held, name, place, fields.many(select(u)), None if exact is None else fields.many(exact))
        for name, (select, exact) in view.fields.items()
    ]
    plots.picture(rows, row["problem"], path)


def stale(row: Row, path: Path) -> bool:
    """Whether a picture is to be drawn: none is there, or what it is made of is newer."""
    sources = (
        NETWORKS / f"{row['problem']}.ng", TABLE, Path(__file__), Path(fields.__file__), Path(plots.__file__),
        Path(zoo.__file__).parent / f"{row['problem']}.py",
    )  # fmt: skip
    newest = max(source.stat().st_mtime for source in sources if source.exists())
    return not path.exists() or path.stat().st_mtime < newest


def draw_all(folder: Path) -> None:
    """All pictures that are not there yet, and the sections of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    records = current()
    for name, row in records.items():
        picture = folder / f"{name}.png"
        if stale(row, picture):
            draw(row, picture)
    write(folder / PAGE, "\n\n".join(section(name, records.get(name)) for name in zoo.names()) + "\n")


def section(name: str, row: Row | None) -> str:
    """What the page says of a problem."""
    benchmark = zoo.get(name)
    head = f"## {name}\n\n{benchmark.title}: {benchmark.equation}."
    if row is None:
        return f"{head}\n\nNo record yet: `python -m benchmarks.gallery --train {name}` makes one."
    norm = {"h1": "H¹", "l2": "L²"}[row["norm"]]
    return (
        f"{head}\n\n![{name}: the solution and its error](img/gallery/{name}.png)\n\n"
        f"Relative {norm} error {float(row['error']):.1e} after {row['steps']} steps, with {int(row['parameters']):,} "
        f"parameters and {int(row['rows']):,} rows: `{row['command']}` ({row['device']}; {row['versions']})."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--preset", default="small")
    parser.add_argument("--runs", type=Path, default=Path("out/gallery/runs"), metavar="DIR")
    parser.add_argument("--draw", type=Path, metavar="DIR")
    options = parser.parse_args()
    if not (options.train or options.draw):
        parser.error("give --train NAME … or --draw DIR")
    jax.config.update("jax_enable_x64", True)
    for name in options.train:
        train(name, options.preset, options.runs)
    if options.draw:
        draw_all(options.draw)


if __name__ == "__main__":
    main()
