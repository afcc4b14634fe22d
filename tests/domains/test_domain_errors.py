"""Bad input gets a ValueError of one line that says what is wrong and what would be right."""

import warnings

import jax
import numpy as np
import pytest

from natgrad.domains import Ball, Box, Interval, Polygon, SpaceTime
from tests.domains.domain_cases import ELL

SQUARE = Box([0, 0], [1, 1])
KEY = jax.random.key(0)
BOWTIE = [(0, 0), (2, 2), (2, 0), (0, 3)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Box([0, 1], [1, 1]), r"lower must be less than upper, got 1.0 ≥ 1.0 along axis 1"),
        (lambda: Box([0, 2], [1, 1]), "along axis 1"),
        (lambda: Box([0], [1, 1]), "same length, got 1 and 2"),
        (lambda: Box([0, np.nan], [1, 1]), "lower must be finite"),
        (lambda: Box([0, 0], [1, np.inf]), "upper must be finite"),
        (lambda: Box([], []), "d ≥ 1 numbers"),
        (lambda: Box([[0]], [[1]]), "d ≥ 1 numbers"),
        (lambda: Box("a", 1), "lower must be a list of numbers, got 'a'"),
        (lambda: Interval(1, 1), "a less than b, got a=1.0 and b=1.0"),
        (lambda: Interval(np.nan, 1), "a must be a finite number, got nan"),
        (lambda: Interval([0, 1], 2), "a must be a finite number, got .0, 1"),
        (lambda: SpaceTime(SQUARE, SQUARE), "must be an Interval, got Box"),
        (lambda: SpaceTime(Interval(0, 1), 3), "must be a domain"),
        (lambda: Interval(0, 1) * (Interval(0, 1) * SQUARE), "a domain without time"),
        (lambda: Ball([0, 0], 0), "radius must be a positive finite number, got 0"),
        (lambda: Ball([0, 0], -1), "radius must be a positive finite number, got -1"),
        (lambda: Ball([0, 0], np.nan), "radius must be a positive finite number, got nan"),
        (lambda: Ball([0, 0], [1, 1]), "radius must be a positive finite number, got .1, 1"),
        (lambda: Ball([0, np.inf], 1), "center must be finite"),
        (lambda: Polygon([(0, 0), (1, 0)]), "at least 3 distinct vertices, got 2"),
        (lambda: Polygon([(0, 0), (1, 0), (0, 0)]), "at least 3 distinct vertices, got 2"),
        (lambda: Polygon([(0, 0), (1, 1), (2, 2)]), "zero area"),
        (lambda: Polygon([(0, 0, 0), (1, 0, 0), (1, 1, 0)]), r"pairs \(x, y\), got shape \(3, 3\)"),
        (lambda: Polygon([(0, 0), (1, 0), (1,)]), "pairs of numbers"),
        (lambda: Polygon([(0, 0), (1, 0), (np.nan, 1)]), "vertices must be finite"),
        (lambda: Polygon([(0, 0), (1, 0), (1, 0), (0, 1)]), "vertices 1 and 2 of the polygon coincide"),
        (lambda: Polygon(BOWTIE), "self-intersecting: edges 0 and 2 meet"),
        (lambda: Polygon([(0, 0), (3, 0), (3, 2), (1, 0), (0, 2)]), "self-intersecting"),
        (lambda: Polygon([(0, 0), (2, 0), (1, 0), (0, 1)]), "edge 1 runs back along edge 0"),
        (lambda: Polygon([(0, 0), (1, 0), (1, 1), (0, 0), (-1, 1), (-1, 0)]), "self-intersecting"),
        (lambda: SQUARE.interior(0, key=KEY), "the number of points n must be a positive integer .*, got 0"),
        (lambda: SQUARE.interior(-3, rule="gauss"), "n must be a positive integer .*, got -3"),
        (lambda: SQUARE.interior(True, key=KEY), "n must be a positive integer .*, got True"),
        (lambda: SQUARE.interior(10.0, key=KEY), "n must be a positive integer .*, got 10.0"),
        (lambda: SQUARE.interior((3, 3), key=KEY), "goes with rule='gauss'"),
        (lambda: SQUARE.interior((3,), rule="gauss"), "must hold 2 numbers"),
        (lambda: (Interval(0, 1) * SQUARE).interior((3, 3), rule="gauss"), r"n=\(3, 3\) must hold 3 numbers"),
        (lambda: SQUARE.interior((3, 0), rule="gauss"), r"n must be a positive integer .*, got \(3, 0\)"),
        (
            lambda: SQUARE.interior(10, key=KEY, rule="guass"),
            r"mean gauss\? There are monte-carlo, sobol, gauss",
        ),
        (lambda: SQUARE.interior(10, rule="Monte Carlo"), r"did you mean monte-carlo\?"),
        (lambda: SQUARE.boundary(10, rule="xyz"), "unknown rule 'xyz': there are monte-carlo, sobol, gauss"),
        (lambda: SQUARE.interior(10), r"'monte-carlo' needs a key, for example key=jax.random.key\(0\)"),
        (lambda: SQUARE.boundary(10), "'monte-carlo' needs a key"),
        (lambda: SQUARE.interior(10, key=3.0), "JAX random key such as .*, or an integer, got 3.0"),
        (lambda: SQUARE.interior(10, key=True), "JAX random key such as .*, got True"),
        (lambda: SQUARE.interior(10, key=np.ones(2)), "JAX random key such as .*, got an array of float64"),
        (lambda: SQUARE.interior(10, key=jax.random.split(KEY, 3)), r"one key, got an array of them of shape \(3,\)"),
        (lambda: jax.jit(lambda n: SQUARE.interior(n, key=KEY))(3), "known only when the compiled function runs"),
        (
            lambda: SQUARE.boundary(10, key=KEY, faces=[(2, "lower")]),
            r"unknown face \(2, 'lower'\), .* 0 to 1",
        ),
        (lambda: SQUARE.boundary(10, key=KEY, faces=[(0, "left")]), r"unknown face \(0, 'left'\)"),
        (lambda: SQUARE.boundary(10, key=KEY, faces=[0]), "unknown face 0"),
        (lambda: SQUARE.boundary(10, key=KEY, faces=[]), "faces must not be empty"),
        (lambda: SQUARE.boundary(10, key=KEY, faces=[(0, "lower")] * 2), "given twice"),
        (lambda: Polygon(ELL).boundary(10, key=KEY, edges=[6]), "unknown edge 6, .* from 0 to 5"),
        (lambda: Polygon(ELL).boundary(10, key=KEY, edges=["a"]), "unknown edge 'a'"),
        (lambda: Polygon(ELL).boundary(10, key=KEY, edges=[]), "edges must not be empty"),
        (lambda: Polygon(ELL).boundary(10, key=KEY, edges=[1, 1]), "edge 1 is given twice"),
        (lambda: Ball([0] * 4, 1).interior(10, rule="gauss"), "dimension 1 to 3, not 4; take rule='sobol'"),
        (lambda: Ball([0] * 4, 1).boundary(10, rule="gauss"), "dimension 1 to 3, not 4"),
        (lambda: SQUARE.contains(np.zeros((3, 3))), r"must have 2 coordinates, got shape \(3, 3\)"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_parts_of_the_boundary_that_the_domain_does_not_have():
    with pytest.raises(TypeError, match="faces"):
        (Interval(0, 1) * Ball([0, 0], 1)).boundary(10, key=KEY, faces=[(0, "lower")])


def test_sobol_takes_any_n_without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (1, 2, 3, 100, 1000):
            assert len(SQUARE.interior(n, rule="sobol")) == n
            assert len(SQUARE.boundary(n, rule="sobol")) == n
