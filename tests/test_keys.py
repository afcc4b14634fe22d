"""No key is used twice. For JAX `fold_in(k, i)` is `split(k, n)[i]`: what looks like two keys may be one.

All that takes a key is made to say which: in compiled steps too, by a callback. A key is drawn from once, or its
children 0, 1, … are handed out once each, by `split` or by `fold_in`; never both.
"""

from collections import Counter
from functools import partial

import jax
import numpy as np
import pytest

import natgrad as ng
from natgrad import zoo
from natgrad.backend import host
from natgrad.domains import rules
from natgrad.experiment.config import keys
from natgrad.optim import KernelNGD
from tests.helpers import FAST

DRAWS = (
    "bits", "categorical", "choice", "gumbel", "normal", "permutation", "rademacher", "randint", "truncated_normal",
    "uniform",
)  # fmt: skip


class Uses:
    """The words of each key that was drawn from, and (words, number) of each child that was handed out."""

    def __init__(self):
        self.draws: list[tuple[int, ...]] = []
        self.children: list[tuple[tuple[int, ...], int]] = []

    def add(self, key, *children) -> None:
        def note(words, *children):
            words = tuple(int(word) for word in np.asarray(words).ravel())
            self.children.extend((words, int(child)) for child in children)
            self.draws.extend([] if children else [words])

        words = jax.random.key_data(key) if host._typed(key) else key
        if isinstance(words, jax.core.Tracer):
            jax.debug.callback(note, words, *children)
        else:
            note(words, *children)

    def twice(self) -> set:
        """What was used more than once."""
        jax.effects_barrier()
        again = {use for uses in (self.draws, self.children) for use, count in Counter(uses).items() if count > 1}
        return again | (set(self.draws) & {parent for parent, _ in self.children})


@pytest.fixture
def uses(monkeypatch):
    found = Uses()

    def listen(module, name, children=lambda *args, **options: ()):
        original = getattr(module, name)

        def heard(key, *args, **options):
            # What a function of `host` does not know how to do goes to `jax.random`, which is heard too.
            if module is not host or host._words(key) is not None:
                found.add(key, *children(*args, **options))
            return original(key, *args, **options)

        monkeypatch.setattr(module, name, heard)

    for name in DRAWS:
        listen(jax.random, name)
    listen(jax.random, "fold_in", lambda number: (number,))
    listen(host, "uniform")  # glorot_normal draws by it
    for module in (jax.random, host):
        listen(module, "split", lambda num=2: range(num))
    scramble = rules.seed_of

    def seed_of(key, piece):  # NumPy's generator takes the key with the number of a piece of the boundary
        if key is not None and piece == 0:
            found.add(key)
        return scramble(key, piece)

    monkeypatch.setattr(rules, "seed_of", seed_of)
    return found


SMALL = {"width": 4, "depth": 1, "interior": 12, "boundary": 8}
PROBLEMS = {
    "poisson3d": SMALL,
    "heat3d": SMALL | {"initial": 6},
    "burgers": {"width": 4, "depth": 1, "interior": 12},
    "kovasznay": SMALL,
    "inverse_poisson": SMALL | {"sensors": 5},
    "poisson_nd": SMALL | {"dim": 2, "fresh": True},
    "deepritz2d": {"width": 4, "depth": 1, "cells": 2, "degree": 2},
}
ROWS = {"max_rank": 6}
SOLVERS = {
    "signs": ng.NystromNGD(**ROWS),
    "gaussian": ng.NystromNGD(test="gaussian", **ROWS),
    "sampling": ng.NystromNGD(test="sampling", **ROWS),
    "published": ng.NystromNGD(recipe="published", **ROWS),
    "rpcholesky": ng.RPCholNGD(**ROWS),
    "published-rpcholesky": ng.RPCholNGD(recipe="published", **ROWS),
    "matrix-free": ng.MatrixFreeNGD(),
    "full": ng.FullNGD(),
    "kernel": KernelNGD(),
    "adam": ng.Adam(total=10),
}


def two_steps(problem, solver, key):
    params, state = problem.params, solver.init(problem, problem.params, key)
    step = partial(jax.jit, compiler_options=FAST)(solver.step)
    for _ in range(2):
        params, state, _ = step(problem, params, state)
    jax.block_until_ready(params)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_run_on_fresh_points_uses_every_key_once(name, uses):
    """The start of the problem, its points of each step, the sketches, and the points of the errors."""
    key = keys(0)
    problem = zoo.get("poisson_nd").build(key.problem, **PROBLEMS["poisson_nd"])
    built = len(uses.draws)
    two_steps(problem, ng.Resampled(SOLVERS[name]), key.solver)
    assert not uses.twice()
    assert len(uses.draws) - built >= 4 + 2 * (name != "adam"), "fresh points of two blocks, and a sketch, at two steps"


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_problem_and_its_solver_share_no_key(name, seed, uses):
    key = keys(seed)
    zoo.get(name).build(key.problem, **PROBLEMS[name])
    built = len(uses.draws)
    assert built > 1
    two_steps(QUADRATIC, ng.NystromNGD(max_rank=2), key.solver)
    assert len(uses.draws) > built
    assert not uses.twice()


def test_the_solver_of_a_user_without_a_key_has_one_of_its_own(uses):
    """key(0) is what most of us start a network from."""
    network = ng.MLP(2, 1, 4, 1, key=jax.random.key(0))
    square = ng.Box([0, 0], [1, 1])
    problem = ng.LeastSquares(
        network,
        fit=ng.Residual(lambda u, x: u(x) - 1.0, square.interior(9, key=jax.random.key(1))),
        exact=lambda x: 1.0,
    )
    ng.solve(problem, ng.FullNGD(), steps=1, progress=False)
    assert len(uses.draws) > 4
    assert not uses.twice()


def test_the_recorder_finds_what_it_is_made_for(uses):
    key = jax.random.key(7)
    _, second = jax.random.split(key)
    jax.jit(lambda key: jax.random.normal(key, (2,)))(second)
    assert not uses.twice()
    jax.random.uniform(jax.random.fold_in(key, 1), (2,))
    plain = lambda key: tuple(int(word) for word in jax.random.key_data(key))
    assert uses.twice() == {(plain(key), 1), plain(second)}
    jax.random.uniform(key)
    assert plain(key) in uses.twice()


def _quadratic():
    points = np.linspace(-1, 1, 9)[:, None]
    network = ng.Apply(lambda w, x: w @ np.ones(2) * x[0], jax.numpy.ones(2))
    return ng.LeastSquares(network, fit=ng.Residual(lambda u, x: u(x) - x[0] ** 2, points))


QUADRATIC = _quadratic()
