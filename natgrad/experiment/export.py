"""The fields of a run in files for other tools, on the grid of its domain, on its own mesh or on another one."""

from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from natgrad import zoo
from natgrad.domains.grid import SIZES, Grid, box
from natgrad.experiment.runs import Run
from natgrad.interop.vtk import View, grid_of, times_of, write_fields


def export(
    run: Run,
    path: Path,
    *,
    mesh: Path | None = None,
    resolution: int | None = None,
    times: int | Sequence[float] | None = None,
    force: bool = False,
) -> list[Path]:
    """Writes the fields of a run; the files it wrote. Beyond three coordinates of space, those that pictures hold
    fixed have the values that pictures have."""
    problem, params = run.restore()
    picture = zoo.get(run.problem).fields(run.config["options"]["problem"])
    network, clock = problem.network(params), clock_of(picture)
    space = range(len(picture.coordinates))[0 if clock is None else 1 :]
    free = [i for i in space if len(space) <= 3 or picture.coordinates[i] not in picture.at]
    place = placed(picture, [*([] if clock is None else [0]), *free])
    fields = {
        name: (place(select(network)), None if exact is None else place(exact))
        for name, (select, exact) in picture.fields.items()
    }
    if mesh is not None and resolution is not None:
        raise ValueError("--mesh has its own cells: leave --resolution out")
    own = getattr(getattr(problem, "space", None), "mesh", None) if resolution is None else None
    if mesh is not None or own is not None:
        found = grid_of(own if mesh is None else mesh)
    else:
        found = _grid(picture, free, resolution)
    return write_fields(path, fields, View(found, times_of(times, clock)), force=force)


def clock_of(picture: zoo.Picture) -> tuple[Sequence[float], Sequence[float]] | None:
    """The first and the last time of an evolution problem; None for any other."""
    return (picture.lower[:1], picture.upper[:1]) if picture.coordinates[0] == "t" else None


def placed(picture: zoo.Picture, free: Sequence[int]) -> Callable[[Callable], Callable]:
    """f ↦ f as a function of the free coordinates alone."""
    base = np.array([picture.at.get(name, 0.0) for name in picture.coordinates], float)
    return lambda f: lambda x: f(jnp.asarray(base, x.dtype).at[np.array(free)].set(x))


def _grid(picture: zoo.Picture, free: Sequence[int], resolution: int | None) -> Grid:
    lower, upper = ([float(corner[i]) for i in free] for corner in (picture.lower, picture.upper))
    inside = picture.inside
    whole = None if inside is None else lambda x: np.asarray(jax.vmap(inside)(jnp.asarray(x)))
    return box(lower, upper, resolution or SIZES[len(free)], whole)
