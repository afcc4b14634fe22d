"""Plain functions as problems, and the standard ones that optimizers are tried on."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from natgrad.problem import Problem


class Function(Problem):
    """A function of the parameters, as a problem without network, points or metric."""

    fn: Callable = eqx.field(static=True)
    params: Any
    static: Any = None
    features: Any = ()
    norms: Any = None
    least_squares: ClassVar[bool] = False

    def loss(self, params):
        return self.fn(params)

    def changes(self, params):
        old = self.fn(params)
        return lambda new: self.fn(new) - old


def rosenbrock(x: Array) -> Array:
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def powell(x: Array) -> Array:
    """Singular Hessian at the minimum 0."""
    return (x[0] + 10 * x[1]) ** 2 + 5 * (x[2] - x[3]) ** 2 + (x[1] - 2 * x[2]) ** 4 + 10 * (x[0] - x[3]) ** 4


def beale(x: Array) -> Array:
    return sum((c - x[0] + x[0] * x[1] ** k) ** 2 for k, c in ((1, 1.5), (2, 2.25), (3, 2.625)))


def quadratic(x: Array) -> Array:
    """Condition number 1e6."""
    return 0.5 * jnp.sum(jnp.logspace(0, 6, x.size, dtype=x.dtype) * x**2)


def standard() -> dict[str, tuple[Callable, Array]]:
    """Name: function and start; every minimum is 0."""
    return {
        "rosenbrock-2": (rosenbrock, jnp.array([-1.2, 1.0])),
        "rosenbrock-10": (rosenbrock, jnp.zeros(10)),  # from x₁ < 0 there is a second minimum
        "rosenbrock-100": (rosenbrock, jnp.zeros(100)),
        "powell": (powell, jnp.array([3.0, -1.0, 0.0, 1.0])),
        "beale": (beale, jnp.array([1.0, 1.0])),
        "quadratic-50": (quadratic, jnp.ones(50)),
    }


def minimize(solver: Any, problem: Problem, steps: int, gradient: float = 0.0, options: dict | None = None):
    """The parameters, the state and what each step reported, until max |∇L| ≤ gradient or a step is rejected."""
    params, state = problem.params, solver.init(problem, problem.params, jax.random.key(0))
    step, infos = jax.jit(solver.step, compiler_options=options), []
    while len(infos) < steps and float(jnp.max(jnp.abs(state.gradient))) > gradient:
        params, state, info = step(problem, params, state)
        infos.append(jax.device_get(info))
        if not infos[-1].accepted:
            break
    return params, state, infos
