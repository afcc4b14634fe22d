"""Pictures of runs: convergence, what the solver did, weights, the fields, spectra. Colours after Okabe and Ito."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from natgrad.experiment.fields import Panel, beyond, panels
from natgrad.experiment.runs import Group, Run, group
from natgrad.extras import needs

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999", "#7F5F00")
STYLES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<")
FIXED = {
    name: index
    for index, name in enumerate(
        ("nystrom", "rpcholesky", "nystrom-sampling", "ssbroyden", "bfgs", "lbfgs", "ngd-full", "adam",
         "ngd-matrix-free", "nystrom-gaussian")
    )
}  # fmt: skip
GRID = 200  # points of a curve over time
SPREAD = 10.0  # between what is seen on a linear axis
INTERNALS = (
    ("rank", "rank ℓ", "count"),
    ("mu", "damping μ", "log"),
    ("inner_iterations", "inner iterations", "count"),
    ("step_size", "step size α", "log"),
)


def plot(runs: Sequence[Run], folder: Path, *, fields: bool = True) -> list[Path]:
    """Draws all pictures of the runs, a set for each problem; the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    groups = group(runs)
    for problem in dict.fromkeys(g.problem for g in groups):
        members = [g for g in groups if g.problem == problem]
        prefix = (
            "" if len({g.problem for g in groups}) == 1 else "".join(c if c.isalnum() else "_" for c in problem) + "-"
        )
        written.append(convergence(members, folder / f"{prefix}convergence.png"))
        if any(np.isfinite(run.column("mu")).any() for g in members for run in g.runs):
            written.append(internals(members, folder / f"{prefix}solver.png"))
        if any(np.isfinite(run.column("validation")).any() for g in members for run in g.runs):
            written.append(losses(members, folder / f"{prefix}loss.png"))
        if any(run.weights for g in members for run in g.runs):
            written.append(weights(members, folder / f"{prefix}weights.png"))
        if fields:
            for g in members:
                name = "fields.png" if len(groups) == 1 else f"{prefix}fields-{_slug(g.label)}.png"
                written.append(picture(panels(g.runs[0]), f"{problem}, {g.label}", folder / name))
    return written


def convergence(groups: Sequence[Group], path: Path) -> Path:
    """The error against iterations and time; medians over seeds with quartile bands, a dot at the plateau."""
    norm = groups[0].runs[0].norm
    known = any(np.isfinite(run.column(norm)).any() for g in groups for run in g.runs)
    name, title = (norm, {"h1": "relative H¹ error", "l2": "relative L² error"}[norm]) if known else ("loss", "loss")
    scale = "linear" if any((run.column(name) < 0).any() for g in groups for run in g.runs) else "log"
    figure, axes = _subplots(1, 2, (10.5, 4.2), sharey=True)
    for axis, against in zip(axes, ("step", "time"), strict=True):
        for g, style in zip(groups, styles(groups), strict=True):
            x, low, middle, high = curve(g, name, against)
            axis.plot(x, middle, label=g.label, **_line(style))
            if len(g.runs) > 1:
                axis.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0)
            if (dot := plateau_dot(g, against)) is not None:
                axis.plot(*dot, style["marker"], color=style["color"], markersize=7, markeredgecolor="white", zorder=5)
        axis.set(yscale=scale, xlabel="iterations" if against == "step" else "time stepping [s]")
        if logarithmic(groups, against):
            axis.set_xscale("log")
    axes[0].set_ylabel(title)
    return _finish(figure, axes[0], groups, path)


def losses(groups: Sequence[Group], path: Path) -> Path:
    """The loss against iterations and time, and dashed beside it the loss at independent points: medians over seeds."""
    figure, axes = _subplots(1, 2, (10.5, 4.2), sharey=True)
    for axis, against in zip(axes, ("step", "time"), strict=True):
        for g, style in zip(groups, styles(groups), strict=True):
            for name, line, end in (("loss", "-", ""), ("validation", "--", ", at independent points")):
                x, _, middle, _ = curve(g, name, against)
                axis.plot(x, middle, label=g.label + end, **{**_line(style), "linestyle": line})
        axis.set(yscale="log", xlabel="iterations" if against == "step" else "time stepping [s]")
        if logarithmic(groups, against):
            axis.set_xscale("log")
    axes[0].set_ylabel("loss")
    return _finish(figure, axes[0], groups, path)


def internals(groups: Sequence[Group], path: Path) -> Path:
    """Rank, damping, inner iterations and step size over the iterations."""
    groups = [g for g in groups if any(np.isfinite(run.column("mu")).any() for run in g.runs)]
    figure, axes = _subplots(2, 2, (10.5, 6.4), sharex=True)
    for axis, (name, title, kind) in zip(axes.flat, INTERNALS, strict=True):
        positive = []  # the least and the greatest of each line
        for g, style in zip(groups, styles(groups), strict=True):
            x, low, middle, high = binned(*curve(g, name, "step"))
            keep = middle > 0 if kind == "log" else np.ones_like(middle, bool)
            edge = {} if kind == "log" else {"clip_on": False}  # a line at 0 is seen
            axis.plot(x[keep], middle[keep], label=g.label, **{**_line(style), "linewidth": 1.2}, **edge)
            if not np.array_equal(low, high):
                axis.fill_between(x[keep], low[keep], high[keep], color=style["color"], alpha=0.18, linewidth=0)
            if (middle > 0).any():
                positive.append((float(middle[middle > 0].min()), float(middle.max())))
        axis.set(ylabel=title)
        if kind == "log":
            axis.set_yscale("log")
        elif positive and max(high for _, high in positive) > SPREAD * min(high for _, high in positive):
            axis.set_yscale("symlog", linthresh=min(low for low, _ in positive))  # a count may be zero
            axis.set_ylim(bottom=0)
        else:
            axis.yaxis.get_major_locator().set_params(integer=True)
            axis.set_ylim(0, 1.1 * max([1.0, *(high for _, high in positive)]))
    for axis in axes[-1]:
        axis.set_xlabel("iterations")
    return _finish(figure, axes.flat[0], groups, path)


def weights(groups: Sequence[Group], path: Path) -> Path:
    """The weights of the blocks over the iterations, one line for each, of the groups that found them in training."""
    groups = [g for g in groups if any(run.weights for run in g.runs)]
    figure, axes = _subplots(1, len(groups), (5.4 * len(groups), 4.2), squeeze=False, sharey=True)
    blocks = sorted({name for g in groups for run in g.runs for name in run.weights})
    for axis, g in zip(axes.flat, groups, strict=True):
        for index, name in enumerate(blocks):
            x, low, middle, high = curve(g, name, "step")
            color = COLORS[index % len(COLORS)]
            axis.plot(x, middle, color=color, label=name.removeprefix("weights."))
            if len(g.runs) > 1:
                axis.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
        axis.set(yscale="log", xlabel="iterations", title=g.label)
    axes.flat[0].set_ylabel("weight of the block")
    return _finish(figure, axes.flat[0], groups, path)


def picture(rows: Sequence[Sequence[Panel]], title: str, path: Path) -> Path:
    """Solution, exact solution and error, one row for each field or slice."""
    figure, _ = drawn(rows, title)
    return _save(figure, path)


def drawn(rows: Sequence[Sequence[Panel]], title: str) -> tuple[Any, list[Any]]:
    """A figure of panels, and what is drawn in each: a curve or colours."""
    columns = max(len(row) for row in rows)
    figure, axes = _subplots(len(rows), columns, (3.6 * columns + 0.4, 3.0 * len(rows) + 0.4), squeeze=False)
    shown = []
    for row, line in zip(rows, axes, strict=True):
        for axis in line[len(row) :]:
            axis.axis("off")
        for panel, axis in zip(row, line, strict=False):
            shown.append(_panel(figure, axis, panel))
            axis.set_title(panel.title, fontsize=10)
            axis.set_xlabel(panel.labels[0])
            axis.set_ylabel(panel.labels[1])
    figure.suptitle(title)
    return figure, shown


def _panel(figure: Any, axis: Any, panel: Panel) -> Any:
    if panel.values.ndim == 1:
        return axis.plot(panel.x, panel.values, color=COLORS[0])[0]
    low, high = panel.limits
    mesh = axis.pcolormesh(
        panel.x, panel.y, panel.values, cmap="RdBu_r" if panel.signed else "viridis", shading="auto", rasterized=True,
        vmin=low, vmax=high,
    )  # fmt: skip
    bar = figure.colorbar(mesh, ax=axis, shrink=0.9, extend=beyond(panel.values, panel.limits))
    if panel.signed:
        bar.formatter.set_powerlimits((-2, 2))
    axis.set_aspect("equal" if 0.3 < panel.aspect < 3 else "auto")
    return mesh


def spectra(steps: Sequence[int], values: np.ndarray, title: str, path: Path) -> Path:
    """Eigenvalues λᵢ/λ₁ of the Gramian at some iterations."""
    figure, axis = _subplots(1, 1, (6.2, 4.2))
    palette = _pyplot().get_cmap("viridis")(np.linspace(0, 0.9, len(steps)))
    for step, eigenvalues, color in zip(steps, values, palette, strict=True):
        relative = np.maximum(eigenvalues / eigenvalues[0], 1e-20)
        axis.plot(np.arange(1, len(relative) + 1), relative, color=color, label=f"iteration {step}")
    axis.axhline(np.finfo(float).eps, color="#999999", linewidth=1, linestyle="--")
    axis.annotate(
        "machine precision",
        (1, np.finfo(float).eps),
        xytext=(4, 4),
        textcoords="offset points",
        fontsize=8,
        color="#555555",
    )
    axis.set(yscale="log", xlabel="i", ylabel="λᵢ / λ₁", title=title, ylim=(1e-20, 3))
    axis.legend(frameon=False, fontsize=8)
    axis.grid(True, alpha=0.25)
    return _save(figure, path)


def plateau_dot(g: Group, against: str) -> tuple[float, float] | None:
    """Where the plateau's dot goes: the median over seeds of its iteration (or time) and error."""
    where = [run.plateau for run in g.runs if run.plateau["error"] is not None]
    return (
        (float(np.median([w[against] for w in where])), float(np.median([w["error"] for w in where])))
        if where
        else None
    )


def curve(g: Group, name: str, against: str) -> tuple[np.ndarray, ...]:
    """x, and the quartiles of a quantity there: at the iterations where it was recorded, or on a grid of times."""
    series = [(x, y) for x, y in (run.series(name, against) for run in g.runs) if len(x)]
    if not series:
        return (np.empty(0),) * 4
    if len(series) == 1:
        return series[0][0], series[0][1], series[0][1], series[0][1]
    start, end = max(x[0] for x, _ in series), max(x[-1] for x, _ in series)
    if against == "step":
        grid = np.unique(np.concatenate([x for x, _ in series]))
        grid = grid[grid >= start]
    else:
        grid = np.geomspace(max(start, 1e-6), max(end, 2e-6), GRID)
    # A run that has ended stays where it is.
    low, middle, high = np.percentile([np.interp(grid, x, y) for x, y in series], [25, 50, 75], axis=0)
    return grid, low, middle, high


def binned(x: np.ndarray, low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
    """A curve with more points than can be told apart, as medians and quartiles of neighbours."""
    if len(x) <= 2 * GRID:
        return x, low, middle, high
    parts = np.array_split(np.arange(len(x)), GRID)
    whole = lambda values, share: np.array([np.percentile(values[part], share) for part in parts])
    return whole(x, 50), whole(low, 25), whole(middle, 50), whole(high, 75)


def logarithmic(groups: Sequence[Group], against: str) -> bool:
    """Whether the axis of steps or times is: where one group is at its plateau before a tenth of another's end."""
    ends = [run.column(against)[-1] for g in groups for run in g.runs if run.records]
    dots = [plateau_dot(g, against) for g in groups]
    done = [dot[0] for dot in dots if dot is not None] or ends
    return bool(ends) and max(ends) > SPREAD * max(min(done), 1e-9)


def styles(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """An optimizer has its own colour everywhere; where one has several groups they are told apart by their order."""
    names = [g.optimizer for g in groups]
    own = len(set(names)) == len(names) and set(names) <= set(FIXED)
    styles = []
    for index in [FIXED[name] for name in names] if own else range(len(groups)):
        turn, color = divmod(index, len(COLORS))
        line = STYLES[(turn + color // 4) % len(STYLES)]
        styles.append({"color": COLORS[color], "marker": MARKERS[color], "linestyle": line})
    return styles


def _line(style: dict[str, Any]) -> dict[str, Any]:
    return {"color": style["color"], "linestyle": style["linestyle"], "linewidth": 1.6}


def _pyplot() -> Any:
    with needs("A picture", "plots"):
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot
    return matplotlib.pyplot


def _subplots(rows: int, columns: int, size: tuple[float, float], **options: Any) -> Any:
    return _pyplot().subplots(rows, columns, figsize=size, layout="constrained", **options)


def _finish(figure: Any, first: Any, groups: Sequence[Group], path: Path) -> Path:
    for axis in figure.axes:
        axis.grid(True, which="major", alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, max(1, len(labels))), frameon=False)
    figure.suptitle(groups[0].problem)
    return _save(figure, path)


def _save(figure: Any, path: Path) -> Path:
    import io

    from natgrad.storage.files import write

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    _pyplot().close(figure)
    write(path, buffer.getvalue())
    return path


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-=." else "_" for c in text)
