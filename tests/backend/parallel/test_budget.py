"""Memory as a promise: what follows from a budget, what is refused in a line, and what is never allocated."""

import itertools

import jax
import jax.numpy as jnp
import pytest

import natgrad as ng
from natgrad.options import parse_bytes
from natgrad.plan import activations, plan
from tests.backend.parallel.worker import poisson


@pytest.fixture(scope="module")
def problem():
    return poisson(width=20, depth=2, interior=2000, boundary=200)


def test_a_large_budget_changes_nothing(problem):
    solver = ng.NystromNGD(max_rank=300)
    fitted = plan(solver, problem, 10**9)
    assert fitted.gramian == "jacobian"
    assert fitted.direction.preconditioner.max_rank == 300


def test_strategy_batch_and_rank_follow_from_a_small_one(problem):
    budget, p = 6 * 10**6, problem.num_parameters
    fitted = plan(ng.NystromNGD(max_rank=300), problem, budget)
    assert fitted.gramian == "batched"
    rank = fitted.direction.preconditioner.max_rank
    assert 10 <= rank < 300
    held = 8 * p * (ng.RowFactor.copies * rank + 2 * fitted.batch) + activations(problem) / 2
    assert 0.5 * budget < held <= budget


def test_a_budget_of_the_solver_itself_is_heard(problem):
    with_budget = ng.NystromNGD(max_rank=300, memory=6 * 10**6)
    assert plan(with_budget, problem).direction.preconditioner.max_rank < 300
    capped, free = (
        jax.eval_shape(lambda s=s: s.init(problem, problem.params, jax.random.key(0)))
        for s in (ng.RPCholNGD(max_rank=300, memory=6 * 10**6), ng.RPCholNGD(max_rank=300))
    )
    largest = lambda tree: max(leaf.size for leaf in jax.tree.leaves(tree))
    assert largest(capped) <= largest(free)


@pytest.mark.parametrize(
    ("solver", "budget", "said"),
    [
        (ng.FullNGD(), 10**6, "factoring the 501×501 Gramian takes"),
        (ng.NystromNGD(), 10**4, "takes"),
        (ng.NystromNGD(gramian="jacobian"), 10**6, "the Gramian by strategy 'jacobian' takes 21.3 MB"),
        (ng.NystromNGD(gramian="linearized"), 10**6, "the Gramian by strategy 'linearized' takes"),
        (ng.NystromNGD(), 0, "memory must be a positive"),
    ],
)
def test_what_cannot_fit_is_said_before_anything_is_made(problem, solver, budget, said):
    with pytest.raises(ValueError, match=said) as caught:
        ng.solve(problem, solver, 1, memory=budget, progress=False)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_what_a_linearized_step_takes(problem):
    solver = ng.NystromNGD(max_rank=20, gramian="linearized")
    shapes = jax.eval_shape(lambda: solver.init(problem, problem.params, jax.random.key(0)))
    found = jax.jit(solver.step).lower(problem, problem.params, shapes).compile().memory_analysis()
    taken = found.temp_size_in_bytes + found.output_size_in_bytes + found.argument_size_in_bytes
    plan(solver, problem, 2 * taken)
    with pytest.raises(ValueError, match="linearized"):
        plan(solver, problem, taken // 2)


@pytest.mark.parametrize(
    ("text", "bytes_"), [("8GB", 8 * 10**9), ("500 mb", 5 * 10**8), ("1GiB", 2**30), ("1e6", 10**6)]
)
def test_sizes(text, bytes_):
    assert parse_bytes("--memory", text) == bytes_


@pytest.mark.parametrize("text", ["", "lots", "-1GB", "0", "8XB", "1.2.3GB"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="--memory takes a size such as 8GB"):
        parse_bytes("--memory", text)


def arrays(jaxpr):
    """The sizes of all arrays a program names, those of its loops and calls included."""
    for equation in jaxpr.eqns:
        yield from (var.aval.size for var in equation.outvars if hasattr(var.aval, "size"))
        for inner in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")
        ):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                yield from arrays(inner)


@pytest.mark.parametrize(("strategy", "stores"), [("jacobian", True), ("batched", False), ("linearized", False)])
def test_who_allocates_a_jacobian(problem, strategy, stores):
    p, q = problem.num_parameters, problem.num_rows
    V = jnp.ones((p, 8))

    def work(problem, V):
        G = ng.gramian(problem, strategy=strategy, batch=50)
        return G.mv(V[:, 0]), G.mm(V), G.diagonal(), G.columns(jnp.arange(4)), G.loss_gradient()

    largest = max(itertools.chain([0], arrays(jax.make_jaxpr(work)(problem, V).jaxpr)))
    assert (largest >= 0.9 * q * p) is stores, (largest, q * p)
