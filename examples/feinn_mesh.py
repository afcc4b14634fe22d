"""A weak form on a mesh from a file: heat conduction −∇·(κ∇u) = 0 in a plate with a hole and a notch.

    python examples/feinn_mesh.py [--mesh examples/plate.msh]

The mesh was made by Gmsh; its physical groups "cold", "hot" and "insulated" name the parts of the boundary. Whatever
meshio reads will do (`pip install meshio`), with these three names.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng

jax.config.update("jax_enable_x64", True)
PLATE = Path(__file__).parent / "plate.msh"


def main(path: Path, steps: int) -> float:
    form = ng.fem.Form(diffusion=lambda x: 1 + x[1])
    space = ng.fem.Space(ng.Mesh(path), degree=2)
    problem = ng.FEINNEnergy(
        ng.MLP(in_size=2, out_size=1, width=16, depth=2, key=jax.random.key(0)),
        space,
        form,
        dirichlet={"cold": 0.0, "hot": 1.0},  # of the insulated part nothing is said: no flux
    )
    solution = ng.solve(problem, ng.NystromNGD(max_rank=200), steps=steps)

    # What the mesh allows: the Galerkin solution, by a sparse solve.
    galerkin = space.galerkin(form, space.load(), problem.lifting, space.free(["cold", "hot"]))
    away, norm = np.asarray(problem.nodal(solution.params)) - galerkin, space.assemble(ng.fem.H1)
    error = np.sqrt((away @ norm @ away) / (galerkin @ norm @ galerkin))
    print(f"{space}: energy {solution.loss:.8f}, u(1, 0.5) = {solution.u(jnp.array([1.0, 0.5])):.6f}")
    print(f"relative H¹ error against the Galerkin solution {error:.1e}")
    return float(error)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", type=Path, default=PLATE)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    assert main(options.mesh, options.steps) < 2e-2
