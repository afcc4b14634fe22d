"""Three small problems as plain arrays, so that every package trains the same network from the same start on the same
points: min Σ mean (pde residual)² + 10 mean (u − data)², the data on the boundary and, in space-time, at t = 0.

    poisson2d   −Δu = f on (0, 1)², u = sin πx sin πy                            tanh network 2–32–32–1
    heat2d      u_t = Δu / 4 on (0, 1)³, u = (cos πx + cos πy) exp(−π²t/4)       3–32–32–1, points (t, x, y)
    burgers     u_t + u u_x = ν u_xx on (0, 1) × (−1, 1), u(0, x) = −sin πx      2–32–32–1, points (t, x), ν = 0.1/π

`write` makes a case (with natgrad); `Case` reads it (with NumPy alone). A `Run` is the command line and the record of a
package's script: it looks at the error now and then, off the clock, and raises `Done` when time or error say so.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.record import Recorder, versions

PROBLEMS = ("poisson2d", "heat2d", "burgers")
NU = 0.1 / np.pi
WEIGHT = 10.0  # of the data
LOWER = {"poisson2d": (0.0, 0.0), "heat2d": (0.0, 0.0, 0.0), "burgers": (0.0, -1.0)}
UPPER = {"poisson2d": (1.0, 1.0), "heat2d": (1.0, 1.0, 1.0), "burgers": (1.0, 1.0)}
INTERIOR = {"poisson2d": 1024, "heat2d": 2048, "burgers": 2048}
DATA = {"poisson2d": 256, "heat2d": 512, "burgers": 384}


def source(name: str, x: Any, sin: Callable = np.sin) -> Any:
    """f of the Poisson equation at points (n, 2) (0 for the others), with any library's sine."""
    return 2 * np.pi**2 * sin(np.pi * x[..., 0]) * sin(np.pi * x[..., 1]) if name == "poisson2d" else 0 * x[..., 0]


class Done(Exception):
    """The run is over: its time is, or the error is small enough."""


class Case:
    """A problem read from a file: points, data, network, and the points of the error."""

    def __init__(self, path: Path):
        with np.load(path) as file:
            self.name, self.seed = str(file["name"]), int(file["seed"])
            self.interior, self.boundary, self.data = file["interior"], file["boundary"], file["data"]
            self.x, self.u = file["x"], file["u"]
            count = sum(key.startswith("weight") for key in file)
            self.weights = [file[f"weight{i}"] for i in range(count)]  # (out, in)
            self.biases = [file[f"bias{i}"] for i in range(count)]

    @property
    def layers(self) -> list[int]:
        """Sizes, inputs first."""
        return [self.weights[0].shape[1], *(len(bias) for bias in self.biases)]

    def error(self, values: Any) -> float:
        """The relative L² error of the values of a network at `x`."""
        values = np.asarray(values, float).reshape(-1)
        return float(np.linalg.norm(values - self.u) / np.linalg.norm(self.u))


class Run:
    """One training of one package: `Run(__doc__, "scimba", ("eng", "nystrom"), "torch")`."""

    def __init__(self, doc: str | None, peer: str, methods: tuple[str, ...], *packages: str):
        parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("case", type=Path)
        parser.add_argument("--method", choices=methods, default=methods[0])
        parser.add_argument("--seconds", type=float, default=40.0, help="compilation included, errors not")
        parser.add_argument("--stop-at", type=float, default=5e-6, help="relative L² error")
        parser.add_argument("--out", type=Path, required=True)
        self.options = parser.parse_args()
        self.method, self.seconds = self.options.method, self.options.seconds
        self.case = Case(self.options.case)
        self._facts = {
            "peer": peer,
            "setting": self.method,
            "problem": self.case.name,
            "seed": self.case.seed,
            "budget": self.seconds,
            "versions": versions(peer, *packages),
        }
        self.record = Recorder(**self._facts)

    def start(self) -> None:
        """Starts the clock; all before it (imports, reading the case) is free."""
        self.record = Recorder(**self._facts)

    def look(self, step: int, predict: Callable[[np.ndarray], Any]) -> None:
        """One row of the history, off the clock; `predict` maps points (n, d) to values."""
        with self.record.paused():
            error = self.case.error(predict(self.case.x))
        self.note(step, error)

    def note(self, step: int, error: float) -> None:
        """One row of the history, of an error that is known; ends the run where there is reason to."""
        self.record.add(step, {"l2": error})
        with self.record.paused():
            late, good = self.record.wall >= self.seconds, error <= self.options.stop_at
            self.record.status = "error reached" if good else "time" if late else "running"
            self.record.save(self.options.out)
        if late or good or not np.isfinite(error):
            raise Done

    def train(self, training: Callable[["Run"], None]) -> None:
        """Runs a package's training from start to end, and writes the record whatever happens."""
        self.start()
        try:
            training(self)
            self.record.status = "ended by itself" if self.record.status == "running" else self.record.status
        except Done:
            pass
        except Exception as error:
            self.record.status = f"failed: {type(error).__name__}"
            raise
        finally:
            self.record.save(self.options.out)


def write(name: str, path: Path, seed: int = 0) -> None:
    """Makes a case; needs natgrad."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    from natgrad.networks import MLP
    from natgrad.zoo import _reference

    rng = np.random.default_rng(seed)
    lower, upper = np.array(LOWER[name]), np.array(UPPER[name])
    interior = rng.uniform(lower, upper, (INTERIOR[name], len(lower)))
    boundary = rng.uniform(lower, upper, (DATA[name], len(lower)))
    sides = np.arange(DATA[name])
    if name == "poisson2d":
        boundary[sides, sides % 2] = (sides // 2) % 2
    else:  # half of the points at t = 0, the others on the sides
        late, dims = sides[1::2], len(lower) - 1
        boundary[::2, 0] = 0.0
        axis, side = 1 + (late // 2) % dims, (late // 2 // dims) % 2
        boundary[late, axis] = np.where(side, upper[axis], lower[axis])
    x = rng.uniform(lower, upper, (10_000, len(lower)))
    exact: dict[str, Callable] = {
        "poisson2d": lambda x: jnp.prod(jnp.sin(jnp.pi * x)),
        "heat2d": lambda x: jnp.sum(jnp.cos(jnp.pi * x[1:])) * jnp.exp(-(jnp.pi**2) * x[0] / 4),
        "burgers": _reference.burgers(float(NU)),
    }
    values = lambda points: np.asarray(jax.jit(jax.vmap(exact[name]))(jnp.asarray(points)))
    data = (
        np.where(boundary[:, 0] == 0, -np.sin(np.pi * boundary[:, 1]), 0.0) if name == "burgers" else values(boundary)
    )
    network = MLP(len(lower), 1, 32, 2, key=jax.random.key(seed))
    arrays: dict[str, Any] = {f"weight{i}": np.asarray(layer.weight) for i, layer in enumerate(network.layers)}
    arrays |= {f"bias{i}": np.asarray(layer.bias) for i, layer in enumerate(network.layers)}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, name=name, seed=seed, interior=interior, boundary=boundary, data=data, x=x, u=values(x), **arrays)
