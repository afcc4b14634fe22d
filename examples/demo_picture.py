"""The picture of the demo: the solution, the errors, and how they fell."""

import os

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.colors import LogNorm
from matplotlib.ticker import LogLocator, NullFormatter

# Okabe and Ito's colours, which the colour-blind can tell apart.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#6E6E6E"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "mathtext.fontset": "dejavusans",
    "lines.linewidth": 1.8,
}


def draw(path, result, history, adam, grids):
    """Writes the picture, whole or not at all; returns its path."""
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(12.6, 7.6), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1, hspace=0.06, wspace=0.04)
        axes = figure.subplots(2, 3, height_ratios=(1.12, 1))
        _title(figure, result)
        _slices(figure, axes[0], grids)
        _race(axes[1, 0], history, adam)
        _iterations(axes[1, 1], history)
        _inside(axes[1, 2], history)
        temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
        try:
            figure.savefig(temporary, dpi=160, facecolor="white")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
            plt.close(figure)
    return path


def _title(figure, result):
    run = result["nystrom_ngd"]
    figure.suptitle(
        f"3D Poisson equation: relative H¹ error {run['h1']:.1e} after {run['time']:.0f} s of training "
        f"({run['steps']} steps)\n",
        fontsize=14,
        fontweight="bold",
        x=0.012,
        ha="left",
    )
    points = result["points"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    figure.text(
        0.012,
        0.945,
        f"−Δu = f in the unit cube, u = 0 on its boundary · network {result['network']}, {result['parameters']:,} parameters"
        f" · {points['interior']:,} + {points['boundary']:,} points · {result['device']}, {result['dtype']}"
        f" · {versions}, seed {result['seed']}",
        color="#444444",
        va="top",
    )


def _slices(figure, axes, grids):
    """u, then the error of each optimizer on one logarithmic scale (or, without Adam, u* beside it)."""
    u, exact = grids["NyströmNGD"]
    errors = {name: np.abs(v - w) for name, (v, w) in grids.items()}
    low = 10.0 ** np.floor(np.log10(np.percentile(errors["NyströmNGD"], 10)))
    high = 10.0 ** np.ceil(np.log10(max(e.max() for e in errors.values())))
    panels = [(u, "u by NyströmNGD, at x₃ = ½", {"cmap": "viridis", "vmin": 0, "vmax": 1})]
    if len(grids) == 1:
        panels.append((exact, "u*, the exact solution", {"cmap": "viridis", "vmin": 0, "vmax": 1}))
    scale = LogNorm(low, high)
    for name, error in errors.items():
        panels.append(
            (np.maximum(error, low), f"|u − u*| by {name}, at most {error.max():.0e}", {"cmap": "cividis", "norm": scale})
        )
    for ax, (values, title, look) in zip(axes, panels, strict=True):
        image = ax.imshow(values, origin="lower", extent=(0, 1, 0, 1), interpolation="bilinear", **look)
        if "norm" not in look:
            ax.contour(values, levels=np.arange(0.1, 1, 0.2), extent=(0, 1, 0, 1), colors="white", linewidths=0.6, alpha=0.7)
        ax.set(title=title, xlabel="x₁", ylabel="x₂", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        ax.grid(False)
        ax.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=ax, shrink=0.92, aspect=22, pad=0.02)
        bar.outline.set_visible(False)


def _race(ax, history, adam):
    """H¹ error against seconds."""
    steps, errors = _evaluated(history)
    seconds = history.time[steps]
    curves = [("NyströmNGD", seconds, errors, BLUE)]
    if adam:
        curves.append(("Adam", [r["time"] for r in adam], [r["h1"] for r in adam], ORANGE))
    for name, x, y, colour in curves:
        ax.plot(x, y, color=colour)
        ax.plot(x[-1], y[-1], "o", color=colour, ms=5)
        ax.annotate(
            f"{name}  {y[-1]:.1e}",
            (x[-1], y[-1]),
            xytext=(-4, 8),
            textcoords="offset points",
            ha="right",
            color=colour,
            fontweight="bold",
        )
    ax.set(title="Relative H¹ error against time", xlabel="seconds of training", xlim=(0, None), yscale="log")
    _decades(ax)


def _iterations(ax, history):
    """Loss and error over iterations."""
    k = history.step
    steps, errors = _evaluated(history)
    ax.plot(k, history.loss, color=GREEN)
    ax.plot(k[steps], errors, color=BLUE)
    ax.plot(k, history.mu, color=PURPLE, lw=1.3)
    for name, x, y, colour in (
        ("H¹ error", k[steps][-1], errors[-1], BLUE),
        ("loss", k[-1], history.loss[-1], GREEN),
        ("damping μ", k[-1], history.mu[-1], PURPLE),
    ):
        ax.annotate(name, (x, y), xytext=(-4, 6), textcoords="offset points", ha="right", color=colour, fontweight="bold")
    ax.set(title="NyströmNGD, step by step", xlabel="iteration", xlim=(0, None), yscale="log")
    _decades(ax)


def _inside(ax, history):
    """Rank and inner iterations, and the step size on an axis of its own."""
    k = history.step
    ax.plot(k, history.rank, color=BLUE)
    ax.plot(k, history.inner_iterations, color=ORANGE)
    ax.set(title="Inside a step", xlabel="iteration", xlim=(0, None), ylim=(0, None))
    ax.set_ylabel("rank ℓ of the preconditioner", color=BLUE)
    right = ax.twinx()
    right.plot(k, history.step_size, ".", color=GREEN, ms=4)
    right.set_yscale("log", base=2)
    right.grid(False)


def _evaluated(history):
    """The indices of the steps at which errors were evaluated, and the H¹ errors there."""
    errors = history.errors["h1"]
    steps = np.flatnonzero(np.isfinite(errors))
    return steps, errors[steps]


def _decades(ax):
    ax.yaxis.set_major_locator(LogLocator(numticks=12))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(which="minor", length=0)
