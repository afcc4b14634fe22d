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
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
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
        grid = figure.add_gridspec(2, 3, height_ratios=(1.12, 1))
        corner = grid[1, 2].subgridspec(2, 1, height_ratios=(1.7, 1))
        _title(figure, result)
        _slices(figure, [figure.add_subplot(grid[0, i]) for i in range(3)], grids)
        _race(figure.add_subplot(grid[1, 0]), history, adam)
        _iterations(figure.add_subplot(grid[1, 1]), history)
        _inside(figure.add_subplot(corner[0]), figure.add_subplot(corner[1]), history)
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
        f"3D Poisson equation: relative H¹ error {_power(run['h1'])} after {run['time']:.0f} s of training "
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
        f"−Δu = f in the unit cube, u = 0 on its boundary · network {result['network']}"
        f", {result['parameters']:,} parameters · {points['interior']:,} + {points['boundary']:,} points"
        f" · {result['device']}, {result['dtype']}"
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
            (
                np.maximum(error, low),
                f"|u − u*| by {name}, at most {_power(error.max(), 0)}",
                {"cmap": "cividis", "norm": scale},
            )
        )
    for ax, (values, title, look) in zip(axes, panels, strict=True):
        image = ax.imshow(values, origin="lower", extent=(0, 1, 0, 1), interpolation="bilinear", **look)
        if "norm" not in look:
            ax.contour(
                values, levels=np.arange(0.1, 1, 0.2), extent=(0, 1, 0, 1), colors="white", linewidths=0.6, alpha=0.7
            )
        ax.set(title=title, xlabel="x₁", ylabel="x₂", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        ax.grid(False)
        ax.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=ax, shrink=0.92, aspect=22, pad=0.02)
        bar.outline.set_visible(False)


def _race(ax, history, adam):
    """H¹ error against seconds."""
    steps, errors = _evaluated(history)
    curves = [("NyströmNGD", history.time[steps], errors, BLUE, -15)]
    if adam:
        curves.append(("Adam", [r["time"] for r in adam], [r["h1"] for r in adam], ORANGE, 9))
    for name, x, y, colour, above in curves:
        ax.plot(x, y, color=colour)
        ax.plot(x[-1], y[-1], "o", color=colour, ms=5)
        _label(ax, f"{name}, {_power(y[-1])}", x[-1], y[-1], colour, above)
    ax.set(title="Relative H¹ error against time", xlabel="seconds of training", xlim=(0, None), yscale="log")
    ax.set_ylim(bottom=ax.get_ylim()[0] / 4)
    _decades(ax)


def _iterations(ax, history):
    """Loss, error and damping over iterations."""
    k = history.step
    steps, errors = _evaluated(history)
    ax.plot(k, history.mu, color=PURPLE, lw=1.3)
    ax.plot(k, history.loss, color=GREEN)
    ax.plot(k[steps], errors, color=BLUE)
    half = len(k) // 2
    _label(ax, "H¹ error", k[-1], errors[-1], BLUE, 7)
    _label(ax, "loss", k[-1], history.loss[-1], GREEN, -14)
    _label(ax, "damping μ", k[half], history.mu[half], PURPLE, -15)
    ax.set(title="NyströmNGD, step by step", xlabel="iteration", xlim=(0, None), yscale="log")
    ax.set_ylim(bottom=ax.get_ylim()[0] / 10)
    _decades(ax)


def _inside(upper, lower, history):
    """Rank of the preconditioner and inner iterations above, the step size below."""
    k = history.step
    upper.plot(k, history.rank, color=BLUE)
    upper.plot(k, history.inner_iterations, color=ORANGE)
    _label(upper, "rank ℓ of the preconditioner", k[-1], history.rank[-1], BLUE, 6)
    _label(upper, "conjugate gradient iterations", k[-1], history.inner_iterations[-1], ORANGE, 7)
    upper.set(title="Inside a step", xlim=(0, None), ylim=(0, 1.25 * max(history.rank.max(), 1)))
    upper.tick_params(labelbottom=False)
    taken = history.step_size > 0
    lower.plot(k[taken], history.step_size[taken], "o", color=GREEN, ms=2.6)
    lower.plot(k[~taken], np.ones(np.sum(~taken)), "x", color=ORANGE, ms=4)
    lower.set(xlabel="iteration", xlim=upper.get_xlim(), yscale="log")
    smallest = int(np.floor(np.log2(history.step_size[taken].min()))) if taken.any() else 0
    powers = np.arange(0, min(smallest, -2) - 1, -max(1, -smallest // 4))
    lower.set_yticks(2.0**powers, ["1" if n == 0 else f"1/{2**-n}" for n in powers], minor=False)
    lower.set_ylim(2.0 ** (powers[-1] - 0.6), 2**1.7)
    lower.minorticks_off()
    _label(lower, "step size α", k[-1], 1, GREEN, 4)


def _label(ax, text, x, y, colour, above):
    """Names a curve at its end, in its own colour."""
    ax.annotate(
        text,
        (x, y),
        xytext=(0, above),
        textcoords="offset points",
        ha="right",
        color=colour,
        fontweight="bold",
        fontsize=8.5,
    )


def _power(value, digits=1):
    """5.6·10⁻⁶"""
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}·10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def _evaluated(history):
    """The indices of the steps at which errors were evaluated, and the H¹ errors there."""
    errors = history.errors["h1"]
    steps = np.flatnonzero(np.isfinite(errors))
    return steps, errors[steps]


def _decades(ax):
    ax.yaxis.set_major_locator(LogLocator(numticks=12))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(which="minor", length=0)
