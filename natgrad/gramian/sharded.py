"""The Gramian of a sharded problem, seen from outside: every product runs on all of them.

Within a step (`natgrad.backend.parallel.everywhere`) the strategies do this themselves, with what they stored; here
each product builds the strategy anew.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, PyTree

from natgrad.backend.parallel import everywhere
from natgrad.gramian.base import Gramian
from natgrad.problem import Problem


@partial(jax.jit, static_argnums=(0, 1))
def _product(build: Callable[..., Gramian], method: str, problem: Problem, params: PyTree, *args: Any) -> Array:
    call = lambda problem, params, *args: getattr(build(problem, params), method)(*args)
    return everywhere(call, problem, params, *args)


class Sharded(Gramian):
    """G of a sharded problem; `build(problem, params)` is the strategy on the points of one device."""

    problem: Problem
    params: PyTree
    build: Callable[..., Gramian] = eqx.field(static=True)
    reason: str = eqx.field(static=True)
    strategy: ClassVar[str] = "sharded"

    def _call(self, method: str, *args: Any) -> Array:
        return _product(self.build, method, self.problem, self.params, *args)

    def mv(self, v):
        return self._call("mv", v)

    def mm(self, V):
        return self._call("mm", V)

    def diagonal(self):
        return self._call("diagonal")

    def columns(self, indices):
        return self._call("columns", indices)

    def as_matrix(self):
        return self._call("as_matrix")

    def loss_gradient(self) -> Float[Array, " p"]:
        return self._call("loss_gradient")

    def pull(self, values):
        raise ValueError("the rows of a sharded problem are on several devices: pull them within `everywhere`")
