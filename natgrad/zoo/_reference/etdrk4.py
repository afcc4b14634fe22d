"""Periodic evolution equations by Fourier series in space and exponential time differencing in time,

    dû_k/dt = L_k û_k + M_k F[g(u)]_k,

with û the coefficients up to a wave number, L and M diagonal, and g a polynomial of the values. ETDRK4 (Cox and
Matthews, 2002) integrates the linear part exactly; its coefficients are means over a circle around each hL_k (Kassam
and Trefethen, 2005), which has no cancellation. On a line g is formed on a grid of three points for each two modes, so
that of a square nothing comes back that is beyond the last mode. In a plane, where that would cost twice as much, the
grid is finer than the modes by an eighth: what comes back is then as small as the last modes, which are looked at.

All steps are taken twice, with h and with h/2. Where d is how far the two results are from each other, the better one
is off by about d/15, and (16 u_{h/2} − u_h)/15, which is what is kept, by less.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.polynomial import chebyshev
from scipy import fft

CIRCLE = 24  # points of the means
FINE = {1: 2**18, 2: 2**9}  # points of the initial values along each axis, by dimension
LAST = 2  # coefficients in time that say how well it is resolved


@dataclass(frozen=True)
class Equation:
    """A system of f real fields, periodic on a line or in a rectangle, from the time 0.

    Attributes:
        linear, outer: L and M, functions of the wave numbers (arrays that broadcast, one for each coordinate).
        inner: g, values (f, …) to values (f, …).
        initial: the values at the start, a function of the coordinates to (f, …).
        lower, upper: of each coordinate.
    """

    linear: Callable
    outer: Callable
    inner: Callable
    initial: Callable
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def waves(self, modes: int) -> list[np.ndarray]:
        """The wave numbers of the coefficients: those of the last coordinate begin at 0, of another at −modes."""
        sides = list(zip(self.lower, self.upper, strict=True))
        numbers = [np.arange(-modes, modes + 1)] * (len(sides) - 1) + [np.arange(modes + 1)]
        rates = [2 * np.pi / (b - a) * n for (a, b), n in zip(sides, numbers, strict=True)]
        return list(np.meshgrid(*rates, indexing="ij", sparse=True))


@dataclass(frozen=True)
class Grid:
    """Between coefficients (f, K + 1) or (f, 2K + 1, K + 1) and values on `size` points along each axis."""

    modes: int
    dim: int

    @property
    def size(self) -> int:
        least = 3 * self.modes + 1 if self.dim == 1 else 9 * self.modes // 4 + 1
        return 2 * fft.next_fast_len((least + 1) // 2, real=True)

    def values(self, c: np.ndarray) -> np.ndarray:
        if self.dim == 1:
            return fft.irfft(c, self.size, norm="forward")
        full = np.zeros((len(c), self.size, self.size // 2 + 1), complex)
        k = self.modes
        full[:, : k + 1, : k + 1], full[:, -k:, : k + 1] = c[:, k:], c[:, :k]
        return fft.irfft2(full, (self.size, self.size), norm="forward", overwrite_x=True)

    def coefficients(self, u: np.ndarray) -> np.ndarray:
        k = self.modes
        if self.dim == 1:
            return fft.rfft(u, norm="forward")[:, : k + 1]
        full = fft.rfft2(u, norm="forward")
        return np.concatenate([full[:, -k:, : k + 1], full[:, : k + 1, : k + 1]], axis=1)


class Stepper:
    """Steps of one length."""

    def __init__(self, linear: np.ndarray, rate: Callable, h: float):
        self.rate = rate
        half, first, middle, last = (np.zeros(linear.shape, complex) for _ in range(4))
        upper = 1 if np.iscomplexobj(linear) else 2  # of a real L the other half of the circle has the conjugates
        for r in np.exp(2j * np.pi * (np.arange(CIRCLE // upper) + 0.5) / CIRCLE):
            z = h * linear + r
            e, cube = np.exp(z), z**3
            half += (np.exp(z / 2) - 1) / z
            first += (-4 - z + e * (4 - 3 * z + z**2)) / cube
            middle += 2 * (2 + z + e * (z - 2)) / cube
            last += (-4 - 3 * z - z**2 + e * (4 - z)) / cube
        means = [h * upper / CIRCLE * (m.real if upper == 2 else m) for m in (half, first, middle, last)]
        self.half, self.first, self.middle, self.last = means
        self.decay, self.halfway = np.exp(h * linear), np.exp(h * linear / 2)

    def __call__(self, v: np.ndarray) -> np.ndarray:
        start, there = self.rate(v), self.halfway * v
        a = there + self.half * start
        at_a = self.rate(a)
        at_b = self.rate(there + self.half * at_a)
        at_c = self.rate(self.halfway * a + self.half * (2 * at_b - start))
        return self.decay * v + self.first * start + self.middle * (at_a + at_b) + self.last * at_c


def integrate(
    equation: Equation, modes: int, times: Sequence[float] | np.ndarray, step: float, parts: int = 1
) -> np.ndarray:
    """The coefficients (times, f, …) at these times, by steps of at most so much, each in so many parts."""
    grid, waves, start = Grid(modes, len(equation.lower)), equation.waves(modes), beginning(equation, modes)
    linear, outer, v = np.asarray(equation.linear(*waves)), equation.outer(*waves), start
    rate = lambda v: outer * grid.coefficients(equation.inner(grid.values(v)))
    steppers: dict[str, Stepper] = {}
    found = []
    with np.errstate(over="ignore", invalid="ignore"):  # what grows beyond bounds is refused later
        for before, after in pairwise([0.0, *times]):
            count = parts * int(np.ceil((after - before) / step * (1 - 1e-9)))
            h = (after - before) / count
            if (
                step_of := f"{h:.12g}"
            ) not in steppers:  # nodes lie symmetrically: the same step twice, but for round-off
                steppers[step_of] = Stepper(linear, rate, h)
            for _ in range(count):
                v = steppers[step_of](v)
            found.append(v)
    return np.array(found)


def beginning(equation: Equation, modes: int) -> np.ndarray:
    """The coefficients of the initial values, from a grid so fine that theirs beyond it do not matter."""
    n, sides = FINE[len(equation.lower)], zip(equation.lower, equation.upper, strict=True)
    x = np.meshgrid(*(a + (b - a) * np.arange(n) / n for a, b in sides), indexing="ij")
    full = fft.rfftn(equation.initial(*x), axes=range(1, 1 + len(x)), norm="forward")[..., : modes + 1]
    return full if len(x) == 1 else np.concatenate([full[:, -modes:], full[:, : modes + 1]], axis=1)


def tables(
    equation: Equation, modes: int, edges: Sequence[float], nodes: int, step: float, settled: float = 0.0
) -> dict[str, np.ndarray]:
    """Chebyshev coefficients in time, on each of the panels between the edges, of the Fourier coefficients:
    (panels, nodes, f, …). `accuracy` has that of the steps and of the series in time, as root mean squares over space,
    and that of the series in space, its last coefficient, from the time `settled` on."""
    points = np.sort((1 + chebyshev.chebpts1(nodes)) / 2)
    times = np.concatenate([a + (b - a) * points for a, b in pairwise(edges)])
    coarse, fine = (integrate(equation, modes, times, step, parts) for parts in (1, 2))
    best = (16 * fine - coarse) / 15
    panels = best.reshape(len(edges) - 1, nodes, -1)
    table = np.stack([chebyshev.chebfit(2 * points - 1, panel, nodes - 1) for panel in panels])
    late = best[times >= settled]
    rim = [late[..., modes], *(late[:, :, side] for side in (0, 2 * modes) if len(equation.lower) == 2)]
    space = max(np.abs(r).max() for r in rim) if len(late) else 0.0
    size = lambda c: np.linalg.norm(c.reshape(len(c), -1), axis=1).max()  # the root mean square over space
    accuracy = np.array([size(fine - coarse) / 15, size(table[:, -LAST:].reshape(-1, best[0].size)), space])
    return {"table": table.reshape(len(edges) - 1, nodes, *best.shape[1:]), "accuracy": accuracy}
