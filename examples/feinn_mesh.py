"""A weak form on a mesh of your own: −∇·(κ∇u) = 1 in a disc with a hole, by a finite-element interpolated network.

Any scikit-fem mesh will do, imported ones too: `mesh = skfem.Mesh.load("part.msh")` reads what meshio reads.

    python examples/feinn_mesh.py
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import skfem

import natgrad as ng

jax.config.update("jax_enable_x64", True)


def ring(refinements: int) -> skfem.MeshTri:
    """1/2 < |x| < 1, with named boundaries: a rectangle rolled up, its two ends joined."""
    mesh = skfem.MeshTri.init_tensor(np.linspace(0.5, 1, 3), np.linspace(0, 1, 13)).refined(refinements)
    r, t = mesh.p
    circle = np.stack([r * np.cos(2 * np.pi * t), r * np.sin(2 * np.pi * t)])
    unique, index = np.unique(np.round(circle, 10), axis=1, return_inverse=True)
    mesh = skfem.MeshTri(unique, index.ravel()[mesh.t])
    return mesh.with_boundaries({"inner": lambda x: np.hypot(*x) < 0.75, "outer": lambda x: np.hypot(*x) > 0.75})


def main(steps: int) -> float:
    kappa = lambda x: 1 + x[0] ** 2
    space = ng.fem.Space(ring(2), degree=2)
    problem = ng.FEINNEnergy(
        ng.MLP(in_size=2, out_size=1, width=16, depth=2, key=jax.random.key(0)),
        space,
        ng.fem.Form(diffusion=kappa),
        load=1.0,
        dirichlet={"outer": 0.0},  # on the inner circle nothing is said: ∂u/∂n = 0
    )
    solution = ng.solve(problem, ng.NystromNGD(max_rank=200), steps=steps)

    # What the mesh allows: the Galerkin solution, by a sparse solve.
    free = space.free("outer")
    galerkin = space.galerkin(ng.fem.Form(diffusion=kappa), space.load(1.0), free=free)
    away, norm = np.asarray(problem.nodal(solution.params)) - galerkin, space.assemble(ng.fem.H1)
    error = np.sqrt((away @ norm @ away) / (galerkin @ norm @ galerkin))
    print(f"{space}: energy {solution.loss:.8f}, u(0.6, 0) = {solution.u(jnp.array([0.6, 0.0])):.6f}")
    print(f"relative H¹ error against the Galerkin solution {error:.1e}")
    return float(error)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=150)
    assert main(parser.parse_args().steps) < 2e-2
