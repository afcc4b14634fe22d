"""`ng.NGD` chooses its form by the sizes of a problem, and is that form from the first step on."""

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.backend import tuning
from natgrad.backend.tuning import ByDevice
from natgrad.optim.fastest import fastest
from tests.feinns import ritz
from tests.helpers import FAST, poisson

KEY = jax.random.key(0)


@pytest.fixture
def most(monkeypatch):
    """Sets the number of parameters up to which G is factored."""
    return lambda count: monkeypatch.setattr(tuning, "DIRECT_PARAMETERS", ByDevice(cpu=count, other=count))


@pytest.mark.parametrize(
    ("points", "limit", "form"),
    [
        (200, 100, "direct"),  # more rows than parameters
        (200, 50, "rows"),  # p = 67 is too many
        (20, 100, "kernel"),  # q = 25
        (20, 20, "rows"),  # q is too many for K, and p for G
        (40, 100, "direct"),  # q = 52 is not much less than p
    ],
)
def test_the_form_follows_the_sizes(most, points, limit, form):
    most(limit)
    problem = poisson(points=points, boundary=points // 4 + 2)
    assert problem.num_parameters == 67
    assert fastest(problem) == form


def test_many_more_parameters_than_rows_have_a_kernel_whatever_their_number(most):
    most(3)
    assert fastest(poisson(points=4, boundary=2)) == "kernel"


def test_rows_that_are_coupled_have_no_kernel(most):
    most(1000)
    few = ritz()
    assert few.num_rows < few.num_parameters
    assert fastest(few) == "direct"
    with pytest.raises(ValueError, match=r"couples its rows, so that it has no kernel: NystromNGD, say"):
        ng.plan(ng.KernelNGD(), few)


@pytest.mark.parametrize(
    ("points", "limit", "same"),
    [(60, 100, ng.FullNGD), (20, 100, ng.KernelNGD), (60, 50, ng.NystromNGD)],
    ids=["direct", "kernel", "rows"],
)
def test_its_steps_are_those_of_the_form(most, points, limit, same):
    most(limit)
    problem = poisson(points=points, boundary=12)
    ends = []
    for solver in (ng.NGD(acceleration=0.0), ng.plan(same(acceleration=0.0), problem)):
        params, state = problem.params, solver.init(problem, problem.params, KEY)
        step = jax.jit(solver.step, compiler_options=FAST)
        for _ in range(2):
            params, state, info = step(problem, params, state)
        ends.append((np.asarray(ravel_pytree(params)[0]), float(info.mu)))
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1]
    assert ng.plan(ng.NGD(), problem) == ng.plan(same(), problem)


def test_its_options_reach_the_form():
    problem = poisson()
    planned = ng.plan(ng.NGD(gamma=3.0, search=ng.GridSearch(points=7), acceleration=0.5), problem)
    assert planned.damping.rule.gamma == 3.0
    assert planned.search == ng.GridSearch(points=7)
    assert planned.acceleration == 0.5
    with pytest.raises(ValueError, match=r"takes .* more than the 1 kB it may"):
        ng.plan(ng.NGD(memory=1000), problem)
