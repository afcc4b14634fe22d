"""Out to other tools: heat in a disc as a series for ParaView, as a table, on a mesh of Gmsh's, and as a movie.

python examples/export.py --out out/export      # then open out/export/u.pvd
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import meshio

import natgrad as ng
from natgrad.experiment.movie import movie

jax.config.update("jax_enable_x64", True)
HEAT = ng.Interval(0, 1) * ng.Ball([0, 0], 1)  # points (t, x, y)
PLATE = Path(__file__).parent / "plate.msh"


def exact(z):
    return jnp.exp(-z[0]) * jnp.sin(0.6 * z[1]) * jnp.cos(0.8 * z[2])  # u_t = Δu, since 0.6² + 0.8² = 1


def heat(u, z):
    _, gradient, laplacian = ng.value_gradient_laplacian(u, z, dims=(1, 2))
    return gradient[0] - laplacian


def main(steps: int, folder: Path) -> float:
    folder.mkdir(parents=True, exist_ok=True)
    known = HEAT.boundary(200, rule="sobol") + HEAT.initial(200, rule="sobol")
    problem = ng.LeastSquares(
        ng.MLP(in_size=3, out_size=1, width=12, depth=2, key=jax.random.key(0)),
        pde=ng.Residual(heat, HEAT.interior(800, rule="sobol")),
        data=ng.Residual(lambda u, z: u(z) - exact(z), known),
        exact=exact,
    )
    solution = ng.solve(problem, ng.NystromNGD(max_rank=100), steps, progress=False)

    series = solution.to_vtk(folder / "u.pvd", HEAT, exact=exact, resolution=40, times=11, force=True)
    solution.to_vtk(folder / "u.csv", HEAT, exact=exact, resolution=10, times=[0.5], force=True)
    solution.to_vtk(folder / "plate.pvd", HEAT, mesh=PLATE, times=3, force=True)
    movie(folder / "u.gif", solution.u, HEAT, exact=exact, times=11, force=True)

    last = meshio.read(series[-2])
    largest = abs(last.point_data["error u"]).max()
    print(f"{series[-1]}: {len(series) - 1} times of {len(last.points)} points, largest error at the end {largest:.1e}")
    print(f"relative H¹ error {solution.errors['h1']:.1e}")
    return float(largest)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("out/export"))
    options = parser.parse_args()
    assert main(options.steps, options.out) < 1e-2
