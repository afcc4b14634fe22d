"""The tables of errors in the docs are those of the runs that are kept."""

from pathlib import Path

import numpy as np

from benchmarks.published import PAPER, TARGETS, at, cell, default_table, published_table
from natgrad.experiment.runs import Run, find

ROOT = Path(__file__).parents[2]


def run(seed: int, errors: dict[int, float]) -> Run:
    records = [{"step": step, "errors": {"h1": error} if error else {}} for step, error in errors.items()]
    return Run(Path(), {"problem": "p", "optimizer": "o", "seed": seed}, {}, records)


def test_docs_have_the_tables_of_the_runs():
    runs = find([ROOT / "results" / "published.tar.xz"])
    assert {(r.problem, r.optimizer) for r in runs} == {(p, o) for p in TARGETS for o in PAPER}
    written = (ROOT / "docs" / "performance.md").read_text()
    assert published_table(runs) in written
    assert default_table(find([ROOT / "results" / "paper.tar.xz"])) in written


def test_medians_are_taken_at_the_last_common_step():
    runs = [run(0, {10: 1e-1, 20: 1e-2, 30: 1e-3}), run(1, {10: 3e-1, 15: 0.0}), run(2, {10: 2e-1, 20: 5e-3})]
    assert cell(runs) == "2.0e-1 (10), 1.0e-3 (30)"
    assert cell(runs[:1]) == "1.0e-3 (30)"
    assert cell([]) == "–"
    assert np.isclose(at(runs[0], 29), 1e-2)
