"""All cases: the wrong ones of the tables, and some that look wrong and are right."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng
from tests.attack.misuse_options import DOMAINS, NETWORKS, OPTIONS
from tests.attack.misuse_problems import ELEMENTS, PROBLEMS, SOLVE
from tests.attack.misuse_tools import NET, SQUARE, Case, X, key, least, problem, train, trained, wave


def fine(solution: ng.Solution, status: str = "steps") -> Any:
    """True, or what is odd about a solution."""
    good = bool(np.isfinite(solution.loss)) and solution.status == status
    return True if good else (solution.status, solution.loss)


def descends(**options: Any) -> Any:
    """Whether three steps lower the loss."""
    solution = train(steps=3, **options)
    return fine(solution) if solution.loss < float(problem().loss(problem().params)) else solution.history.loss


def right(name: str, call: Callable[[], Any]) -> Case:
    return Case(name, call, None)


RIGHT = [
    right("memory in words", lambda: descends(memory="8GB")),
    right("an integer for a key", lambda: descends(key=0)),
    right("NumPy integers", lambda: fine(train(steps=np.int64(2), evaluate_every=np.int32(1)))),
    right("integer keys of networks", lambda: bool(jnp.all(ng.MLP(2, 1, 3, 1, key=0)(X[0]) == NET(X[0])))),
    right(
        "integer keys of points", lambda: bool(jnp.all(SQUARE.interior(5, key=3).x == SQUARE.interior(5, key=key(3)).x))
    ),
    right(
        "raw keys",
        lambda: bool(jnp.all(SQUARE.interior(5, key=jax.random.PRNGKey(3)).x == SQUARE.interior(5, key=key(3)).x)),
    ),
    right("a zero residual", lambda: fine(train(of=least(lambda u, x: 0 * u(x)), steps=5), "converged")),
    right(
        "a problem solved long ago",
        lambda: fine(train(ng.FullNGD(), steps=400, of=least(lambda u, x: u(x) - 1.0)), "converged"),
    ),
    right("errors reach their target", lambda: fine(train(steps=99, target_error=0.5, of=wave()), "target error")),
    right("a loss reaches its target", lambda: fine(train(steps=9, target_loss=1e9), "target loss")),
    right("going on", lambda: train(steps=2, resume=trained()).steps == 4),
    right("going on is going on", lambda: bool(train(steps=2, resume=trained()).loss == train(steps=4).loss)),
    right("one point", lambda: fine(train(of=least(points=X[:1], fn=lambda u, x: u(x) - 1.0)))),
    right("batches larger than the points", lambda: descends(solver=ng.NystromNGD(gramian="batched", batch=999))),
    right("a rank larger than the parameters", lambda: descends(solver=ng.NystromNGD(max_rank=9999))),
    right("widths in a list", lambda: ng.num_parameters(ng.MLP(2, 1, [3, 4], key=key(0))) == 9 + 16 + 5),
    right("no hidden layer", lambda: ng.num_parameters(ng.MLP(2, 1, 3, 0, key=key(0))) == 3),
    right("a callback's word", lambda: fine(train(steps=9, callback=lambda r: "enough"), "enough")),
    right("a grid of steps", lambda: descends(solver=ng.FullNGD(search=ng.GridSearch(points=5)))),
    right(
        "every optimizer",
        lambda: all(fine(train(s, steps=2)) is True for s in (ng.Adam(), ng.BFGS(), ng.LBFGS(), ng.SSBroyden())),
    ),
]

CASES = [*OPTIONS, *NETWORKS, *DOMAINS, *PROBLEMS, *ELEMENTS, *SOLVE, *RIGHT]
