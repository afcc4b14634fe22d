"""A perforated plate from five primitives: −Δu = f, u = 0 on the rim, no flux through the holes.

    python examples/perforated_plate.py [--steps 200]

The plate is a square minus four discs. Points on the rim and on the holes are drawn apart, with normals that look into
the holes. The solution is compared with finite elements of degree 2 by scikit-fem, on a mesh of its own.
"""

import argparse
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
import skfem
from skfem.models.poisson import laplace, mass

import natgrad as ng

jax.config.update("jax_enable_x64", True)
SQUARE = ng.Box([0, 0], [1, 1])
HOLES = [ng.Ball([x, y], 0.15) for x in (0.25, 0.75) for y in (0.25, 0.75)]
PLATE = reduce(lambda plate, hole: plate - hole, HOLES, SQUARE)


def load(x):
    return 2 * jnp.pi**2 * jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])


def reference(around: int = 128, layers: int = 12) -> tuple:
    """Nodes, the solution there, and the matrices of the L² and the H¹ norm: cells from each hole to a square."""
    angle = 2 * np.pi * np.arange(around) / around
    circle = np.stack([np.cos(angle), np.sin(angle)])
    square = 0.25 * circle / np.abs(circle).max(axis=0)
    radius = HOLES[0].radius * np.sqrt(2 * np.pi / around / np.sin(2 * np.pi / around))  # polygons of the discs' area
    share = np.linspace(0, 1, layers + 1)[:, None, None]
    ring = (1 - share) * radius * circle + share * square  # (layers + 1, 2, around)
    points = np.concatenate([(ring + np.array(hole.center)[:, None]).swapaxes(1, 2).reshape(-1, 2) for hole in HOLES])
    i, j = np.meshgrid(np.arange(layers), np.arange(around), indexing="ij")
    at = lambda i, j: (i * around + j % around).ravel()
    cells = np.stack([at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)])
    cells = np.concatenate([cells + k * (layers + 1) * around for k in range(len(HOLES))], axis=1)
    _, first, number = np.unique(np.round(points, 9), axis=0, return_index=True, return_inverse=True)
    points, cells = map(np.ascontiguousarray, (points[first].T, number.ravel()[cells]))
    basis = skfem.Basis(skfem.MeshQuad(points, cells), skfem.ElementQuad2())
    rim = basis.get_dofs(lambda x: np.isclose(np.abs(x - 0.5).max(axis=0), 0.5))
    f = skfem.LinearForm(lambda v, w: np.asarray(load(w.x)) * v).assemble(basis)
    stiffness, l2 = laplace.assemble(basis), mass.assemble(basis)
    u = skfem.solve(*skfem.condense(stiffness, f, D=rim))
    return basis.doflocs.T, u, l2, l2 + stiffness


def main(steps: int = 200) -> dict:
    key = jax.random.split(jax.random.key(0), 4)
    problem = ng.LeastSquares(
        ng.Normalized(ng.MLP(in_size=2, out_size=1, width=32, depth=2, key=key[0]), PLATE),
        pde=ng.Residual(lambda u, x: ng.laplacian(u, x) + load(x), PLATE.interior(3000, key=key[1], rule="sobol")),
        rim=ng.Residual(lambda u, x: u(x), PLATE.boundary(400, rule="gauss", part=SQUARE), weight=100),
        holes=ng.Residual(
            lambda u, x, n: ng.gradient(u, x) @ n,
            points := PLATE.boundary(480, rule="gauss", part=HOLES),
            data=points.normals,
            weight=10,
        ),
    )
    solution = ng.solve(problem, ng.NystromNGD(max_rank=500), steps=steps)
    nodes, u, *norms = reference()
    away = np.asarray(jax.vmap(solution.u)(nodes)) - u
    l2, h1 = (float(np.sqrt((away @ norm @ away) / (u @ norm @ u))) for norm in norms)
    print(f"loss {solution.loss:.1e}, at independent points {solution.validation:.1e}")
    print(f"relative L² error {l2:.1e}, relative H¹ error {h1:.1e} against finite elements with {len(u)} nodes")
    return {"l2": l2, "h1": h1}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    assert main(parser.parse_args().steps)["l2"] < 1e-4
