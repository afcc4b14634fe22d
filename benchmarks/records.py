"""Records: the problems that the field scores by, run from their presets, beside the best published numbers.

    python -m benchmarks.records NAME … --out DIR [--seeds 0:3] [--jobs 4] [--time-limit S] [-- --memory 30GB]
    python -m benchmarks.records --collect DIR                # or its archive: into results/records.csv
    python -m benchmarks.records --page                       # the tables of docs/records.md, from that

A NAME stands for a problem and its preset in `benchmarks/published_records.csv`, beside its target and what others
published; PROBLEM:PRESET runs any other, and `all` all of the table. Each run is a process of its own, a `natgrad run`
in DIR/NAME/seedS, and what follows `--` goes to it. A run that fails does not stop the others, and one that is there
already goes on, or is left as it is. After each run DIR/records.tar.xz has the records of all that have ended. Rows of
the table are never typed: `--collect` replaces those of the problems that it finds, a row a seed, in that order.
"""

import argparse
import csv
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from benchmarks.keep import RECORDS, RESULTS, listed, named
from benchmarks.markers import filled
from benchmarks.tables import short
from natgrad.experiment.records import content, pack
from natgrad.experiment.runs import Run, find, load
from natgrad.storage.files import write

PUBLISHED = Path(__file__).parent / "published_records.csv"
TABLE = RESULTS / "records.csv"
PAGE = Path(__file__).parents[1] / "docs" / "records.md"
ARCHIVE = "records.tar.xz"
BESIDE_OTHERS = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # several processes on a GPU
COLUMNS = (
    "problem", "seed", "norm", "error", "status", "seconds", "reached", "compiling", "steps", "device", "versions",
    "command",
)  # fmt: skip


@dataclass(frozen=True)
class Record:
    """A row of the published table; of any other problem there is no target."""

    name: str
    problem: str
    preset: str
    optimizer: str = "nystrom"
    sets: tuple[str, ...] = ()
    equation: str = ""
    target: float | None = None
    seconds: float | None = None
    published: str = ""
    published_seconds: str = ""
    source: str = ""
    others: str = ""


def published() -> dict[str, Record]:
    """All rows, by name."""
    rows = csv.DictReader(io.StringIO(PUBLISHED.read_text()))
    numbers = lambda row: {name: float(row[name]) for name in ("target", "seconds")}
    return {row["name"]: Record(**{**row, "sets": tuple(row["sets"].split()), **numbers(row)}) for row in rows}


def wanted(names: Sequence[str]) -> list[Record]:
    """The records of these names, PROBLEM:PRESET among them."""
    known = published()
    found = []
    for name in known if "all" in names else names:
        problem, _, preset = name.partition(":")
        if name not in known and not preset:
            raise ValueError(f"there is no record {name}: there are {', '.join(known)}, and PROBLEM:PRESET for others")
        found.append(known.get(name) or Record(name.replace(":", "-"), problem, preset))
    return found


def command(record: Record, seed: int, out: Path, more: Sequence[str]) -> list[str]:
    """The arguments of `natgrad` that run it."""
    folder = out / record.name / f"seed{seed}"
    sets = [word for setting in record.sets for word in ("--set", setting)]
    again = ["--resume"] if (folder / "config.json").exists() else []
    return [
        "run", record.problem, "--preset", record.preset, "--optimizer", record.optimizer, *sets, "--seed", str(seed),
        "--out", str(folder), "--no-plots", *more, *again,
    ]  # fmt: skip


def run(record: Record, seed: int, out: Path, more: Sequence[str]) -> str:
    """Runs it in a process of its own; how it ended, in a line."""
    words = [sys.executable, "-m", "natgrad", *command(record, seed, out, more)]
    done = subprocess.run(words, capture_output=True, text=True, env={**BESIDE_OTHERS, **os.environ})
    title = f"{record.name} seed {seed}: "
    folder = out / record.name / f"seed{seed}"
    if not (folder / "result.json").exists():
        return f"{title}failed ({done.returncode}): {(done.stderr.strip().splitlines() or ['?'])[-1]}"
    row = row_of(record, load(folder))
    ended = f"{title}{row['status']} after {row['steps']} steps, {row['seconds']} s: {row['norm']} {row['error']}"
    goal = "" if record.target is None else f", target {record.target:.1e} in {record.seconds:g} s"
    return f"{ended}{goal}" + (f", reached after {row['reached']} s" if row["reached"] else "")


def run_all(records: Sequence[Record], seeds: Sequence[int], out: Path, jobs: int, more: Sequence[str]) -> None:
    """Some at a time, seed by seed; the archive has what ended after each."""
    packing = Lock()

    def one(case: tuple[int, Record]) -> None:
        line = run(case[1], case[0], out, more)
        with packing:
            archive(out)
            print(line, flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, [(seed, record) for seed in seeds for record in records]))


def archive(out: Path) -> None:
    """Packs the records of the runs that have ended; no checkpoints."""
    files = content(out, *RECORDS) if out.is_dir() else {}
    ended = {path.parent for path in files if path.name == "result.json"}
    if kept := {named(path, out): data for path, data in files.items() if path.parent in ended}:
        pack(out / ARCHIVE, kept)


def rows(source: Path) -> Iterator[dict[str, Any]]:
    """A row a run that has ended, in the order of the published table; ValueError where one is not in it."""
    known = published()
    runs = [run for run in find([source]) if run.result]
    names = {run.folder: named(run.folder, source).partition("/")[0] for run in runs}
    if strange := sorted(set(names.values()) - set(known)):
        raise ValueError(f"{source} has runs of {', '.join(strange)}: a record is one of {', '.join(known)}")
    order = list(known)
    for run in sorted(runs, key=lambda run: (order.index(names[run.folder]), run.config["seed"])):
        yield row_of(known[names[run.folder]], run)


def row_of(record: Record, run: Run) -> dict[str, Any]:
    """What a run came to. The error is that in L² where it is known: others publish that."""
    norm = "l2" if "l2" in run.result["errors"] else run.norm
    error, seconds = run.result["errors"].get(norm), run.result["time"]
    reached = reached_after(record.target, run, norm, error)
    shown = lambda value, form: "" if value is None else format(value, form)
    return {
        "problem": record.name,
        "seed": run.config["seed"],
        "norm": norm,
        "error": shown(error, ".2e"),
        "status": run.status,
        "seconds": shown(seconds, ".1f"),
        "reached": shown(reached, ".1f"),
        "compiling": shown(run.result.get("compile_time"), ".1f"),
        "steps": run.result["steps"],
        "device": run.result["device"],
        "versions": listed(run.config["versions"]),
        "command": " ".join(run.config["command"]),
    }


def reached_after(target: float | None, run: Run, norm: str, end: float | None) -> float | None:
    """Seconds of stepping to the target; of windows of time only the end of all has an error of the whole, of values in
    turn those of the last one are meant."""
    if target is None or end is None:
        return None
    if "windows" in run.config:
        return run.result["time"] if end <= target else None
    times, errors = run.series(norm, "time")
    if "via" in run.config:
        begun = next((record["time"] for record in run.records if record["value"] == run.records[-1]["value"]), 0.0)
        times, errors = times[times >= begun], errors[times >= begun]
    return next((float(time) for time, error in zip(times, errors, strict=True) if error <= target), None)


def collect(source: Path) -> None:
    """Writes the table anew: the problems of the source replace their rows, the others stay."""
    new = list(rows(source))
    replaced = {row["problem"] for row in new}
    kept = [row for row in table() if row["problem"] not in replaced]
    order = list(published())
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted([*kept, *new], key=lambda row: (order.index(row["problem"]), int(row["seed"]))))
    write(TABLE, buffer.getvalue())


def table() -> list[dict[str, str]]:
    """The rows of results/records.csv."""
    return list(csv.DictReader(io.StringIO(TABLE.read_text()))) if TABLE.exists() else []


def times(value: float) -> str:
    """A factor in words."""
    return f"{value:.1f} times" if value < 100 else f"{value:,.0f} times" if value < 1e5 else f"{short(value)} times"


def verdict(record: Record, runs: Sequence[dict[str, str]]) -> str:
    """Whether more than half of the seeds reach the target, and the median of their seconds to it is in its time."""
    if not runs:
        return "not yet run"
    error, needed = median(runs, "error"), median(runs, "reached")
    reaching = sum(bool(run["reached"]) for run in runs)
    if 2 * reaching > len(runs):
        return "met" if needed <= record.seconds else f"reached, but after {needed:.0f} s"
    return "**missed**, " + (f"{times(error / record.target)} the target" if np.isfinite(error) else "no number")


def best(record: Record) -> str:
    """The best published number."""
    if not record.published:
        return "–"
    took = f" in {int(record.published_seconds):,} s" if record.published_seconds else ""
    return f"{short(float(record.published))}{took} ({record.source})"


def ratio(record: Record, runs: Sequence[dict[str, str]]) -> str:
    """How the median compares with the best published number, in words."""
    error = median(runs, "error")
    if not record.published or not np.isfinite(error):
        return ""
    share = error / float(record.published)
    return f"{times(1 / share)} smaller" if share <= 1 else f"**{times(share)} larger**"


def median(runs: Sequence[dict[str, str]], column: str) -> float:
    """NaN where no run has it; of an error a run that has none counts as infinite."""
    values = [float(run[column]) if run[column] else np.inf for run in runs]
    if column != "error":
        values = [value for value in values if np.isfinite(value)]
    return float(np.median(values)) if values else np.nan


def compared() -> str:
    """The first table of the page: a record a row."""
    by_name = {name: [row for row in table() if row["problem"] == name] for name in published()}
    head = ("problem", "target", "natgrad", "target met?", "best published", "natgrad beside it", "others")
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for record in published().values():
        runs = by_name[record.name]
        cells = (
            f"`{record.name}`: {record.equation}", f"{short(record.target)} in {record.seconds:g} s", ours(runs),
            verdict(record, runs), best(record), ratio(record, runs), record.others,
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def ours(runs: Sequence[dict[str, str]]) -> str:
    """The median of the seeds, and the least and the greatest."""
    if not runs:
        return ""
    errors = [float(run["error"]) if run["error"] else np.inf for run in runs]
    spread = f", {short(min(errors))} to {short(max(errors))} in {len(runs)} seeds" if len(runs) > 1 else ""
    norm = "" if runs[0]["norm"] == "l2" else " in H¹"
    return f"{short(median(runs, 'error'))}{norm} in {median(runs, 'seconds'):.0f} s{spread}"


def listing() -> str:
    """The second table: a run a row, with what repeats it."""
    found = table()
    if not found:
        return "No run is recorded yet."
    lines = ["| run | status, steps | seconds | to the target | compiling | command |", "|---" * 6 + "|"]
    for row in found:
        reached = f"{row['reached']} s" if row["reached"] else "not reached"
        lines.append(
            f"| {row['problem']}, seed {row['seed']}: {row['error'] or 'no error'} | {row['status']}, {row['steps']} | "
            f"{row['seconds']} | {reached} | {row['compiling']} | `{row['command']}` |"
        )
    machines = dict.fromkeys(f"{row['device']}, {row['versions']}" for row in found)
    return "\n".join([*lines, "", *(f"On {machine}." for machine in machines)])


def page(text: str) -> str:
    """The page with its tables made anew, between their markers."""
    return filled(text, "benchmarks.records", {"compared": compared(), "runs": listing()})


def main() -> None:
    words = sys.argv[1:]
    here, more = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--seeds", default="0:1", help="first:end")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--time-limit", metavar="S", help="seconds of stepping")
    parser.add_argument("--evaluate-every", default="10", metavar="STEPS")
    parser.add_argument("--collect", type=Path, metavar="DIR|ARCHIVE")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args(here)
    if bool(options.names) != (options.out is not None):
        parser.error("names and --out DIR go together")
    if not (options.names or options.collect or options.page):
        parser.error("give names to run, --collect or --page")
    limits = ["--time-limit", options.time_limit] if options.time_limit else []
    try:
        if options.names:
            seeds = range(*map(int, options.seeds.split(":")))
            every = ["--evaluate-every", options.evaluate_every]
            run_all(wanted(options.names), seeds, options.out, options.jobs, [*limits, *every, *more])
        if options.collect:
            collect(options.collect)
        if options.collect or options.page:
            write(PAGE, page(PAGE.read_text()))
            print(f"wrote {PAGE}")
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
