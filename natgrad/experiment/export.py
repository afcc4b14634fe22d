"""The fields of a run in files for other tools, on the grid of its domain, on its own mesh or on another one."""

from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from natgrad import zoo
from natgrad.domains.grid import SIZES, Grid, box
from natgrad.experiment.runs import Run
from natgrad.interop.vtk import View, grid_of, targets, times_of, write_fields


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
    if mesh is not None and resolution is not None:
        raise ValueError("--mesh has its own cells: leave --resolution out")
    picture = zoo.get(run.problem).fields(run.config["options"]["problem"])
    clock = clock_of(picture)
    moments = times_of(times, clock)
    targets(path, moments, force)
    found = None if mesh is None else grid_of(mesh)
    space = range(len(picture.coordinates))[0 if clock is None else 1 :]
    free = [i for i in space if len(space) <= 3 or picture.coordinates[i] not in picture.at]
    problem, params = run.restore()
    network, place = run.solution(problem, params), placed(picture, [*([] if clock is None else [0]), *free])
    fields = {
        name: (place(select(network)), None if exact is None else place(exact))
        for name, (select, exact) in picture.fields.items()
    }
    if found is None:
        own = getattr(getattr(problem, "space", None), "mesh", None)
        found = _grid(picture, free, resolution) if own is None or resolution is not None else grid_of(own)
    return write_fields(path, fields, View(found, moments), force=force)


def clock_of(picture: zoo.Picture) -> tuple[Sequence[float], Sequence[float]] | None:
    """The first and the last time of an evolution problem; None for any other."""
    return (picture.lower[:1], picture.upper[:1]) if picture.coordinates[0] == "t" else None


def placed(picture: zoo.Picture, free: Sequence[int]) -> Callable[[Callable], Callable]:
    """f ↦ f as a function of the free coordinates alone; f itself where all are free."""
    if len(free) == len(picture.coordinates):
        return lambda f: f
    base = np.array([picture.at.get(name, 0.0) for name in picture.coordinates], float)
    return lambda f: lambda x: f(jnp.asarray(base, x.dtype).at[np.array(free)].set(x))


def _grid(picture: zoo.Picture, free: Sequence[int], resolution: int | None) -> Grid:
    lower, upper = ([float(corner[i]) for i in free] for corner in (picture.lower, picture.upper))
    inside = picture.inside
    whole = None if inside is None else lambda x: np.asarray(jax.vmap(inside)(jnp.asarray(x)))
    return box(lower, upper, resolution or SIZES[len(free)], whole)
