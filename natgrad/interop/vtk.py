"""Fields on a grid for other tools: VTK (ParaView, PyVista), NumPy and tables.

    to_vtk("u.vtu", solution.u, ng.Box([0, 0], [1, 1]), exact=exact)      # or solution.to_vtk("u.vtu", …)
    to_vtk("u.pvd", u, ng.Interval(0, 1) * ng.Ball([0, 0], 1), times=20)  # a series: a .vtu a time
    to_vtk("u.csv", u, mesh="plate.msh")

Each field comes with its gradient, and with the exact field and the difference where that is known; `boundary` marks
the points on the boundary.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import quoteattr

import jax
import jax.numpy as jnp
import numpy as np

from natgrad.calculus import gradient
from natgrad.domains import Parametric, SpaceTime
from natgrad.domains.domain import Domain
from natgrad.domains.grid import Grid, grid
from natgrad.extras import hushed, needs
from natgrad.networks import Fields
from natgrad.options import Count, checked
from natgrad.problem.base import failure
from natgrad.storage.files import writable, write

SUFFIXES = (".vtu", ".pvd", ".npz", ".csv")
BATCH = 2048  # points at a time
FRAMES = 21  # times of a series, where nobody says
MOST = 10_000  # times of a series: the files have numbers of four digits
NAMES = ("x", "y", "z")
Named = Mapping[str, tuple[Callable, Callable | None]]  # {field: (u, exact)}


@dataclass(frozen=True)
class View:
    """Where fields are looked at: a grid of space, and times; None where there is no time."""

    grid: Grid
    times: tuple[float, ...] | None = None


@checked
def to_vtk(
    path: Path | str,
    u: Callable,
    domain: Domain | None = None,
    *,
    mesh: Any = None,
    exact: Any = None,
    resolution: Count | None = None,
    times: int | Sequence[float] | None = None,
    force: bool = False,
) -> list[Path]:
    """Writes a network on a grid into a file: `.vtu`, `.pvd` (a series in time), `.npz` or `.csv`; the files it wrote.

    Arguments:
        u: a network or any function of one point; of `ng.Fields` each field is written by its name.
        domain: what is covered, time first: a `SpaceTime` makes a series.
        mesh: a mesh of space in place of the domain's own grid: a file that meshio reads (Gmsh's, say), or a mesh of
            scikit-fem or of meshio.
        exact: the exact solution, or {field: function}.
        resolution: cells along each axis, where there is no mesh.
        times: how many, evenly spread, or which ones.
        force: replaces files that are there.
    """
    if not callable(u):
        raise ValueError(f"to_vtk takes a network or a function of one point, got {type(u).__name__}")
    space = domain.space if isinstance(domain, SpaceTime) else domain
    if mesh is None and domain is None:
        raise ValueError("to_vtk takes a domain, such as ng.Box([0, 0], [1, 1]), or a mesh")
    if isinstance(domain, Parametric) and isinstance(domain.base, SpaceTime):
        raise ValueError("a series is that of one member of a family: to_vtk(path, family.fix(u, …), domain.base)")
    if mesh is not None and domain is space and domain is not None:
        raise ValueError("a mesh takes the place of the domain: give one of them, or a SpaceTime for its time")
    if mesh is not None and resolution is not None:
        raise ValueError("a mesh has its own cells: leave the resolution out")
    found = grid(space, resolution) if mesh is None else grid_of(mesh)  # type: ignore[arg-type]
    clock = domain.time.bounds() if isinstance(domain, SpaceTime) else None
    return write_fields(path, named(u, exact), View(found, times_of(times, clock)), force=force)


def named(u: Callable, exact: Any) -> Named:
    """The fields of a network by their names, each with the exact one."""
    parts = {name: getattr(u, name) for name in u.names} if isinstance(u, Fields) else {"u": u}
    known = exact if isinstance(exact, Mapping) else {} if exact is None else {"u": exact}
    if strange := [str(name) for name in known if name not in parts]:
        raise ValueError(f"exact names {strange[0]!r}, and the fields are {', '.join(parts)}")
    return {name: (part, known.get(name)) for name, part in parts.items()}


def times_of(times: Any, clock: tuple[Sequence[float], Sequence[float]] | None) -> tuple[float, ...] | None:
    """The times asked for, between the ends of a clock."""
    if clock is None:
        if times is not None:
            raise ValueError("times are those of a SpaceTime domain, and there is no time here")
        return None
    (start,), (end,) = clock
    if times is None or isinstance(times, int):
        count = FRAMES if times is None else times
        if not 1 <= count <= MOST:
            raise ValueError(f"times must be an integer from 1 to {MOST} or a list of times, got {count}")
        return tuple(np.linspace(start, end, count).tolist()) if count > 1 else (float(end),)
    chosen = np.asarray(times, float)
    inside = (chosen >= start) & (chosen <= end) if chosen.ndim == 1 else np.array([False])
    if not chosen.size or not inside.all():
        raise ValueError(f"times must lie between {start} and {end}, got {chosen.tolist()}")
    return tuple(chosen.tolist())


def write_fields(path: Path | str, fields: Named, view: View, *, force: bool = False) -> list[Path]:
    """Writes fields at the points of a view; none of the files where one of them must not be written."""
    path = Path(path)
    paths = targets(path, view.times, force)
    moments = [tabulated(fields, view.grid, time) for time in view.times or (None,)]
    if path.suffix == ".npz":
        return _put(path, _npz(view, moments))
    if path.suffix == ".csv":
        return _put(path, _csv(view, moments))
    for target, values in zip(paths, moments, strict=False):
        write(target, _vtu(view.grid, values))
    if path.suffix == ".pvd":
        write(path, _pvd([target.name for target in paths[:-1]], view.times or ()))
    return paths


def targets(path: Path, times: Sequence[float] | None, force: bool) -> list[Path]:
    """The files that will be written, the one that was asked for last; ValueError where one of them must not be."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path.name} must end with one of {', '.join(SUFFIXES)}")
    if path.suffix == ".pvd" and times is None:
        raise ValueError(f"{path.name} would be a series in time, and there is no time here: take .vtu")
    if path.suffix == ".vtu" and times is not None and len(times) > 1:
        raise ValueError(f"{path.name} holds one time: take .pvd for a series, or one time, such as {times[-1]:g}")
    frames = [path.with_name(f"{path.stem}_{i:04d}.vtu") for i in range(len(times or ()))]
    files = [*(frames if path.suffix == ".pvd" else []), path]
    return [writable(target, force) for target in files]


def tabulated(fields: Named, grid: Grid, time: float | None) -> dict[str, np.ndarray]:
    """What is written at a time: {name: (n,) or (n, m)}, derivatives in space (n, d) under `grad name`."""
    points = grid.points if time is None else np.insert(grid.points, 0, time, axis=1)
    found = {}
    for name, (u, exact) in fields.items():
        values, slopes = _evaluate(u, points, name)
        found[name] = values
        for i, slope in enumerate([] if slopes is None else np.moveaxis(slopes, 1, 0)):
            part = name if values.ndim == 1 else f"{name}_{i}"
            found[f"grad {part}"] = slope[:, int(time is not None) :]
            if time is not None:
                found[f"d{part}/dt"] = slope[:, 0]
        if exact is not None:
            found[f"exact {name}"] = _evaluate(exact, points, f"exact {name}", slope=False)[0]
            found[f"error {name}"] = values - found[f"exact {name}"]
    if grid.boundary is not None:
        found["boundary"] = grid.boundary.astype(np.int8)
    return found


def _evaluate(u: Callable, points: np.ndarray, name: str, slope: bool = True) -> tuple[np.ndarray, np.ndarray | None]:
    """Values (n,) or (n, m) of a function, and derivatives (n, m, d); None where it is a function of the host."""
    x = jnp.asarray(points)
    at = lambda p: (jnp.asarray(u(p)), jnp.atleast_2d(gradient(u, p)) if slope else None)
    try:
        shape = jax.eval_shape(at, x[0])[0].shape
        if len(shape) > 1:
            raise ValueError(f"it must give a number or a vector, got shape {shape}")
        values, slopes = jax.jit(lambda x: jax.lax.map(at, x, batch_size=min(BATCH, len(x))))(x)
    except jax.errors.TracerArrayConversionError:  # a finite-element function
        return np.asarray(u(points)), None
    except Exception as error:
        raise ValueError(failure(f"the field {name!r}", x[0], error)) from error
    values = np.asarray(values)
    return values[:, 0] if values.ndim == 2 and values.shape[
        1
    ] == 1 else values, None if slopes is None else np.asarray(slopes)


def _put(path: Path, data: bytes) -> list[Path]:
    write(path, data)
    return [path]


def _npz(view: View, moments: Sequence[Mapping[str, np.ndarray]]) -> bytes:
    """`points` (n, d), the cells by kind, and each field (n, …); (times, n, …) where there is time."""
    stack = lambda name: np.stack([values[name] for values in moments])
    arrays: dict[str, Any] = {"points": view.grid.points, **{f"cells {kind}": cells for kind, cells in view.grid.cells}}
    if view.times is None:
        arrays |= moments[0]
    else:
        arrays |= {"times": np.array(view.times)} | {name: stack(name) for name in moments[0]}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _csv(view: View, moments: Sequence[Mapping[str, np.ndarray]]) -> bytes:
    """One row for each point (and time); vectors have one column for each component."""
    tables = []
    for time, values in zip(view.times or (None,), moments, strict=True):
        columns = {} if time is None else {"t": np.full(len(view.grid.points), time)}
        columns |= {NAMES[i]: view.grid.points[:, i] for i in range(view.grid.points.shape[1])}
        for name, array in values.items():
            parts = NAMES if name.startswith("grad ") else range(array.shape[-1])
            if array.ndim == 1:
                columns[name] = array
            else:
                columns |= {f"{name}_{part}": column for part, column in zip(parts, array.T, strict=False)}
        tables.append(np.stack(list(columns.values()), axis=1))
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in np.concatenate(tables).tolist())]
    return ("\n".join(lines) + "\n").encode()


def _vtu(grid: Grid, values: Mapping[str, np.ndarray]) -> bytes:
    """A file of an unstructured grid; VTK has three coordinates, and vectors of three components."""
    with needs("An export to VTK", "mesh"):
        import meshio
    three = lambda a: np.pad(a, ((0, 0), (0, 3 - a.shape[1])))
    data = {name: three(a) if a.ndim == 2 and a.shape[1] < 3 else a for name, a in values.items()}
    with TemporaryDirectory() as workshop:
        file = Path(workshop) / "grid.vtu"
        meshio.Mesh(three(grid.points), list(grid.cells), point_data=data).write(file)
        return file.read_bytes()


def _pvd(names: Sequence[str], times: Sequence[float]) -> str:
    """The list of a series, as ParaView reads it."""
    rows = [
        f'    <DataSet timestep="{time!r}" part="0" file={quoteattr(name)}/>'
        for name, time in zip(names, times, strict=True)
    ]
    head = '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n  <Collection>'
    return "\n".join([head, *rows, "  </Collection>", "</VTKFile>"]) + "\n"


def grid_of(mesh: Any) -> Grid:
    """The cells of the highest dimension of a mesh: of a file, of meshio or of scikit-fem."""
    with needs("A mesh", "mesh"):
        import meshio
    if isinstance(mesh, str | Path):
        mesh = _read(Path(mesh))
    elif hasattr(mesh, "p") and hasattr(mesh, "t"):
        from skfem.io.meshio import to_meshio

        mesh = to_meshio(mesh)
    if not isinstance(mesh, meshio.Mesh):
        raise ValueError(f"a mesh is a file, or one of scikit-fem or meshio, got {type(mesh).__name__}")
    most = max((block.dim for block in mesh.cells), default=0)
    cells = tuple((block.type, np.asarray(block.data)) for block in mesh.cells if block.dim == most)
    if not most:
        raise ValueError("the mesh has no cells")
    points = np.asarray(mesh.points, float)
    while points.shape[1] > most and not points[:, -1].any():  # a plane mesh, written with three coordinates
        points = points[:, :-1]
    return Grid(points, cells)


def _read(path: Path) -> Any:
    import meshio

    if not path.is_file():
        raise ValueError(f"there is no mesh {path}")
    try:
        with hushed():
            return meshio.read(path)
    except (Exception, SystemExit) as error:  # meshio ends the process where it cannot read a file
        reason = "" if isinstance(error, SystemExit) else f": {' '.join(str(error).split())}"
        raise ValueError(f"cannot read the mesh {path}{reason}") from None
