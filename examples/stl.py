"""A domain from an STL file: −Δu = f in an angle bracket, with the exact u on its surface.

    python examples/stl.py [--surface part.stl]

Without a file the script writes one, of 20 triangles. Whatever meshio reads will do (`pip install meshio`) if it is
closed. Points inside are drawn by rejection; points on the surface carry the normals of its triangles.
"""

import argparse
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng

jax.config.update("jax_enable_x64", True)


def write_bracket(path: Path) -> Path:
    """An L of height 0.5, as text."""
    ell = ng.Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
    low, high = ([(*vertex, z) for vertex in ell.vertices] for z in (0.0, 0.5))
    triangles = [(low[a], low[c], low[b]) for a, b, c in ell.triangles]
    triangles += [(high[a], high[b], high[c]) for a, b, c in ell.triangles]
    for i in range(6):
        j = (i + 1) % 6
        triangles += [(low[i], low[j], high[j]), (low[i], high[j], high[i])]
    lines = ["solid bracket"]
    for triangle in triangles:
        corners = [f"vertex {x} {y} {z}" for x, y, z in triangle]
        lines += ["facet normal 0 0 0", "outer loop", *corners, "endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid bracket", ""]))
    return path


def exact(x):
    return jnp.sin(x[0]) * jnp.cos(x[1]) * jnp.exp(x[2])


def main(path: Path | None = None, steps: int = 60) -> float:
    with tempfile.TemporaryDirectory() as folder:
        part = ng.Surface(path or write_bracket(Path(folder) / "bracket.stl"))
    around = part.boundary(600, rule="sobol")
    flux = float(jnp.sum(around.weights[:, None] * around.x * around.normals))
    print(f"{part}: volume {part.measure:.6f}, a third of the flux of x through its surface {flux / 3:.6f}")
    problem = ng.LeastSquares(
        ng.Normalized(ng.MLP(in_size=3, out_size=1, width=16, depth=2, key=jax.random.key(0)), part),
        pde=ng.Residual(lambda u, x: ng.laplacian(u, x) + exact(x), part.interior(1000, rule="sobol")),
        surface=ng.Residual(lambda u, x: u(x) - exact(x), around, weight=10),
        exact=exact,
    )
    solution = ng.solve(problem, ng.NystromNGD(max_rank=200), steps=steps)
    inside = np.mean(part.contains(np.random.default_rng(0).uniform(*map(np.array, part.bounds()), (1000, 3))))
    print(f"{inside:.0%} of the box around it are inside; relative H¹ error {solution.errors['h1']:.1e}")
    return solution.errors["h1"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surface", type=Path, default=None)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    assert main(options.surface, options.steps) < 1e-3
