"""DSGNAR on a problem of its own list: `python -m benchmarks.peers.on_dsgnar REFERENCE --problem kdv --out FILE`.

Its package is `pinn` of the repository wephy/physics-informed-neural-networks, whose folder `src` is on PYTHONPATH; no
registry has it. Networks, points and options are those of its own examples. REFERENCE has the solution that natgrad is
scored by, in the form its trainer reads; natgrad itself is not needed. Its steps are timed from outside, each to the
end of its computation; its own evaluations of the error are off the clock.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pinn
from pinn import operators, sampling, trainer64

from benchmarks.peers.record import Recorder, versions

jax.config.update("jax_enable_x64", True)
X, T = 0, 1
SKETCH = {"residual_sketch": 4000, "parameter_sketch": 4000, "batch_size": 2**14, "probe_batch_size": 2**10}
SCALES = (4, 8, 12, 16)


class Equation(pinn.Problem):
    """What its trainer asks of all problems here: bounds, numbers of points, start values behind the coordinates."""

    x_min, x_max = 0.0, 1.0
    dim = 2  # coordinates, time among them
    ref_path = ""

    def __init__(self, *, n_pde: int, n_ic: int = 0, n_bc: int = 0):
        self.n_pde, self.n_ic, self.n_bc = n_pde, n_ic, n_bc

    def starts(self, model: Any, row: jax.Array) -> jax.Array:
        return model(row[: self.dim]) - row[self.dim :]

    def values(self, model: Any, z: jax.Array) -> jax.Array:
        return model(z)

    def residual_fns(self) -> dict[str, Any]:
        return {"pde": self.pde, "ic": self.starts}

    def samplers(self) -> dict[str, Any]:
        inside = sampling.interior(self.x_min, self.x_max)
        return {"pde": inside, "ic": sampling.initial_line(self.x_min, self.x_max)}


class Burgers(Equation):
    x_min, x_max, t_max = -1.0, 1.0, 1.0
    problem_name = "Burgers"

    def pde(self, model: Any, z: jax.Array) -> jax.Array:
        u = lambda z: model(z)[0]
        convection = operators.grad(u, z, T) + u(z) * operators.grad(u, z, X)
        return jnp.array([convection - 0.01 * operators.grad2(u, z, X)])

    def analytical_ic(self, x: jax.Array) -> jax.Array:
        return -jnp.sin(jnp.pi * x)


class KdV(Equation):
    x_min, x_max, t_max = -1.0, 1.0, 1.0
    problem_name = "KdV"

    def pde(self, model: Any, z: jax.Array) -> jax.Array:
        u = lambda z: model(z)[0]
        convection = operators.grad(u, z, T) + u(z) * operators.grad(u, z, X)
        return jnp.array([convection + 0.022**2 * operators.grad_n(u, z, X, 3)])

    def analytical_ic(self, x: jax.Array) -> jax.Array:
        return jnp.cos(jnp.pi * x)


class Wave(Equation):
    t_max = 1.0
    problem_name = "Wave"

    def pde(self, model: Any, z: jax.Array) -> jax.Array:
        u = lambda z: model(z)[0]
        return jnp.array([operators.grad2(u, z, T) - 4 * operators.grad2(u, z, X)])

    def rates(self, model: Any, row: jax.Array) -> jax.Array:
        return jnp.array([operators.grad(lambda z: model(z)[0], row[:2], T) - row[2]])

    def residual_fns(self) -> dict[str, Any]:
        return {"pde": self.pde, "ic": self.starts, "ic_t": self.rates, "bc": self.values}

    def samplers(self) -> dict[str, Any]:
        known = super().samplers()
        return known | {"ic_t": known["ic"], "bc": sampling.dirichlet_walls(self.x_min, self.x_max)}

    def analytical_ic(self, x: jax.Array) -> jax.Array:
        return jnp.sin(jnp.pi * x) + jnp.sin(4 * jnp.pi * x) / 2

    def analytical_ic_t(self, x: jax.Array) -> jax.Array:
        return jnp.zeros_like(x)


class Steady(Equation):
    def residual_fns(self) -> dict[str, Any]:
        return {"pde": self.pde, "bc": self.values}

    def samplers(self) -> dict[str, Any]:
        box = (self.x_min, self.x_max, self.dim)
        return {"pde": sampling.box(*box), "bc": sampling.boundary_faces(*box)}


class Multiscale(Steady):
    """u is the mean of four scales, a quarter of the zoo's; relative errors do not see it."""

    problem_name = "Laplacian"

    def pde(self, model: Any, z: jax.Array) -> jax.Array:
        force = sum((w * jnp.pi) ** 2 * jnp.sin(w * jnp.pi * z[0]) * jnp.sin(w * jnp.pi * z[1]) for w in SCALES)
        return jnp.array([operators.laplacian(lambda z: model(z)[0], z, (0, 1)) + 2 / len(SCALES) * force])


class Poisson5D(Steady):
    dim = 5
    problem_name = "Poisson5D"

    def pde(self, model: Any, z: jax.Array) -> jax.Array:
        return jnp.array([operators.laplacian(lambda z: model(z)[0], z) + jnp.pi**2 * jnp.sum(jnp.cos(jnp.pi * z))])

    def values(self, model: Any, z: jax.Array) -> jax.Array:
        return model(z) - jnp.sum(jnp.cos(jnp.pi * z))


def siren(problem: type, widths: tuple[int, ...], **options: Any) -> Any:
    return lambda key: pinn.SIREN(key, problem, hidden_dims=widths, n_inputs=2, n_outputs=1, **options)


def gabor(key: jax.Array) -> Any:
    return pinn.GaborNet(key, Poisson5D, n_gabor=2**10, periodic_bc=False, n_inputs=5, n_outputs=1)


#: Problem, network and options, as in its examples.
CASES: dict[str, tuple[type, Any, dict[str, Any]]] = {
    "burgers_001": (
        Burgers,
        siren(Burgers, (40,) * 4, periodic_bc=True),
        {"dt": 1.0, "residual_sketch": 2000, "parameter_sketch": 2000, "batch_size": 2**13, "probe_batch_size": 2**9,
         "pde_weight": 1e-2},
    ),
    "kdv": (KdV, siren(KdV, (60,) * 4, periodic_bc=True), {"dt": 0.25, **SKETCH, "pde_weight": 1e-4}),
    "wave": (
        Wave,
        siren(Wave, (60,) * 4, periodic_bc=False),
        {"dt": 0.5, **SKETCH, "pde_weight": 1e-6, "ic_weight": 1.0, "ic_t_weight": 1e-3, "bc_weight": 1.0},
    ),
    "multiscale": (
        Multiscale,
        siren(Multiscale, (60,) * 4, periodic_bc=False, time_dependent=False, n_fourier=4),
        {**SKETCH, "pde_weight": 1e-8, "bc_weight": 1.0},
    ),
    "poisson5d": (
        Poisson5D,
        gabor,
        {**SKETCH, "batch_size": 2**12, "probe_batch_size": 2**8, "pde_weight": 1e-4, "bc_weight": 1.0,
         "window_scale": 6.0, "n_probes": 64},
    ),
}  # fmt: skip


class Over(Exception):
    """The time is up."""


class Timed(trainer64.Optimiser):
    """Its optimiser, with a clock."""

    seconds = 0.0

    def step(self, *args: Any, **options: Any) -> Any:
        before = time.perf_counter()
        result = jax.block_until_ready(super().step(*args, **options))
        Timed.seconds += time.perf_counter() - before
        return result


class Silent:
    """In place of its display: rows of the record. Errors before the last window of time are not those of the whole."""

    record: Recorder
    limit = float("inf")

    def __init__(self, reference: Any, save_path: Any = None):
        self.channels = reference.channels

    def update(self, history: dict[str, list[float]], errors: dict[str, Any], *, active_t1: float, **more: Any) -> None:
        if step := len(history["loss"]):
            whole = active_t1 >= getattr(CASES[self.record.facts["problem"]][0], "t_max", 0.0)
            error = errors["l2_rel_vs_iter"][-1][1]["u"] if whole else None
            self.record.add(step, {"l2": error}, Timed.seconds, loss=history["loss"][-1])
            if Timed.seconds > self.limit:
                raise Over
        else:  # its dry run, which compiles, does not count
            Timed.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: None


def main() -> None:
    """One run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--problem", choices=CASES, required=True)
    parser.add_argument("--seconds", type=float, default=600.0, help="of stepping, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=INTEGER", help="other options of its RunConfig")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    problem, network, options = CASES[given.problem]
    problem.ref_path = str(given.reference)
    options = {"n_pde": 2**15, "n_ic": 2**14, "n_bc": 2**14, **options, "log_every": 1, "seed": given.seed}
    options |= {name: int(value) for name, value in (word.split("=") for word in given.set)}
    record = Silent.record = Recorder(
        peer="dsgnar",
        problem=given.problem,
        setting=" ".join(["default", *given.set]),
        seed=given.seed,
        device=jax.devices()[0].device_kind,
        dtype="float64",
        versions=versions("jax", "jaxlib", "equinox"),
    )
    trainer64.Optimiser, trainer64.Plotter, Silent.limit = Timed, Silent, given.seconds
    try:
        pinn.train64(problem, pinn.RunConfig(network=network, **options))
        record.status = "its own end"
    except Over:
        record.status = "time"
    record.save(given.out)


if __name__ == "__main__":
    main()
