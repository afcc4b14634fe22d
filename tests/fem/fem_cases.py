"""Meshes with every orientation, and the problem of section 5.1.5 of the paper."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import skfem

from natgrad.fem import Form
from tests.helpers import FAST


def shuffled(mesh, seed=0):
    """The same mesh with vertices renumbered, cells reordered and each cell started at another vertex."""
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(mesh.p.shape[1])
    p = np.empty_like(mesh.p)
    p[:, numbers] = mesh.p
    t = numbers[mesh.t][:, rng.permutation(mesh.t.shape[1])]
    turns = symmetries(type(mesh))
    pick = rng.integers(len(turns), size=t.shape[1])
    t = np.stack([t[turns[k], i] for i, k in enumerate(pick)], axis=1)
    return type(mesh)(p, t, sort_t=False) if isinstance(mesh, skfem.MeshTri | skfem.MeshTet) else type(mesh)(p, t)


def symmetries(kind):
    """The orders in which the vertices of a reference cell can be listed so that it remains one (no reflections)."""
    if kind is skfem.MeshQuad:
        return [np.roll(np.arange(4), k) for k in range(4)]
    if kind is skfem.MeshHex:
        corners = kind.elem.refdom.p.T - 0.5
        turns = []
        for axes in [(0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2)]:
            for signs in np.array(np.meshgrid(*[[1, -1]] * 3)).reshape(3, -1).T:
                rotation = np.eye(3)[list(axes)] * signs
                if np.linalg.det(rotation) > 0:
                    image = corners @ rotation
                    turns.append(np.array([np.abs(corners - row).sum(axis=1).argmin() for row in image]))
        return turns
    n = kind.elem.refdom.nnodes
    return [np.r_[np.roll(np.arange(3), k), np.arange(3, n)] for k in range(3)]


def warped(mesh, amount=0.06):
    """Inner vertices moved, so that no cell is a parallelogram."""
    x = mesh.p.copy()
    bump = np.prod(np.sin(np.pi * x), axis=0)
    for i in range(len(x)):
        x[i] += amount * bump * np.cos(3 * x[(i + 1) % len(x)] + i)
    return type(mesh)(x, mesh.t)


def line(n):
    return np.linspace(0, 1, n + 1)


def triangles(n):
    return skfem.MeshTri.init_tensor(line(n), line(n))


def quads(n):
    return skfem.MeshQuad.init_tensor(line(n), line(n))


def tets(n):
    return skfem.MeshTet.init_tensor(line(n), line(n), line(n))


def hexes(n):
    return skfem.MeshHex.init_tensor(line(n), line(n), line(n))


def circle_of_quads():
    """A triangulated disc, each triangle cut into three quadrilaterals at its middle."""
    triangles = skfem.MeshTri.init_circle(1)
    p, t, edges = triangles.p, triangles.t, triangles.t2f + triangles.p.shape[1]
    points = np.hstack([p, p[:, triangles.facets].mean(axis=1), p[:, t].mean(axis=1)])
    middle = points.shape[1] - t.shape[1] + np.arange(t.shape[1])
    # facets of a triangle are (0, 1), (1, 2), (0, 2)
    corners = [
        (t[0], edges[0], middle, edges[2]),
        (t[1], edges[1], middle, edges[0]),
        (t[2], edges[2], middle, edges[1]),
    ]
    return skfem.MeshQuad(points, np.hstack([np.stack(c) for c in corners]))


def kappa(x):
    return 2 + jnp.sin(x[0] + 2 * x[1])


def beta(x):
    return jnp.array([jnp.sqrt(x[0] - x[1] ** 2 + 5), jnp.sqrt(x[1] - x[0] ** 2 + 5)])


def sigma(x):
    return jnp.exp(x[0] / 2 - x[1] / 3) + 2


def wave(x):
    """A solution that coarse meshes resolve."""
    return jnp.sin(2 * x[0] + 1) * jnp.cos(1.5 * x[1] - 0.5) + x[0] * x[1] ** 2


def exact_drt(x):
    a = jnp.sin(3.2 * x[0] * (x[0] - x[1])) * jnp.cos(4.3 * x[1] + x[0])
    return a + jnp.sin(4.6 * (x[0] + 2 * x[1])) * jnp.cos(2.6 * (x[1] - 2 * x[0]))


DRT = Form(kappa, beta, sigma)


def drt_source(x):
    gradient = jax.grad(exact_drt)
    diffusion = jnp.trace(jax.jacfwd(lambda y: kappa(y) * gradient(y))(x))
    return -diffusion + beta(x) @ gradient(x) + sigma(x) * exact_drt(x)


def drt_flux(x, n):
    return kappa(x) * jax.grad(exact_drt)(x) @ n


def minus_laplacian(x):
    return -jnp.trace(jax.hessian(wave)(x))


def minus_laplacian_drt(x):
    return -jnp.trace(jax.hessian(exact_drt)(x))


@partial(jax.jit, compiler_options=FAST)
def both_ways(operator, x):
    """A x and Aᵀ x for all columns at once and for the first alone."""
    first = x[:, 0]
    return operator.apply(x), operator.apply_transpose(x), operator.apply(first), operator.apply_transpose(first)


@partial(jax.jit, compiler_options=FAST)
def applied(operator, x):
    return operator.apply(x)


@partial(jax.jit, compiler_options=FAST)
def evaluated(norms, *values):
    """The errors of several nodal functions."""
    return [norms(v) for v in values]


def random(n, m=None, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(n if m is None else (n, m)))
