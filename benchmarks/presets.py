"""Is the default safe? Every small preset of the zoo from many seeds, and which runs end above what the preset states.

    python -m benchmarks.presets [NAME …] [--seeds 0:20] [--out results/presets.csv]
    python -m benchmarks.presets --page                 # the tables of docs/zoo.md and docs/reliability.md, from that

One process takes one problem after the other and all seeds of it, with the preset's options and steps, so that each
compiles once. A run is good where its loss is finite and its error at most three times the preset's. What is in the
file already is not run again. Rows of a preset that states another error now count as none: delete them and run again.
"""

import argparse
import csv
import io
import json
import math
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import natgrad as ng
from benchmarks.keep import RESULTS
from benchmarks.machine import description
from natgrad import zoo
from natgrad.experiment.config import keys
from natgrad.storage.files import write

FACTOR = 3.0  # times the preset's error, above which a run counts as bad
DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = ("problem", "seed", "error", "stated", "loss", "status", "steps", "seconds", "diagnosis", "on")


def run(name: str, seed: int) -> dict[str, Any]:
    """One seed of a small preset."""
    benchmark = zoo.get(name)
    preset = benchmark.preset("small")
    problem: Any = benchmark.problem(keys(seed).problem, "small")
    train: Any = ng.solve
    if preset.windows:
        problem, train = benchmark.windows(keys(seed).problem), partial(ng.march, times=preset.windows)
    solution = train(
        problem,
        ng.NystromNGD(**preset.solver),
        steps=preset.steps["ngd"],
        key=keys(seed).solver,
        evaluate_every=20,
        progress=False,
    )
    numbers = {"error": solution.errors[benchmark.norm], "stated": preset.error, "loss": solution.loss}
    return {
        "problem": name,
        "seed": seed,
        **{key: f"{value:.3g}" for key, value in numbers.items()},
        "status": solution.status,
        "steps": solution.steps,
        "seconds": f"{solution.time:.3g}",
        "diagnosis": " ".join(solution.diagnosis),
        "on": description(),
    }


def good(row: dict[str, Any]) -> bool:
    """Whether a run ended as the preset promises."""
    return math.isfinite(float(row["loss"])) and float(row["error"]) <= FACTOR * float(row["stated"])


def table(rows: list[dict[str, Any]]) -> str:
    """One line per problem: errors over the seeds, and the seeds that are bad."""
    lines = ["| problem | stated | median | worst | good | bad seeds |", "|---" * 6 + "|"]
    for name in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == name]
        errors = [float(row["error"]) for row in mine]
        bad = ", ".join(f"{row['seed']} ({float(row['error']):.1e})" for row in mine if not good(row)) or "none"
        median, worst = np.median(errors), max(errors)
        lines.append(
            f"| {name} | {mine[0]['stated']} | {median:.1e} | {worst:.1e} | "
            f"{sum(map(good, mine))} of {len(mine)} | {bad} |"
        )
    return "\n".join(lines)


def seeds_page(text: str) -> str:
    """docs/reliability.md with the table of all seeds."""
    head = table([]).splitlines()[0]
    made = table(read(RESULTS / "presets.csv"))
    return re.sub(re.escape(head) + r"\n(\|.*\n)*", lambda _: made + "\n", text)


def zoo_page(text: str) -> str:
    """docs/zoo.md with the numbers of the records in its table; rows of problems without a record stay as they are.

    Errors and seconds are those of results/presets.csv, and where it has none those of results/gallery.csv.
    """
    first = {row["problem"]: row for row in read(RESULTS / "presets.csv") if row["seed"] == "0"}
    kept = {row["problem"]: row for row in read(RESULTS / "gallery.csv")}
    lines = text.split("\n")
    for i, line in enumerate(lines):
        cells = line.replace("\\|", "\0").split("|")
        name = cells[1].strip() if len(cells) == 10 else ""
        if name not in zoo.names():
            continue
        preset, norm = zoo.get(name).preset("small"), zoo.get(name).norm
        sizes = kept.get(name, {"preset": ""})
        current = sizes["preset"] == "small" and unchanged(zoo.get(name), sizes)
        measured = first[name] if name in first and float(first[name]["stated"]) == preset.error else None
        if current:
            cells[3:5] = (f" {int(sizes[size]):,} " for size in ("parameters", "rows"))
            measured = measured or sizes
        if measured is not None:
            error = ("L² " if norm == "l2" else "") + f"{float(measured['error']):.1e}".replace("e-0", "e-")
            steps = (f"{preset.windows} × " if preset.windows else "") + str(preset.steps["ngd"])
            cells[5:8] = (f" {steps} ", f" {error} ", f" {float(measured['seconds']):.0f} s ")
        lines[i] = "|".join(cells).replace("\0", "\\|")
    return "\n".join(lines)


PAGES = {"zoo.md": zoo_page, "reliability.md": seeds_page}


def unchanged(benchmark: zoo.Benchmark, row: Mapping[str, str]) -> bool:
    """Whether a row of results/gallery.csv has the options of its preset as they are now, and no others."""
    if row["preset"] not in benchmark.presets:
        return False
    defaults = {name: option.default for name, option in benchmark.options.items()}
    now = {**defaults, **benchmark.preset(row["preset"]).options}
    return json.loads(row["options"]) == json.loads(json.dumps(now))


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a table, none where there is no file."""
    return list(csv.DictReader(io.StringIO(path.read_text()))) if path.exists() else []


def save(path: Path, rows: list[dict[str, Any]]) -> None:
    """The table as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    write(path, text.getvalue())


def main() -> None:
    """Runs what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(zoo.names()), metavar="NAME")
    parser.add_argument("--seeds", default="0:20", help="first:end")
    parser.add_argument("--out", type=Path, default=Path("results/presets.csv"))
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.page:
        for name, made in PAGES.items():
            write(DOCS / name, made((DOCS / name).read_text()))
        return
    jax.config.update("jax_enable_x64", True)
    rows = read(options.out)
    done = {(row["problem"], int(row["seed"])) for row in rows}
    for name in options.names:
        for seed in range(*map(int, options.seeds.split(":"))):
            if (name, seed) not in done:
                rows.append({key: str(value) for key, value in run(name, seed).items()})
                save(options.out, rows)
    print(f"{description()}\n{table(rows)}")


if __name__ == "__main__":
    main()
