"""What the examples and the study of coverage find, kept in results/examples.csv, and the tables of the docs from that.

    python -m benchmarks.examples [plate stl parametric noise coverage]      # runs them again: minutes

A row is a number: of which study, in which case, on which machine. `benchmarks.pages` puts them into docs/geometry.md
and docs/inverse.md.
"""

import argparse
import csv
import importlib.util
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

from benchmarks import coverage
from benchmarks.keep import RESULTS
from benchmarks.machine import description
from benchmarks.markers import filled
from benchmarks.tables import markdown
from natgrad.storage.files import write

EXAMPLES = Path(__file__).parents[1] / "examples"
FILE = RESULTS / "examples.csv"
COLUMNS = ("study", "case", "quantity", "value", "on")
MODULE = "benchmarks.examples"
LEVELS = {"2 %": 0.02, "10 %": 0.1}
WEIGHTS = {"1e6": 1e6, "1": 1.0}
Found = Mapping[str, Mapping[str, float]]  # {case: {quantity: value}}


def script(name: str) -> ModuleType:
    """An example as a module."""
    spec: Any = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def noise() -> Found:
    find = script("inverse_noise").find
    cases = [(level, weight) for weight in WEIGHTS for level in LEVELS]
    return {f"{level}, {weight}": find(LEVELS[level], weight=WEIGHTS[weight]) for level, weight in cases}


STUDIES: Mapping[str, Callable[[], Found]] = {
    "plate": lambda: {"": script("perforated_plate").main()},
    "stl": lambda: {"": {"h1": script("stl").main()}},
    "parametric": lambda: {"": script("parametric").main()},
    "noise": noise,
    "coverage": lambda: {level: coverage.study(noise=sigma) for level, sigma in LEVELS.items()},
}


def read() -> list[dict[str, str]]:
    """The rows that are kept."""
    return list(csv.DictReader(io.StringIO(FILE.read_text()))) if FILE.exists() else []


def keep(studies: Sequence[str]) -> None:
    """Runs studies, and writes the table anew after each."""
    for study in studies:
        found = STUDIES[study]()
        others = [row for row in read() if row["study"] != study]
        numbers = [(case, name, value) for case, own in found.items() for name, value in own.items()]
        mine = [(study, case, name, f"{value:.6g}", description()) for case, name, value in numbers]
        rows = others + [dict(zip(COLUMNS, row, strict=True)) for row in mine]
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: list(STUDIES).index(row["study"])))
        write(FILE, text.getvalue())


def tables() -> dict[str, str]:
    """What the pages show, by the name of the place."""
    at: dict[str, dict[str, dict[str, float]]] = {}
    for row in read():
        at.setdefault(row["study"], {}).setdefault(row["case"], {})[row["quantity"]] = float(row["value"])
    plate, stl, family = at["plate"][""], at["stl"][""], at["parametric"][""]
    own = ((case.split(", "), found) for case, found in at["noise"].items())
    drawn = {"2 %": "", "10 %": " --noise 0.1"}
    return {
        "plate": markdown(
            ("against 25,341 nodes of scikit-fem", "relative error"),
            [("L²", short(plate["l2"])), ("H¹", short(plate["h1"]))],
        ),
        "stl": f"It ends at a relative H¹ error of {short(stl['h1'])}.",
        "parametric": markdown(
            ("ν", "relative L² error in x"), [(nu, short(error)) for nu, error in family.items()]
        ),
        "noise": markdown(
            ("noise", "weight of the equation", "ν ± standard deviation", "χ²/n", "relative H¹ error"),
            (
                (level, weight, f"{found['nu']:.4f} ± {found['std']:.4f}", f"{found['chi2']:.2f}", short(found["h1"]))
                for (level, weight), found in own
            ),
        ),
        "coverage": markdown(
            ("noise", "covers ν", "spread of ν over the draws", "standard deviation, median", "by the formula",
             "command"),
            (
                (level, f"{it['covered']:.0f} of {it['draws']:.0f}", *(f"{it[n]:.5f}" for n in ("spread", "std")),
                 f"{it['formula']:.5f}", f"`python -m benchmarks.coverage{drawn[level]}`")
                for level, it in at["coverage"].items()
            ),
        ),
    }  # fmt: skip


def short(value: float) -> str:
    """Two digits: 4.6e-5, and 0.34 where that is shorter."""
    return f"{value:.1e}".replace("e-0", "e-") if value < 0.1 else f"{value:.2g}"


def page(*names: str) -> Callable[[str], str]:
    """A page with these tables in their places."""
    return lambda text: filled(text, MODULE, {name: table for name, table in tables().items() if name in names})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", metavar="STUDY", default=list(STUDIES))
    asked = parser.parse_args().studies
    if unknown := [name for name in asked if name not in STUDIES]:
        parser.error(f"there is no study {unknown[0]!r}: choose from {', '.join(STUDIES)}")
    jax.config.update("jax_enable_x64", True)
    keep(asked)


if __name__ == "__main__":
    main()
