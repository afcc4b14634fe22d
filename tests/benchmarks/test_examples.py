"""What the examples found, as it is kept: what the docs claim of it, and how it is written."""

import csv

import pytest

from benchmarks import examples

KEPT = {(row["study"], row["case"], row["quantity"]): float(row["value"]) for row in examples.read()}


@pytest.mark.parametrize("level", examples.LEVELS)
def test_standard_deviations_cover_the_truth(level):
    draws, covered, std, formula = (KEPT["coverage", level, name] for name in ("draws", "covered", "std", "formula"))
    assert draws == 100
    assert 90 <= covered <= 99
    assert std == pytest.approx(formula, rel=0.05)


@pytest.mark.parametrize("level", examples.LEVELS)
def test_what_overfits_shows(level):
    assert 0.5 < KEPT["noise", f"{level}, 1e6", "chi2"] < 1.5
    assert KEPT["noise", f"{level}, 1", "chi2"] < 0.1
    assert KEPT["noise", f"{level}, 1", "h1"] > 10 * KEPT["noise", f"{level}, 1e6", "h1"]


def test_errors_against_finite_elements():
    assert KEPT["plate", "", "l2"] < 1e-4


def test_a_study_replaces_its_own_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "FILE", tmp_path / "examples.csv")
    found = {"plate": {"": {"l2": 2.0}}, "stl": {"": {"h1": 1 / 3}}}
    monkeypatch.setattr(examples, "STUDIES", {name: lambda name=name: found[name] for name in found})
    examples.keep(["stl", "plate"])
    found["plate"] = {"a": {"l2": 3.0}, "b": {"l2": 4.0}}
    examples.keep(["plate"])
    rows = list(csv.DictReader((tmp_path / "examples.csv").open()))
    assert [(row["study"], row["case"], row["value"]) for row in rows] == [
        ("plate", "a", "3"), ("plate", "b", "4"), ("stl", "", "0.333333")
    ]  # fmt: skip
    assert all("jax" in row["on"] for row in rows)


@pytest.mark.parametrize(("value", "text"), [(4.6123e-5, "4.6e-5"), (0.0332, "3.3e-2"), (0.318, "0.32"), (2.0, "2")])
def test_numbers_are_short(value, text):
    assert examples.short(value) == text
