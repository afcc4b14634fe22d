"""ν of u_t = ν u_xx on its way to the truth, in TensorBoard: every number of every step, and ν itself.

    python examples/trackers.py --out out/logs     # pip install tensorboard, then tensorboard --logdir out/logs

Weights & Biases and MLflow take the same place: `ng.trackers.WandB(…)`, `ng.trackers.MLflow(…)`.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp

import natgrad as ng

jax.config.update("jax_enable_x64", True)
NU = 0.1
DOMAIN = ng.Interval(0, 1) * ng.Box([0], [1])


def exact(z):  # z = (t, x)
    return jnp.exp(-NU * jnp.pi**2 * z[0]) * jnp.sin(jnp.pi * z[1])


def heat(net, z):
    return ng.partial(net.u, z, 0) - net.nu.value * ng.partial(net.u, z, 1, 1)


def main(steps: int, folder: Path) -> float:
    network, spots = jax.random.split(jax.random.key(0))
    sensors = DOMAIN.interior(60, key=spots)
    problem = ng.LeastSquares(
        ng.Fields(
            u=ng.MLP(in_size=2, out_size=1, width=10, depth=2, key=network),
            nu=ng.Unknown(0.3, positive=True),
        ),
        pde=ng.Residual(heat, DOMAIN.interior(400, rule="gauss")),
        data=ng.Residual(lambda net, z, value: net.u(z) - value, sensors, data=jax.vmap(exact)(sensors.x), weight=10),
        exact={"u": exact},
    )
    board = ng.trackers.TensorBoard(folder)
    solution = ng.solve(problem, ng.FullNGD(), steps, callback=board, progress=False)
    nu = float(solution.u.nu.value)
    print(f"ν = {nu:.6f} (exact: {NU}), relative H¹ error {solution.errors['h1']:.1e}; tensorboard --logdir {folder}")
    return abs(nu - NU)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("out/logs"))
    options = parser.parse_args()
    assert main(options.steps, options.out) < 1e-3
