"""Randomized preconditioners for the conjugate gradients of Lineax.

    operator = lineax.FunctionLinearOperator(mv, x_structure, lineax.positive_semidefinite_tag)
    preconditioner = natgrad.interop.lineax.nystrom_preconditioner(operator, rank=50, mu=1e-6, key=jax.random.key(0))
    solution = lineax.linear_solve(
        operator, b, lineax.CG(rtol=1e-8, atol=1e-8), options={"preconditioner": preconditioner}
    )

Both approximate a symmetric positive semidefinite A by U Λ Uᵀ of small rank and invert U Λ Uᵀ + μI, corrected on the
complement of U; see `natgrad.linalg` for the formulas. What CG is given to solve is A + μI, or A itself with μ = 0.
Operators act on pytrees; vectors are flattened in the order of `jax.flatten_util.ravel_pytree`.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from natgrad import linalg
from natgrad.extras import needs

with needs("natgrad.interop.lineax", "lineax"):
    import lineax as lx


def nystrom_preconditioner(
    operator: lx.AbstractLinearOperator, rank: int, mu: float | Float[Array, ""] = 0.0, *, key: PRNGKeyArray
) -> lx.FunctionLinearOperator:
    """(A + μI)⁻¹, approximated from `rank` products of A (p × p) with Gaussian vectors (Frangella, Tropp and Udell,
    2023).

    Arguments:
        operator: A, symmetric positive semidefinite.
        rank: products with A, and directions it is then known in; those beyond are treated as λ_rank + μ.
        mu: μ ≥ 0.
        key: the randomness of the vectors.
    """
    _check(operator, rank, mu)
    return _operator(operator, _nystrom(operator, rank, mu, key))


def rpcholesky_preconditioner(
    operator: lx.AbstractLinearOperator,
    rank: int,
    mu: float | Float[Array, ""],
    *,
    key: PRNGKeyArray,
    diagonal: Float[Array, " p"] | None = None,
    block: int = 20,
) -> lx.FunctionLinearOperator:
    """(A + μI)⁻¹, approximated from `rank` columns of A (p × p), drawn by its diagonal (Chen, Epperly, Tropp and
    Webber, 2025).

    Arguments:
        operator: A, symmetric positive semidefinite.
        rank: columns at most.
        mu: μ > 0: directions that no column knows are treated as μ.
        key: the randomness of the pivots.
        diagonal: diag A (p,), where it is known; `lineax.diagonal(operator)` otherwise, which makes A a matrix first if
            it is not one.
        block: columns drawn at a time.
    """
    _check(operator, rank, mu)
    if diagonal is not None and jnp.shape(diagonal) != (operator.in_size(),):
        raise ValueError(f"the diagonal of this operator has shape ({operator.in_size()},), got {jnp.shape(diagonal)}")
    return _operator(operator, _rpcholesky(operator, rank, mu, key, diagonal, block))


@eqx.filter_jit
def _nystrom(operator, rank, mu, key) -> linalg.LowRankInverse:
    mv, zero = _flat(operator)
    omega = linalg.gaussian(key, zero.size, rank, dtype=zero.dtype)
    return linalg.nystrom_preconditioner(linalg.nystrom(jax.vmap(mv, 1, 1), omega), mu)


@eqx.filter_jit
def _rpcholesky(operator, rank, mu, key, diagonal, block):
    mv, zero = _flat(operator)
    diagonal = lx.diagonal(operator) if diagonal is None else jnp.asarray(diagonal, zero.dtype)
    columns = lambda indices: jax.vmap(mv, 0, 1)(jax.nn.one_hot(indices, zero.size, dtype=zero.dtype))
    factor = linalg.rpcholesky(columns, diagonal, key, max_rank=rank, block=block)
    return linalg.rpcholesky_preconditioner(factor, mu)


def _check(operator: lx.AbstractLinearOperator, rank: int, mu: float | Array) -> None:
    if not isinstance(operator, lx.AbstractLinearOperator):
        raise ValueError(f"a preconditioner is made for a lineax operator, got {type(operator).__name__}")
    if operator.in_structure() != operator.out_structure() or not lx.is_positive_semidefinite(operator):
        raise ValueError(
            "the operator must be tagged lineax.positive_semidefinite_tag: the preconditioner relies on it"
        )
    size = operator.in_size()
    if not 1 <= rank <= size:
        raise ValueError(f"rank must lie between 1 and the operator's size {size}, got {rank}")
    if isinstance(mu, int | float) and mu < 0:
        raise ValueError(f"mu must not be negative, got {mu}")


def _flat(operator: lx.AbstractLinearOperator) -> tuple[Callable[[Array], Array], Float[Array, " p"]]:
    """v ↦ A v on flat vectors, and the zero of these."""
    zero, unravel = ravel_pytree(_zeros(operator))
    linear = lx.linearise(operator)
    return lambda v: ravel_pytree(linear.mv(unravel(v)))[0], zero


def _operator(operator: lx.AbstractLinearOperator, inverse: Callable[[Array], Array]) -> lx.FunctionLinearOperator:
    """A function of flat vectors as an operator on the vectors of another."""
    unravel = ravel_pytree(_zeros(operator))[1]
    apply = lambda v: unravel(inverse(ravel_pytree(v)[0]))
    return lx.FunctionLinearOperator(apply, operator.in_structure(), lx.positive_semidefinite_tag)


def _zeros(operator: lx.AbstractLinearOperator):
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), operator.in_structure())
