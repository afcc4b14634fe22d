"""Movies of evolution problems: a field over time, the exact one and the difference beside it where it is known.

The colours, or the axis of a curve, are those of all times together, so that they stay as they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from natgrad import zoo
from natgrad.domains import SpaceTime
from natgrad.experiment.fields import Panel, around_zero, many, robust, row
from natgrad.experiment.plots import drawn
from natgrad.experiment.runs import Run
from natgrad.interop.vtk import named, times_of
from natgrad.storage.files import writable, write

SUFFIXES = (".gif", ".mp4")
FRAMES = 41  # where nobody says how many
RATE = 12  # frames a second


def movie(
    path: Path | str,
    u: Callable,
    domain: SpaceTime,
    *,
    exact: Any = None,
    times: int | Sequence[float] | None = None,
    force: bool = False,
) -> Path:
    """Draws a network over time into an animated GIF, or an MP4 where ffmpeg is installed.

        movie("u.gif", solution.u, ng.Interval(0, 1) * ng.Box([-1], [1]), exact=exact)

    Arguments:
        domain: time and one or two coordinates of space.
        exact: the exact solution, or {field: function}.
        times: how many frames, evenly spread, or their times.
        force: replaces a file that is there.
    """
    if not isinstance(domain, SpaceTime):
        raise ValueError(f"a movie is that of a SpaceTime, such as ng.Interval(0, 1) * domain, got {domain!r}")
    if domain.space.dim > 2:
        raise ValueError(f"a movie shows one or two coordinates of space, and {domain.space} has {domain.space.dim}")
    lower, upper = domain.bounds()
    fields = {name: (lambda _, part=part: part, exact) for name, (part, exact) in named(u, exact).items()}
    inside = None if domain.space.dim == 1 else lambda x: domain.space.contains(x[1:])
    view = zoo.Picture(lower, upper, ("t", "x", "y")[: domain.dim], fields, inside=inside)
    return draw(*prepared(path, view, times, force), u, view, "")


def of_run(path: Path | str, run: Run, times: int | Sequence[float] | None = None, *, force: bool = False) -> Path:
    """Draws the movie of a run; coordinates that its pictures hold fixed are fixed here too."""
    view = zoo.get(run.problem).fields(run.config["options"]["problem"])
    if view.coordinates[0] != "t":
        raise ValueError(f"{run.problem} has no time: a movie is that of an evolution problem")
    path, moments = prepared(path, view, times, force)
    return draw(path, moments, run.function(), view, run.problem)


def prepared(path: Path | str, view: zoo.Picture, times: Any, force: bool) -> tuple[Path, tuple[float, ...]]:
    """The file, if it can be one, and the times of the frames."""
    path = writable(path, force)
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path.name} must end with one of {', '.join(SUFFIXES)}")
    return path, times_of(FRAMES if times is None else times, (view.lower[:1], view.upper[:1])) or ()


def draw(path: Path, moments: Sequence[float], network: Any, view: zoo.Picture, title: str) -> Path:
    """Writes the movie of a view."""
    over_time = [_over_time(network, view, name, moments) for name in view.fields]
    frames = steady(list(zip(*over_time, strict=True)))
    with TemporaryDirectory() as workshop:
        file = Path(workshop) / path.name
        _animate(frames, [f"{title}  t = {time:.3g}".strip() for time in moments], file)
        write(path, file.read_bytes())
    return path


def _over_time(network: Any, view: zoo.Picture, name: str, times: Sequence[float]) -> list[list[Panel]]:
    """The panels of a field at each time."""
    select, exact = view.fields[name]
    u, known = many(select(network)), None if exact is None else many(exact)
    held = {coordinate: float(value) for coordinate, value in view.at.items() if coordinate != "t"}
    place = ", ".join(f"{coordinate} = {value:.3g}" for coordinate, value in held.items())
    return [row(view, {**held, "t": time}, name, place, u, known) for time in times]


def steady(frames: Sequence[Sequence[list[Panel]]]) -> list[list[list[Panel]]]:
    """The frames, one row for each field, with the same limits at all times: the exact field's if it is known."""
    limits = []
    for rows in zip(*frames, strict=True):
        every = [np.stack([panel.values for panel in panels]) for panels in zip(*rows, strict=True)]
        of_field = robust(every[min(1, len(every) - 1)])
        limits.append([around_zero(values) if i == 2 else of_field for i, values in enumerate(every)])
    fixed = lambda row, ends: [replace(panel, limits=end) for panel, end in zip(row, ends, strict=True)]
    return [[fixed(row, ends) for row, ends in zip(frame, limits, strict=True)] for frame in frames]


def _animate(frames: Sequence[list[list[Panel]]], titles: Sequence[str], path: Path) -> None:
    """Draws the first frame, and in each of the others what has changed."""
    figure, shown = drawn(frames[0], titles[0])
    from matplotlib import animation, pyplot

    if path.suffix == ".mp4" and not animation.FFMpegWriter.isAvailable():
        pyplot.close(figure)
        raise ValueError(f"{path.name} needs ffmpeg, which is not installed: take a .gif")
    kind: Any = animation.FFMpegWriter if path.suffix == ".mp4" else animation.PillowWriter
    panels = [panel for line in frames[0] for panel in line]
    for artist, panel in zip(shown, panels, strict=True):
        if panel.values.ndim == 1:
            low, high = panel.limits
            artist.axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # what is drawn stays in its place
    writer = kind(fps=RATE)
    with writer.saving(figure, str(path), dpi=100):
        for frame, title in zip(frames, titles, strict=True):
            figure.suptitle(title)
            for artist, panel in zip(shown, (panel for line in frame for panel in line), strict=True):
                artist.set_ydata(panel.values) if panel.values.ndim == 1 else artist.set_array(panel.values)
            writer.grab_frame()
    pyplot.close(figure)
