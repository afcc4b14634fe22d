"""The runs behind the numbers of the docs, in archives under results/, and all of them in one table, results/runs.csv.

    python -m benchmarks.keep [DIR --into results/paper.tar.xz]

With a folder, its records go into the archive by their paths in the folder, beside what is there; one that is there
already with other content is refused. The table is made anew from all archives either way.
"""

import argparse
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from natgrad.experiment.records import SUFFIX, content, pack
from natgrad.experiment.runs import FILES, Run, find
from natgrad.storage.files import parse_json, write

RESULTS = Path(__file__).parents[1] / "results"
TABLE = "runs.csv"
RECORDS = ("*.json", "history.jsonl")  # of run folders and of benchmarks; no checkpoints, no pictures
COLUMNS = (
    "archive", "record", "package", "problem", "optimizer", "recipe", "preset", "seed", "status", "steps", "seconds",
    "norm", "error", "plateau_error", "plateau_seconds", "dtype", "device", "versions", "command",
)  # fmt: skip


def keep(folder: Path, archive: Path) -> None:
    """Adds the records of a folder to an archive, which is made where there is none."""
    known = (
        {named(path, archive): data for path, data in content(archive, *RECORDS).items()} if archive.exists() else {}
    )
    new = {named(path, folder): data for path, data in content(folder, *RECORDS).items()}
    if not new:
        raise ValueError(f"there are no records in {folder}: no *.json, no history.jsonl")
    if changed := sorted(name for name in new if known.get(name, new[name]) != new[name]):
        raise ValueError(f"{archive} has another {changed[0]} already: give the folder's records other names")
    pack(archive, known | new)


def named(path: Path, source: Path) -> str:
    return path.relative_to(source).as_posix()


def rows(archive: Path) -> Iterator[dict[str, Any]]:
    """A row a record of an archive: a run folder, or a benchmark's own file."""
    files = content(archive, *RECORDS)
    runs = {run.folder: run for run in find([archive])} if any(path.name == FILES[0] for path in files) else {}
    for path, data in files.items():
        if path.parent in runs:
            if path.name == FILES[0]:
                yield {"record": named(path.parent, archive), **of_run(runs[path.parent])}
        else:
            record = parse_json(data, path)
            yield {"record": named(path, archive), **(of_peer(record) if "peer" in record else of_case(record))}


def of_run(run: Run) -> dict[str, Any]:
    """Of a run folder."""
    same = ("problem", "optimizer", "recipe", "preset", "seed", "status", "steps", "dtype", "device")
    return {
        **{name: run.result[name] for name in same},
        "package": "natgrad",
        "seconds": run.result["time"],
        "norm": run.norm,
        "error": run.end,
        "plateau_error": run.plateau["error"],
        "plateau_seconds": run.plateau["time"],
        "versions": listed(run.config["versions"]),
        "command": " ".join(run.config["command"]),
    }


def of_peer(record: dict[str, Any]) -> dict[str, Any]:
    """Of `benchmarks.peers`; what a package calls its settings is in the place of the optimizer."""
    last = record["history"][-1] if record["history"] else {}
    norm = "h1" if "h1" in last else "l2"
    return {
        **{name: record.get(name) for name in ("problem", "preset", "seed", "status", "dtype", "device")},
        "package": record["peer"],
        "optimizer": " ".join([record["setting"], *record.get("options", [])]),
        "steps": last.get("step", 0),
        "seconds": last.get("time"),
        "norm": norm,
        "error": last.get(norm),
        "versions": listed({"python": record["python"], **record["versions"]}),
        "command": record["command"],
    }


def of_case(record: dict[str, Any]) -> dict[str, Any]:
    """Of `benchmarks.high_dimensions`."""
    device, dtype, *versions = record["machine"].split(", ")
    flags = dict(re.findall(r"--(\w+) (\S+)", record["command"]))
    return {
        **{name: record[name] for name in ("status", "steps")},
        "package": "natgrad",
        "problem": "poisson_nd",
        "optimizer": flags.get("recipe", "best"),
        "preset": record["case"],
        "seed": flags.get("seed", 0),
        "seconds": record["time"],
        "norm": "l2",
        "error": record["errors"]["l2"],
        "dtype": dtype,
        "device": device,
        "versions": ", ".join(versions),
        "command": f"python -m benchmarks.high_dimensions {record['command']}",
    }


def listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def table(results: Path) -> str:
    """The rows of all archives, as CSV."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for archive in sorted(results.glob(f"*{SUFFIX}")):
        writer.writerows({"archive": archive.name, **row} for row in rows(archive))
    return buffer.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--into", type=Path, metavar="ARCHIVE")
    arguments = parser.parse_args()
    if (arguments.folder is None) != (arguments.into is None):
        parser.error("a folder and --into ARCHIVE go together")
    if arguments.folder:
        keep(arguments.folder, arguments.into)
    write(RESULTS / TABLE, table(RESULTS))
    print(f"wrote {RESULTS / TABLE}")


if __name__ == "__main__":
    main()
