"""The fields of a trained network on a grid: solution, exact solution, error; slices where there are more than two
coordinates."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from natgrad import zoo
from natgrad.experiment.runs import Run

SIZE = 101
CORNER = 1.0  # per cent of a picture that may lie beyond its colours, at either end
SLICES = (0.25, 0.5, 0.75)  # of the range of a coordinate that is held fixed, in a problem with one field


@dataclass(frozen=True)
class Panel:
    """One picture: values on a grid (or a line), its axes, and the range of its colours."""

    title: str
    labels: tuple[str, str]
    x: np.ndarray
    y: np.ndarray | None
    values: np.ndarray
    limits: tuple[float, float]
    signed: bool
    aspect: float


def panels(run: Run) -> list[list[Panel]]:
    """A row a field (and a slice): solution, and where there is an exact one, that and the difference."""
    view = zoo.get(run.problem).fields(run.config["options"]["problem"])
    network = run.function()
    held = {name: float(view.at[name]) for name in view.coordinates if name in view.at}
    rows = []
    for at in _slices(view, held):
        for name, (select, exact) in view.fields.items():
            where = ", ".join(f"{key} = {value:.3g}" for key, value in at.items())
            rows.append(row(view, at, name, where, many(select(network)), None if exact is None else many(exact)))
    return rows


def many(f: Callable) -> Callable[[np.ndarray], np.ndarray]:
    """The numbers (n,) that a function of one point gives at points (n, d), compiled once for each n.

    A finite-element function is one of the host, which cannot be traced and takes all points at once.
    """
    run = jax.jit(lambda x: jax.lax.map(lambda p: jnp.reshape(f(p), ()), x, batch_size=2048))

    def values(points: np.ndarray) -> np.ndarray:
        try:
            return np.array(run(jnp.asarray(points)))
        except jax.errors.TracerArrayConversionError:
            return np.asarray(f(points))

    return values


def _slices(view: zoo.Picture, held: dict[str, float]) -> list[dict[str, float]]:
    if not held or len(view.fields) > 1:
        return [held]
    first = next(iter(held))
    index = view.coordinates.index(first)
    low, high = float(view.lower[index]), float(view.upper[index])
    return [{**held, first: low + share * (high - low)} for share in SLICES]


def row(
    view: zoo.Picture, at: dict[str, float], name: str, where: str, u: Callable, exact: Callable | None
) -> list[Panel]:
    """Solution, exact solution and difference, functions of many points, where some coordinates are fixed."""
    free = [i for i, coordinate in enumerate(view.coordinates) if coordinate not in at]
    lines = [np.linspace(float(view.lower[i]), float(view.upper[i]), SIZE) for i in free]
    mesh = np.meshgrid(*lines, indexing="xy")
    points = np.empty((mesh[0].size, len(view.coordinates)))
    for i, coordinate in enumerate(view.coordinates):
        points[:, i] = mesh[free.index(i)].ravel() if i in free else at[coordinate]
    keep = None if view.inside is None else np.asarray(jax.vmap(view.inside)(jnp.asarray(points)))

    def on_grid(f: Callable) -> np.ndarray:
        values = np.full(len(points), np.nan)
        values[slice(None) if keep is None else keep] = f(points if keep is None else points[keep])
        return values.reshape(mesh[0].shape)

    ours = on_grid(u)
    theirs = None if exact is None else on_grid(exact)
    shown = ours if theirs is None else theirs
    limits = robust(shown)
    names = [view.coordinates[i] for i in free]
    labels = (names[0], names[1] if len(names) > 1 else name)
    spans = [float(line[-1] - line[0]) for line in lines]
    # Time and space have no common scale: such a picture fills its frame.
    aspect = spans[0] / spans[1] if len(spans) > 1 and "t" not in names else float("inf")
    place = f" at {where}" if where else ""

    def panel(title: str, values: np.ndarray, signed: bool = False) -> Panel:
        colours = around_zero(values) if signed else limits
        return Panel(title, labels, lines[0], lines[1] if len(lines) > 1 else None, values, colours, signed, aspect)

    found = [panel(f"{name}{place}", ours)]
    if theirs is not None:
        found += [panel(f"exact {name}{place}", theirs), panel("difference", ours - theirs, signed=True)]
    return found


def robust(values: np.ndarray) -> tuple[float, float]:
    """The range of the colours: all values, but for a corner that alone makes it more than twice as wide at its end."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    low, high = np.percentile(finite, [CORNER, 100 - CORNER])
    width = high - low
    low = low if finite.min() < low - width < low else finite.min()
    high = high if finite.max() > high + width > high else finite.max()
    return float(low), float(high)


def around_zero(values: np.ndarray) -> tuple[float, float]:
    """The range of the colours of a difference, with zero in the middle."""
    bound = robust(np.concatenate([np.abs(values), -np.abs(values)]))[1] or 1.0
    return -bound, bound


def beyond(values: np.ndarray, limits: tuple[float, float]) -> str:
    """The ends of the colours that some values are clearly beyond, in matplotlib's words."""
    margin = 0.01 * (limits[1] - limits[0])
    below, above = bool((values < limits[0] - margin).any()), bool((values > limits[1] + margin).any())
    return {(True, True): "both", (True, False): "min", (False, True): "max"}.get((below, above), "neither")
