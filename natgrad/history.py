"""What training gives: a record of each step, and the solution at the end."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import PyTree

from natgrad.resuming import Origin


class History(Mapping):
    """What each step reported, as NumPy arrays (steps,): `history.loss`, `history["mu"]`, `history.errors["h1"]`.

        history = ng.solve(problem, ng.NystromNGD(), steps=100).history
        plt.semilogy(history.time, history.loss)

    `loss` is the loss after each step, with the weights of that step, and `change` what the step did to it, without the
    cancellation of subtracting two losses; `time` counts seconds of stepping. `validation` is the loss at independent
    points, of the blocks that can be drawn again, and `training` the loss of the same blocks at their own points;
    `elsewhere` is the size Σ w |e| of an energy at independent points over that at its own; `size` is that of u over
    the size of the network at the start. These and the errors are NaN at steps where they were not evaluated. `weights`
    has those of the blocks, by name, where some are "auto".
    """

    def __init__(self, records: list[dict[str, Any]]):
        self._records = records

    def __getitem__(self, name: str) -> np.ndarray:
        if self._records and name not in self._records[0]:
            raise KeyError(f"no {name!r} in the history: it has {', '.join(self)}")
        return np.asarray([record.get(name, math.nan) for record in self._records])

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error.args[0])) from None

    @property
    def errors(self) -> dict[str, np.ndarray]:
        names = sorted({name for record in self._records for name in record["errors"]})
        return {n: np.asarray([r["errors"].get(n, math.nan) for r in self._records], float) for n in names}

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """{block: its weight in each step}; {} where no weight is "auto"."""
        names = self._records[0].get("weights", {}) if self._records else {}
        return {n: np.asarray([record["weights"][n] for record in self._records], float) for n in names}

    @property
    def records(self) -> list[dict[str, Any]]:
        """One dict a step."""
        return self._records

    def __iter__(self):
        return iter(self._records[0] if self._records else ())

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"History({len(self)} steps: {', '.join(self)})"


@dataclass(frozen=True)
class Solution:
    """What training gave.

    `u` is the trained network, `errors` its relative errors against the exact solution (empty without one), `status`
    why training ended, `time` the seconds of stepping, `compile_time` those of compilation, `compiled` whether the step
    was compiled ("new") or came from an earlier call ("memory") or process ("disk"). `validation` is the loss at points
    the training never saw (NaN where there are none), and `diagnosis` says in short sentences what is wrong where
    something is (see `natgrad.diagnosis`). `state` goes on where it ended:
    `ng.solve(problem, solver, steps=…, resume=solution)`, with the problem and the solver it began with.
    """

    u: Callable = field(repr=False)
    params: PyTree = field(repr=False)
    state: Any = field(repr=False)
    history: History
    loss: float
    errors: dict[str, float]
    status: str
    steps: int
    time: float
    compile_time: float
    validation: float = math.nan
    diagnosis: tuple[str, ...] = ()
    compiled: str = "new"
    origin: Origin | None = field(repr=False, default=None)

    def save(self, path: Path | str) -> None:
        """Writes it into one file, with what `ng.solve` needs to go on: `ng.load(path)` gives the network back,
        `ng.load_solution(path)` all of it. It replaces a file that natgrad saved, and no other.

            solution.save("u.ng")
        """
        from natgrad.storage.solutions import save_solution

        save_solution(path, self)

    def to_vtk(self, path: Path | str, domain: Any = None, **options: Any) -> list[Path]:
        """Writes `u` on a grid of a domain or on a mesh, for ParaView and others; see `natgrad.interop.vtk.to_vtk`.

        solution.to_vtk("u.vtu", ng.Box([0, 0], [1, 1]), exact=exact)
        """
        from natgrad.interop.vtk import to_vtk

        return to_vtk(path, self.u, domain, **options)


def evaluated(record: Mapping[str, Any]) -> bool:
    """Whether a step's record has what is evaluated now and then: errors, or the validation loss."""
    checks = (record.get(name, math.nan) for name in ("validation", "elsewhere"))
    return bool(record["errors"]) or any(map(math.isfinite, checks))
