"""Ranges of options: what is refused, what is said, and where it is said again."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.options import (
    Checked,
    Count,
    Factor,
    Fraction,
    NonNegative,
    Positive,
    Range,
    Share,
    Whole,
    check,
    check_fields,
    checked,
    describe,
    parse_bytes,
    text,
)
from tests.options_page import page

NAN, INF = float("nan"), float("inf")


class Part(Checked):
    rate: Share = eqx.field(static=True, default=0.5)


class Tree(Checked):
    part: Part = Part()
    rank: Count | None = eqx.field(static=True, default=None)
    form: Literal["strong", "weak"] = eqx.field(static=True, default="weak")
    warm: bool = eqx.field(static=True, default=True)


@pytest.mark.parametrize(
    ("kind", "good", "bad", "words"),
    [
        (Positive, [1, 0.5, 1e300, np.float32(2), np.int64(3)], [0, -1, INF], "a positive finite number"),
        (NonNegative, [0, 0.5], [-1e-300, INF], "a non-negative finite number"),
        (Fraction, [0.5], [0, 1, -1, 2], "a number in (0, 1)"),
        (Share, [0.5, 1], [0, 1.1], "a number in (0, 1]"),
        (Factor, [1.5], [1, 0], "a finite number above 1"),
        (Count, [1, np.int32(7), 10**9], [0, -1, 1.0, 2.5], "a positive integer"),
        (Whole, [0, 3], [-1, 0.0], "a non-negative integer"),
        (float, [-1, 2.5], [INF, 1j], "a finite number"),
        (int, [-1, 2], [2.5], "an integer"),
        (Annotated[int, Range(at_least=2, at_most=5)], [2, 5], [1, 6], "an integer from 2 to 5"),
        (Annotated[float, Range(above=0, infinite=True)], [1, INF], [0, -INF], "a positive number or inf"),
        (Annotated[float, Range(at_most=3)], [3, -9], [4, -INF], "a finite number of at most 3"),
    ],
)
def test_numbers_in_a_range(kind, good, bad, words):
    for value in good:
        check("x", value, kind)
        check("x", value, kind | None)
    for value in [*bad, NAN, True, np.bool_(True), "1", None, [1], np.ones(1), jnp.ones(())]:
        with pytest.raises(ValueError, match=r"^x must be ") as caught:
            check("x", value, kind)
        assert f"x must be {words}, got" in str(caught.value)
        assert "\n" not in str(caught.value)
    check("x", None, kind | None)
    assert text(kind | None) == f"{words} or None"


@pytest.mark.parametrize(
    ("kind", "good", "bad", "words"),
    [
        (bool, [True, np.bool_(False)], [1, 0, "yes", None], "True or False"),
        (Literal["a", "b"], ["a"], ["c", 1, None], "'a' or 'b'"),
        (Literal["a", "b", "c"], ["a"], ["d", True], "one of 'a', 'b', 'c'"),
        (Count | Sequence[Count], [3, (3, 4), [1]], [0, (0,), (3, 2.5), "34"], "a positive integer or a sequence"),
        (tuple[Whole, Share], [(0, 0.5)], [(0,), (0.5, 0), 3], "a non-negative integer; a number in"),
        (Part, [Part()], [Part, "Part", 3, None], "a Part"),
    ],
)
def test_words_flags_sequences_and_parts(kind, good, bad, words):
    for value in good:
        check("x", value, kind)
    for value in bad:
        with pytest.raises(ValueError, match=r"^x must be ") as caught:
            check("x", value, kind)
        assert words in str(caught.value)


def test_what_is_meant_is_said_where_it_is_close():
    with pytest.raises(ValueError, match="form must be 'strong' or 'weak', got 'string': did you mean 'strong'"):
        Tree(form="string")
    with pytest.raises(ValueError, match=r"part must be a Part, got the class Part: write Part\(…\)"):
        Tree(part=Part)


def test_other_annotations_are_left_alone():
    check("x", object(), Any)
    check("x", "anything", "Quoted")
    check("x", jnp.ones(3), Count | jnp.ndarray)
    with pytest.raises(ValueError, match="x must be a positive integer, got 0"):
        check("x", 0, Count | jnp.ndarray)  # a number is judged by the range, not by what says nothing of numbers


def test_modules_are_checked_when_they_are_built_and_changed():
    with pytest.raises(ValueError, match="rank must be a positive integer or None, got 0"):
        Tree(rank=0)
    with pytest.raises(ValueError, match="rank must be"):
        dataclasses.replace(Tree(rank=3), rank=-3)
    with pytest.raises(ValueError, match="warm must be True or False, got 1"):
        Tree(warm=1)

    class Inherited(Part):
        more: Count = eqx.field(static=True, default=2)

    with pytest.raises(ValueError, match="rate must be"):
        Inherited(rate=2)


def test_plain_dataclasses_and_functions_are_checked():
    @dataclass
    class Plain:
        n: Count
        __post_init__ = check_fields

    @checked
    def build(key, *, width: Count = 3, rate: Positive = 1.0):
        """Builds."""
        return width * rate

    assert Plain(2).n == 2
    assert build(0, width=2, rate=3) == 6
    assert build.__doc__ == "Builds."
    with pytest.raises(ValueError, match="n must be a positive integer, got 0"):
        Plain(0)
    with pytest.raises(ValueError, match="width must be a positive integer, got 0"):
        build(0, width=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        build(0, depth=3)


def test_ranges_are_told_to_the_docs():
    @checked
    def build(key, *, width: Count = 3, rate: Positive = 1.0):
        pass

    assert describe(build) == {"width": (3, "a positive integer"), "rate": (1.0, "a positive finite number")}
    assert describe(Tree)["rank"] == (None, "a positive integer or None")


@pytest.mark.parametrize(("given", "bytes_"), [("8GB", 8 * 10**9), ("500 MiB", 500 * 2**20), (1e9, 10**9), (7, 7)])
def test_sizes_are_bytes(given, bytes_):
    assert parse_bytes("memory", given) == bytes_


@pytest.mark.parametrize("given", ["1e400GB", "0", "-3GB", "8 apples", "", 0, -1, NAN, INF, True, None, "1e30TB"])
def test_sizes_that_are_none(given):
    with pytest.raises(ValueError, match="memory"):
        parse_bytes("memory", given)


def test_the_page_of_the_docs_says_what_the_code_says():
    text = (Path(ng.__file__).parents[1] / "docs" / "api" / "options.md").read_text()
    assert text == page(), "python -m tests.options_page > docs/api/options.md"


def test_bytes_in_words_are_a_budget():
    assert ng.NystromNGD(memory="8GB").memory == 8_000_000_000
    assert ng.NGD(memory="1 GiB").memory == 2**30
    for bad in ("8 apples", "0", -1, True):
        with pytest.raises(ValueError, match="memory"):
            ng.NystromNGD(memory=bad)
