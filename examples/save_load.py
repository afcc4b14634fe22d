"""Save a trained network, load it where its code is not, and go on with its training.

    python examples/save_load.py --out out/save

One file holds the network, the solver's state and the history. A network with functions of one's own in it is loaded
into one of the same make.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng

jax.config.update("jax_enable_x64", True)
SQUARE = ng.Box([0, 0], [1, 1])
ELSEWHERE = """
import sys, jax, jax.numpy as jnp, natgrad as ng
jax.config.update("jax_enable_x64", True)
u = ng.load(sys.argv[1])
print(float(u(jnp.array([0.3, 0.5]))))
"""


def exact(x):
    return jnp.prod(jnp.sin(jnp.pi * x))


def poisson() -> ng.LeastSquares:
    return ng.LeastSquares(
        ng.MLP(in_size=2, out_size=1, width=12, depth=2, key=jax.random.key(0)),
        pde=ng.Residual(lambda u, x: ng.laplacian(u, x) + 2 * jnp.pi**2 * exact(x), SQUARE.interior(400, rule="gauss")),
        boundary=ng.Residual(lambda u, x: u(x), SQUARE.boundary(80, rule="gauss"), weight=10),
        exact=exact,
    )


def main(steps: int, folder: Path) -> float:
    folder.mkdir(parents=True, exist_ok=True)
    solver, path = ng.NystromNGD(max_rank=100), folder / "u.ng"
    ng.solve(poisson(), solver, steps, progress=False).save(path)

    # The network, in a process that has none of this code.
    u = ng.load(path)
    told = subprocess.run([sys.executable, "-c", ELSEWHERE, path], capture_output=True, text=True, check=True).stdout
    assert float(told) == float(u(jnp.array([0.3, 0.5])))
    print(f"u(0.3, 0.5) = {float(told):.6f} here and there, {path.stat().st_size / 1000:.0f} kB")

    # The solution goes on as if nothing had happened.
    longer = ng.solve(poisson(), solver, steps, resume=ng.load_solution(path), progress=False)
    whole = ng.solve(poisson(), solver, 2 * steps, progress=False)
    assert np.array_equal(longer.history.loss, whole.history.loss)
    print(f"after {longer.steps} steps: relative H¹ error {longer.errors['h1']:.1e}, bit for bit that of a single run")

    # A function of one's own is in no file: the network is loaded into one that has it.
    bubble = lambda x: jnp.prod(x * (1 - x))
    hard = ng.HardBoundary(u, distance=bubble)
    ng.save(folder / "hard.ng", hard)
    template = poisson().network(poisson().params)
    again = ng.load(folder / "hard.ng", like=ng.HardBoundary(template, distance=bubble))
    assert again(jnp.array([0.3, 0.5])) == hard(jnp.array([0.3, 0.5]))
    return float(longer.errors["h1"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("out/save"))
    options = parser.parse_args()
    assert main(options.steps, options.out) < 1e-3
