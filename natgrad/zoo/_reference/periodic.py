"""The periodic evolution equations of the zoo by `etdrk4`: their coefficients, modes, steps and panels of time.

Each function gives u(t, x…) from t = 0 to `end`, as a `Series`. Modes, panels and steps are fixed, for about eleven
digits with the coefficients of the literature; with others that they do not resolve, the solution is refused. `finer`
halves steps and panels and takes more modes: what the tests compare with.
"""

import inspect
import math
from collections.abc import Callable
from functools import cache

import numpy as np

from natgrad.zoo._reference import etdrk4
from natgrad.zoo._reference.cache import kept
from natgrad.zoo._reference.etdrk4 import Equation
from natgrad.zoo._reference.expansions import finite
from natgrad.zoo._reference.series import Series

ACCURACY = 1e-9  # of the values: what is less accurate is refused


@cache
def kdv(mu: float = 0.022, end: float = 1.0, finer: bool = False) -> Series:
    """u_t + u u_x + μ² u_xxx = 0 on (−1, 1), u(0, x) = cos πx."""
    return _series("kdv", _kdv, {"mu": mu}, modes=144, panel=1 / 8, nodes=32, step=2e-4, end=end, finer=finer)


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
    """u_t + 100/16 u u_x + 100/16² u_xx + 100/16⁴ u_xxxx = 0 on (0, 2π), u(0, x) = cos x (1 + sin x)."""
    sizes = {"modes": 144, "panel": 1 / 16, "nodes": 36, "step": 2.5e-5}
    return _series("kuramoto_sivashinsky", _kuramoto_sivashinsky, {}, **sizes, end=end, finer=finer)


def _kuramoto_sivashinsky() -> Equation:
    return Equation(
        linear=lambda k: 100 / 16**2 * k**2 - 100 / 16**4 * k**4,
        outer=lambda k: -0.5j * 100 / 16 * k,
        inner=lambda u: u**2,
        initial=lambda x: (np.cos(x) * (1 + np.sin(x)))[None],
        lower=(0.0,),
        upper=(2 * np.pi,),
    )


EQUATIONS: dict[str, Callable[..., Equation]] = {"kdv": _kdv, "kuramoto_sivashinsky": _kuramoto_sivashinsky}


def compute(name: str, modes: int, panels: int, nodes: int, step: float, end: float, method: str, **coefficients):
    """The tables of an equation; `method` names the program that computes them."""
    return etdrk4.tables(EQUATIONS[name](**coefficients), modes, np.linspace(0, end, panels + 1), nodes, step)


def _series(
    name: str, equation: Callable[..., Equation], coefficients: dict[str, float], modes: int, panel: float, nodes: int,
    step: float, end: float, finer: bool,
) -> Series:  # fmt: skip
    finite(name, **coefficients, end=end)
    panels = math.ceil(end / panel * (1 - 1e-9)) * (1 + finer)
    sizes = {"modes": modes * 5 // 4 if finer else modes, "panels": panels, "nodes": nodes, "end": end}
    found = kept(compute, name=name, **sizes, step=step / (1 + finer), method=METHOD, **coefficients)
    accuracy = float(found["accuracy"].max())
    if not accuracy <= ACCURACY:
        given = " and ".join(f"{key} {value:g}" for key, value in coefficients.items())
        raise ValueError(
            f"the solution of {name}{' with ' + given if given else ''} up to t = {end:g} has waves too short for its "
            f"reference, which would be off by {accuracy:.0e}: choose coefficients nearer to those of the literature"
        )
    made = equation(**coefficients)
    edges = tuple(np.linspace(0, end, panels + 1).tolist())
    rates = tuple(2 * np.pi / (b - a) for a, b in zip(made.lower, made.upper, strict=True))
    return Series(found["table"], edges, rates, made.lower, accuracy)


METHOD = inspect.getsource(etdrk4)
