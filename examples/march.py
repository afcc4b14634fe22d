"""Time windows: the wave u_t + 20 u_x = 0 goes round a circle, one network per window, stopped and resumed on the way.

python examples/march.py
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng

jax.config.update("jax_enable_x64", True)
SPEED, PERIOD = 20.0, 2 * float(jnp.pi)


def advection() -> ng.Evolution:
    return ng.Evolution(
        ng.Periodic(ng.MLP(in_size=3, out_size=1, width=12, depth=1, key=jax.random.key(0)), periods=(None, PERIOD)),
        ng.Interval(0, PERIOD),
        pde=lambda u, z: (ng.gradient(u, z) @ jnp.array([1.0, SPEED])) / SPEED,
        initial=lambda x: jnp.sin(x[0]),
        exact=lambda z: jnp.sin(z[1] - SPEED * z[0]),
        points={"pde": 250, "initial": 40},
        key=jax.random.key(1),
    )


def main(windows: int, steps: int) -> None:
    how = {"times": windows, "steps": steps, "progress": False}
    problem, solver = advection(), ng.FullNGD()
    whole = ng.march(problem, solver, **how)
    print(f"{windows} windows, {whole.steps} steps: relative L² error {whole.errors['l2']:.1e} over all of time")

    stopped = ng.march(problem, solver, **how, callback=lambda record: record["window"] == 2)
    resumed = ng.march(problem, solver, **how, resume=stopped)
    same = np.array_equal(resumed.history.loss, whole.history.loss)
    print(f"stopped in window 2 and resumed: the losses are {'the same' if same else 'others'}")
    assert same

    t = jnp.linspace(0, 1, 5)
    along = jax.vmap(whole.u)(jnp.stack([t, jnp.mod(jnp.pi / 2 + SPEED * t, PERIOD)], axis=1))
    print("u on the crest of the wave:", np.round(along, 3))
    assert whole.errors["l2"] < 0.05


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    main(options.windows, options.steps)
