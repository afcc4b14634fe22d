"""Parameters as further coordinates: one network solves a family of problems."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from natgrad.backend import host
from natgrad.domains.domain import Domain, as_vector
from natgrad.domains.pieces import Pieces, Product, Slice, sample
from natgrad.domains.points import Points

SLACK = 1e-6  # of a range: ends in single precision are within


class Parameters(eqx.Module):
    """Ranges of parameters by name; `domain * parameters` has points (x, parameters), in this order.

    family = Parameters(nu=(0.01, 0.1), k=(1, 4))
    points = (Box([0], [1]) * family).interior(1000, key=jax.random.key(0))  # (1000, 3): rows (x, nu, k)
    residual = lambda u, z: -family(z).nu * ng.laplacian(u, z, dims=0) - jnp.sin(family(z).k * z[0])
    one = family.fix(u, nu=0.05, k=2)                                        # a function of x alone
    """

    names: tuple[str, ...] = eqx.field(static=True)
    lower: tuple[float, ...] = eqx.field(static=True)
    upper: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, **ranges: tuple[float, float]):
        if not ranges:
            raise ValueError("Parameters needs a range by name, for example Parameters(nu=(0.01, 0.1))")
        for name, given in ranges.items():
            pair = as_vector(given, name)
            if name.startswith("_") or len(pair) != 2 or pair[0] >= pair[1]:
                raise ValueError(f"a parameter is a name and a range, for example nu=(0.01, 0.1), got {name}={given!r}")
        self.names = tuple(ranges)
        self.lower, self.upper = (tuple(float(pair[i]) for pair in ranges.values()) for i in (0, 1))

    def __repr__(self) -> str:
        pairs = zip(self.names, self.lower, self.upper, strict=True)
        return f"Parameters({', '.join(f'{name}=({a}, {b})' for name, a, b in pairs)})"

    def __len__(self) -> int:
        return len(self.names)

    def __call__(self, z: Float[Array, "*n d"]) -> Any:
        """The parameters at points, by name: `family(z).nu`, and in their order."""
        return _values(self.names)(*(z[..., i - len(self)] for i in range(len(self))))

    def fix(self, u: Callable[[Array], Array], **values: float) -> Callable[[Array], Array]:
        """The member u(·, values) of a family, a function of one point without parameters (d,)."""
        if set(values) != set(self.names):
            raise ValueError(
                f"fix takes a value of each parameter, {', '.join(self.names)}, got {', '.join(values) or 'none'}"
            )
        for name, lower, upper in zip(self.names, self.lower, self.upper, strict=True):
            known = not isinstance(values[name], jax.core.Tracer)
            if known and not lower - SLACK * (upper - lower) <= values[name] <= upper + SLACK * (upper - lower):
                raise ValueError(f"{name} is from {lower:g} to {upper:g} in this family, got {values[name]}")
        return lambda x: u(jnp.concatenate([x, jnp.asarray([values[name] for name in self.names], x.dtype)]))


class Parametric(Domain):
    """What `domain * Parameters(…)` gives: Ω × ranges, with points (x, parameters).

        strip = Box([0], [1]) * Parameters(nu=(0.01, 0.1))
        strip.boundary(100, key=jax.random.key(0))  # x = 0 or 1, normals (±1, 0)

    `boundary`, `boundary_measure` and `on_boundary` mean ∂Ω × ranges, which carries the boundary conditions, and
    `initial` and `final` the bottom and the top of a space-time domain. Weights sum to the measure of the product.
    """

    base: Domain
    parameters: Parameters

    def __repr__(self) -> str:
        return f"({self.base} * {self.parameters})"

    def __check_init__(self):
        if isinstance(self.base, Parametric):
            raise ValueError("a domain takes parameters once: give all of them to one Parameters(…)")

    @property
    def dim(self) -> int:
        return self.base.dim + len(self.parameters)

    @property
    def cylinder(self):
        return self.parameters

    def on_base(self, base: Domain) -> Parametric:
        """The same family over another base."""
        return Parametric(base, self.parameters)

    def contains(self, x, tol=None):
        return self._with_base(x, tol, self.base.contains)

    def on_boundary(self, x, tol=None):
        return self._with_base(x, tol, self.base.on_boundary)

    def _with_base(self, x, tol, question):
        x, tol = self.as_coordinates(x, tol)
        k = len(self.parameters)
        lower, upper = np.array(self.parameters.lower, x.dtype), np.array(self.parameters.upper, x.dtype)
        values = x[..., -k:]
        return host.array(
            ((values >= lower - tol) & (values <= upper + tol)).all(axis=-1) & host.numpy(question(x[..., :-k], tol))
        )

    def boundary(self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None, **part) -> Points:
        """n points on ∂Ω × ranges, with normals (ν, 0); `part` is the argument by which Ω chooses a part."""
        return sample(self.boundary_pieces(**part), n, key, rule, fresh, adaptive)

    def initial(self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None) -> Points:
        """n points at the first time."""
        return self._at(0, n, key, rule, fresh, adaptive)

    def final(self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None) -> Points:
        """n points at the last time."""
        return self._at(1, n, key, rule, fresh, adaptive)

    def _at(self, end: int, *how) -> Points:
        base: Any = self.base
        if (time := getattr(base, "time", None)) is None:
            raise ValueError(f"{self} has no time: initial and final go with Interval(a, b) * domain * Parameters(…)")
        return sample(self._product(Slice(base.base.interior_pieces(), (time.a, time.b)[end])), *how)

    def interior_pieces(self) -> Pieces:
        return self._product(self.base.interior_pieces())

    def boundary_pieces(self, **part) -> Pieces:
        return self._product(self.base.boundary_pieces(**part))

    def _product(self, base: Pieces) -> Pieces:
        return Product(base, self.parameters.lower, self.parameters.upper)

    def bounds(self):
        lower, upper = self.base.bounds()
        return lower + self.parameters.lower, upper + self.parameters.upper


@functools.cache
def _values(names: tuple[str, ...]) -> Any:
    return collections.namedtuple("Values", names)  # type: ignore[misc]
