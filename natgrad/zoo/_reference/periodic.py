"""The periodic evolution equations of the zoo by `etdrk4`: their coefficients, modes, steps and panels of time.

Each function gives u(t, x…) from t = 0 to `end`, as a `Series`. Modes, panels and steps are fixed, for about ten
digits or more with the coefficients of the literature; with others that they do not resolve, the solution is refused.
`finer` halves steps and panels and takes more modes: what the tests compare with.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from natgrad.zoo._reference import etdrk4
from natgrad.zoo._reference.cache import kept
from natgrad.zoo._reference.etdrk4 import Equation
from natgrad.zoo._reference.expansions import finite
from natgrad.zoo._reference.series import Series

ACCURACY = 5e-9  # of the values: what is less accurate is refused
ROUNDING = 5e-14  # of the chaotic one, at t = 0
NOTHING = 3e-14  # coefficients below it are round-off


@cache
def kdv(mu: float = 0.022, end: float = 1.0, finer: bool = False) -> Series:
    """u_t + u u_x + μ² u_xxx = 0 on (−1, 1), u(0, x) = cos πx."""
    return _series("kdv", {"mu": mu}, modes=168, panel=1 / 8, nodes=32, step=1e-4, end=end, finer=finer)


def _kdv(mu: float) -> Equation:
    return Equation(
        linear=lambda k: 1j * mu**2 * k**3,
        outer=lambda k: -0.5j * k,
        inner=lambda u: u**2,
        initial=lambda x: np.cos(np.pi * x)[None],
        lower=(-1.0,),
        upper=(1.0,),
    )


@cache
def kuramoto_sivashinsky(end: float = 1.0, finer: bool = False) -> Series:
    """u_t + 100/16 u u_x + 100/16² u_xx + 100/16⁴ u_xxxx = 0 on (0, 2π), u(0, x) = cos x (1 + sin x).

    It is chaotic. Tables of different steps and modes differ at t = 1 by 4e-10 (root mean square), whatever the steps:
    these are rounding errors, which grow about like exp(9t). The accuracy that is stated has them.
    """
    sizes: dict[str, Any] = {"modes": 160, "panel": 1 / 20, "nodes": 40, "step": 2.5e-5}
    series = _series("kuramoto_sivashinsky", {}, **sizes, end=end, finer=finer)
    return replace(series, accuracy=max(series.accuracy, ROUNDING * float(np.exp(9 * end))))


def _kuramoto_sivashinsky() -> Equation:
    return Equation(
        linear=lambda k: 100 / 16**2 * k**2 - 100 / 16**4 * k**4,
        outer=lambda k: -0.5j * 100 / 16 * k,
        inner=lambda u: u**2,
        initial=lambda x: (np.cos(x) * (1 + np.sin(x)))[None],
        lower=(0.0,),
        upper=(2 * np.pi,),
    )


@cache
def allen_cahn_standard(
    diffusion: float = 1e-4, reaction: float = 5.0, end: float = 1.0, finer: bool = False
) -> Series:
    """u_t = D u_xx + R (u − u³) on (−1, 1), u(0, x) = x² cos πx, whose derivative jumps at x = ±1.

    The jump is gone at once, but for t → 0 the series ends before the coefficients do: at 0 < t < 0.002 it is less
    accurate, by 1e-6 at |x| = 0.99 for t = 0, and by 1e-4 at the jump.
    """
    coefficients = {"diffusion": diffusion, "reaction": reaction}
    sizes: dict[str, Any] = {
        "modes": 2048,
        "first": 2.0**-11,
        "panel": 0.5,
        "nodes": 24,
        "step": 2e-3,
        "settled": 2.5e-3,
    }
    return _series("allen_cahn_standard", coefficients, **sizes, end=end, finer=finer)


def _allen_cahn_standard(diffusion: float, reaction: float) -> Equation:
    return Equation(
        linear=lambda k: reaction - diffusion * k**2,
        outer=lambda k: -reaction,
        inner=lambda u: u**3,
        initial=lambda x: (x**2 * np.cos(np.pi * x))[None],
        lower=(-1.0,),
        upper=(1.0,),
    )


@cache
def ginzburg_landau(end: float = 1.0, finer: bool = False) -> Series:
    """A_t = 0.004 ΔA + 10 A − (10 + 15i) A |A|² in (−1, 1)², A(0, x, y) = (10y + 10ix) exp(−25 (x² + y²)): (Re, Im)."""
    return _series("ginzburg_landau", {}, modes=108, panel=1 / 4, nodes=36, step=2e-3, end=end, finer=finer)


def _ginzburg_landau() -> Equation:
    def inner(a: np.ndarray) -> np.ndarray:
        square = a[0] ** 2 + a[1] ** 2
        return np.stack([(15 * a[1] - 10 * a[0]) * square, -(15 * a[0] + 10 * a[1]) * square])

    return Equation(
        linear=lambda k, l: 10 - 0.004 * (k**2 + l**2),
        outer=lambda k, l: 1.0,
        inner=inner,
        initial=lambda x, y: np.stack([10 * y, 10 * x]) * np.exp(-25 * (x**2 + y**2)),
        lower=(-1.0, -1.0),
        upper=(1.0, 1.0),
    )


@cache
def gray_scott(end: float = 2.0, finer: bool = False) -> Series:
    """u_t = 0.2 Δu + 40 (1 − u) − 1000 u v², v_t = 0.1 Δv − 100 v + 1000 u v² in (−1, 1)², with
    u(0) = 1 − exp(−10 ((x + 0.05)² + (y + 0.02)²)), v(0) = exp(−10 ((x − 0.05)² + (y − 0.02)²)): (u, v).

    On the boundary the derivatives of the initial values jump, by 3e-3. They do not after t = 0, but at t < 0.001 the
    series is less accurate, by 1e-6 at t = 0.
    """
    sizes: dict[str, Any] = {"modes": 84, "first": 2e-3, "panel": 0.256, "nodes": 32, "step": 2.5e-4, "settled": 2e-3}
    return _series("gray_scott", {}, **sizes, end=end, finer=finer)


def _gray_scott() -> Equation:
    def inner(w: np.ndarray) -> np.ndarray:
        made = 1000 * w[0] * w[1] ** 2
        return np.stack([40 - made, made])

    def bump(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.exp(-10 * (x**2 + y**2))

    return Equation(
        linear=lambda k, l: np.stack([-0.2 * (k**2 + l**2) - 40, -0.1 * (k**2 + l**2) - 100]),
        outer=lambda k, l: 1.0,
        inner=inner,
        initial=lambda x, y: np.stack([1 - bump(x + 0.05, y + 0.02), bump(x - 0.05, y - 0.02)]),
        lower=(-1.0, -1.0),
        upper=(1.0, 1.0),
    )


EQUATIONS: dict[str, Callable[..., Equation]] = {
    "allen_cahn_standard": _allen_cahn_standard,
    "ginzburg_landau": _ginzburg_landau,
    "gray_scott": _gray_scott,
    "kdv": _kdv,
    "kuramoto_sivashinsky": _kuramoto_sivashinsky,
}


def compute(
    name: str, modes: int, first: float, panel: float, end: float, nodes: int, step: float, settled: float, finer: bool,
    method: str, **coefficients: float,
) -> dict[str, np.ndarray]:  # fmt: skip
    """The tables of an equation; `method` is the program that computes them."""
    edges = panels(first, panel, end)
    edges = halved(edges) if finer else edges
    found = etdrk4.tables(EQUATIONS[name](**coefficients), modes, edges, nodes, step, settled)
    parts = found["table"].view(float)
    parts[abs(parts) < NOTHING] = 0  # a plane has many of them, which then take no place on disk
    return {**found, "edges": np.array(edges)}


def panels(first: float, panel: float, end: float) -> list[float]:
    """Of the length `first`, then each as long as all before it, but not longer than `panel`."""
    edges = [0.0, min(first, end)]
    while edges[-1] < end * (1 - 1e-9):
        edges.append(min(edges[-1] + min(edges[-1], panel), end))
    return edges


def halved(edges: Sequence[float]) -> list[float]:
    return [edges[0], *(t for a, b in pairwise(edges) for t in ((a + b) / 2, b))]


def _series(
    name: str, coefficients: dict[str, float], modes: int, panel: float, nodes: int, step: float, end: float,
    finer: bool, first: float | None = None, settled: float = 0.0,
) -> Series:  # fmt: skip
    finite(name, **coefficients, end=end)
    if not end > 0:
        raise ValueError(f"the reference solution of {name} needs a positive end, got {end}")
    sizes = {"modes": modes * 5 // 4 if finer else modes, "nodes": nodes, "step": step / (1 + finer), "end": end}
    times = {"first": panel if first is None else first, "panel": panel, "settled": settled, "finer": finer}
    found = kept(compute, name=name, **sizes, **times, method=METHOD, **coefficients)
    accuracy = float(found["accuracy"].max())
    if not accuracy <= ACCURACY:
        given = " and ".join(f"{key} {value:g}" for key, value in coefficients.items())
        raise ValueError(
            f"the solution of {name}{' with ' + given if given else ''} up to t = {end:g} has waves too short for its "
            f"reference, which would be off by {accuracy:.0e}: choose coefficients nearer to those of the literature"
        )
    made = EQUATIONS[name](**coefficients)
    rates = tuple(2 * np.pi / (b - a) for a, b in zip(made.lower, made.upper, strict=True))
    return Series(found["table"], tuple(found["edges"].tolist()), rates, made.lower, accuracy)


METHOD = inspect.getsource(etdrk4)
