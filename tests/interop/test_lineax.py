"""`natgrad.interop.lineax`: preconditioners that Lineax's CG takes, and what they save it."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from tests.helpers import relative
from tests.linalg.matrices import with_spectrum

lx = pytest.importorskip("lineax")
import natgrad.interop.lineax  # noqa: E402

P, RANK, MU = 200, 60, 1e-6
PSD = lx.positive_semidefinite_tag
BUILDERS = {
    "nystrom": natgrad.interop.lineax.nystrom_preconditioner,
    "rpcholesky": natgrad.interop.lineax.rpcholesky_preconditioner,
}


def matrix():
    """Eigenvalues that fall fast to 1e-6, as those of Gramians do."""
    return with_spectrum(np.maximum(0.8 ** np.arange(P), 1e-9))


def solve(operator, b, **options):
    """The solution by CG and how many iterations it took."""
    found = lx.linear_solve(operator, b, lx.CG(1e-8, 1e-8, max_steps=3000), options=options)
    return found.value, int(found.stats["num_steps"])


@pytest.mark.parametrize("name", BUILDERS)
def test_cg_needs_several_times_fewer_iterations(name):
    A = matrix()
    damped = lx.MatrixLinearOperator(A + MU * jnp.eye(P), PSD)
    b = jax.random.normal(jax.random.key(0), (P,))
    preconditioner = BUILDERS[name](lx.MatrixLinearOperator(A, PSD), RANK, MU, key=jax.random.key(1))
    assert lx.is_positive_semidefinite(preconditioner)
    plain, many = solve(damped, b)
    x, few = solve(damped, b, preconditioner=preconditioner)
    assert relative(x, jnp.linalg.solve(A + MU * jnp.eye(P), b)) < 1e-5
    assert relative(plain, x) < 1e-3
    assert 5 * few < many


def test_functions_of_pytrees():
    """The operator is a function of a dict; with μ = 0 the preconditioner is that of the operator itself."""
    A = matrix() + MU * jnp.eye(P)
    b = {"u": jnp.ones((2, 50)), "v": jnp.linspace(0.0, 1.0, 100)}
    unravel = ravel_pytree(b)[1]
    mv = lambda x: unravel(A @ ravel_pytree(x)[0])
    operator = lx.FunctionLinearOperator(mv, jax.eval_shape(lambda: b), PSD)
    preconditioner = natgrad.interop.lineax.nystrom_preconditioner(operator, 80, key=jax.random.key(1))
    _, many = solve(operator, b)
    x, few = solve(operator, b, preconditioner=preconditioner)
    assert jax.tree.structure(x) == jax.tree.structure(b)
    assert relative(ravel_pytree(mv(x))[0], ravel_pytree(b)[0]) < 1e-6
    assert 5 * few < many


def test_full_rank_is_the_inverse():
    A = with_spectrum(np.logspace(0, -3, 20))
    operator = lx.MatrixLinearOperator(A, PSD)
    for build in BUILDERS.values():
        inverse = build(operator, 20, 0.01, key=jax.random.key(0)).as_matrix()
        assert relative(inverse, jnp.linalg.inv(A + 0.01 * jnp.eye(20))) < 1e-8


def test_inside_jit_with_a_traced_mu():
    A = with_spectrum(np.logspace(0, -3, 20))

    @jax.jit
    def apply(A, mu):
        operator = lx.MatrixLinearOperator(A, PSD)
        return natgrad.interop.lineax.rpcholesky_preconditioner(
            operator, 20, mu, key=jax.random.key(0), diagonal=jnp.diagonal(A)
        ).mv(jnp.ones(20))

    assert relative(apply(A, 0.01), jnp.linalg.solve(A + 0.01 * jnp.eye(20), jnp.ones(20))) < 1e-8


def test_wrong_input():
    A, key = jnp.eye(5), jax.random.key(0)
    operator = lx.MatrixLinearOperator(A, PSD)
    build = natgrad.interop.lineax.nystrom_preconditioner
    with pytest.raises(ValueError, match="made for a lineax operator, got"):
        build(A, 3, key=key)
    with pytest.raises(ValueError, match=r"tagged lineax\.positive_semidefinite_tag"):
        build(lx.MatrixLinearOperator(A), 3, key=key)
    with pytest.raises(ValueError, match="rank must lie between 1 and the operator's size 5, got 6"):
        build(operator, 6, key=key)
    with pytest.raises(ValueError, match="mu must not be negative"):
        build(operator, 3, -1.0, key=key)
    with pytest.raises(ValueError, match=r"has shape \(5,\), got \(4,\)"):
        natgrad.interop.lineax.rpcholesky_preconditioner(operator, 3, 0.1, key=key, diagonal=jnp.ones(4))


def test_without_lineax_one_line_says_so():
    code = "import sys; sys.modules['lineax'] = None; import natgrad.interop.lineax"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    line = "natgrad.interop.lineax needs lineax: pip install 'natgrad[lineax]'"
    assert told.splitlines()[-1] == f"natgrad.extras.MissingExtra: {line}"
