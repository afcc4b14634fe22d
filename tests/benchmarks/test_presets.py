"""The numbers of small presets in the docs are those of the records."""

import json
import re

import pytest

from benchmarks import presets
from benchmarks.presets import DOCS, PAGES, seeds_page, unchanged, zoo_page
from natgrad import zoo


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_that_of_the_records(name):
    text = (DOCS / name).read_text()
    assert PAGES[name](text) == text, "python -m benchmarks.presets --page"


def test_a_number_typed_by_hand_is_replaced():
    text = (DOCS / "zoo.md").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("| gross_pitaevskii |"))
    assert r"\|x\|²u" in line
    typed = re.sub(r"\| \d\.\de-\d \| \d+ s \|", "| 1.0e-9 | 1 s |", line)
    assert typed != line
    assert zoo_page(text.replace(line, typed)) == text
    seeds = (DOCS / "reliability.md").read_text()
    assert seeds_page(seeds.replace("of 20 |", "of 21 |")) == seeds


def test_what_has_no_record_stays(tmp_path, monkeypatch):
    """A problem that is not in the file, and one whose preset states another error than when it was run."""
    row = dict.fromkeys(presets.COLUMNS, "") | {
        "problem": "stokes2d",
        "seed": "0",
        "error": "0.000122",
        "seconds": "16.3",
    }
    row["stated"] = str(zoo.get("stokes2d").preset("small").error)
    monkeypatch.setattr(presets, "RESULTS", tmp_path)
    presets.save(tmp_path / "presets.csv", [{**row, "stated": "1"}])
    other = "| heat3d | u_t | 1 | 2 | 3 | 4.0e-1 | 5 s | `c` |\n| stokes2d | u | 1 | 2 | 3 | 4.0e-1 | 5 s | `c` |\n"
    assert zoo_page(other) == other
    presets.save(tmp_path / "presets.csv", [row])
    assert zoo_page(other) == other.replace("| u | 1 | 2 | 3 | 4.0e-1 | 5 s |", "| u | 1 | 2 | 100 | 1.2e-4 | 16 s |")


def test_a_record_of_another_preset_is_told_apart():
    benchmark = zoo.get("poisson_nd")
    options = '{"dim": 5, "width": 24, "depth": 2, "interior": 1500, "boundary": 600, "weight": 100.0, "fresh": false}'
    assert unchanged(benchmark, {"preset": "small", "options": options})
    assert not unchanged(benchmark, {"preset": "gone", "options": options})
    for old, new in (("1500", "1501"), (', "fresh": false', ""), ('"dim"', '"earlier": 1, "dim"')):
        assert not unchanged(benchmark, {"preset": "small", "options": options.replace(old, new)})


def test_what_is_in_the_gallery_alone_stands_in_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(presets, "RESULTS", tmp_path)
    options = {name: option.default for name, option in zoo.get("reaction").options.items()}
    options |= zoo.get("reaction").preset("small").options
    row = {"problem": "reaction", "preset": "small", "parameters": 1337, "rows": 720, "error": 9.8e-6, "seconds": 5.1}
    row["options"] = f'"{json.dumps(options)}"'.replace('"', '""')[1:-1]
    (tmp_path / "gallery.csv").write_text(f"{','.join(row)}\n{','.join(map(str, row.values()))}\n")
    line = "| reaction | u_t | 1 | 2 | 3 | L² 4.0e-1 | 9 s | `c` |\n"
    assert zoo_page(line) == "| reaction | u_t | 1,337 | 720 | 80 | L² 9.8e-6 | 5 s | `c` |\n"
    (tmp_path / "gallery.csv").write_text((tmp_path / "gallery.csv").read_text().replace("small", "record"))
    assert zoo_page(line) == line
