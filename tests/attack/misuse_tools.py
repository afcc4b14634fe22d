"""What the tables of wrong uses are written in: a call, what it is called with, and what it must say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng
from tests.helpers import poisson

nan, inf = float("nan"), float("inf")
key = jax.random.key
X = np.random.default_rng(0).uniform(size=(9, 2))
SQUARE, CUBE = ng.Box([0, 0], [1, 1]), ng.Box([0, 0, 0], [1, 1, 1])
NET = ng.MLP(2, 1, 3, 1, key=key(0))
TWO, SIX = ng.MLP(2, 2, 3, 1, key=key(0)), ng.MLP(6, 1, 3, 1, key=key(0))
VALUE = lambda u, x: u(x)
WAVE = lambda x: jnp.sin(x[0])
COUNT = (0, -1, 1.5, nan, "x")  # never a number of anything
RATE = (-1, nan, inf, "x")  # never a tolerance or a scale


@dataclass(frozen=True)
class Case:
    """A call, and what its refusal must say (a pattern); None for one that must give True."""

    name: str
    call: Callable[[], Any]
    told: str | None


def each(name: str, call: Callable[[Any], Any], values: Sequence[Any], told: str | None = None) -> list[Case]:
    """A case for each of the values of an argument; `told` is the argument's name if nothing else is said."""
    argument = name.partition("(")[2].rstrip(")") or name
    return [Case(f"{name} = {_word(value)}", lambda value=value: call(value), told or argument) for value in values]


def _word(value: Any) -> str:
    """A value in a few words."""
    text = "a function" if callable(value) and not isinstance(value, type) else " ".join(repr(value).split())
    return text if len(text) < 50 else f"{text[:45]}…"


@cache
def problem() -> ng.LeastSquares:
    return poisson(points=16, boundary=8, width=3, depth=1)


@cache
def space() -> Any:
    return ng.fem.rectangle((2, 2), degree=1)


def train(solver: Any = None, steps: Any = 1, of: Any = None, **options: Any) -> ng.Solution:
    return ng.solve(
        problem() if of is None else of, ng.FullNGD() if solver is None else solver, steps, progress=False, **options
    )


@cache
def trained() -> ng.Solution:
    return train(steps=2)


def least(
    fn: Callable = VALUE, points: Any = X, net: Any = NET, exact: Any = None, evaluation: Any = None, **options: Any
):
    return ng.LeastSquares(net, pde=ng.Residual(fn, points, **options), exact=exact, evaluation=evaluation)


def wave():
    return least(lambda u, x: u(x) - WAVE(x), SQUARE.interior(16, key=key(0)), exact=WAVE)


def weak(form: Any = None, net: Any = NET, **options: Any):
    return ng.FEINNEnergy(
        net, space(), ng.fem.Form() if form is None else form, **{"load": 1.0, "dirichlet": 0.0} | options
    )


def by_hand(x: Any = X, weights: Any = None) -> ng.Points:
    return ng.Points(jnp.asarray(x), jnp.full(len(x), 1 / max(len(x), 1)) if weights is None else jnp.asarray(weights))
