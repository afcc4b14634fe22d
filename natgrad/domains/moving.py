"""Points that move while a network is trained: how often they are drawn anew, and from which density.

    square.interior(1000, key=key, fresh=True)                          # others at every step, spread evenly
    square.interior(1000, key=key, adaptive=ng.ByResidual())            # others at every step, where the residual is

The density of adaptive points, over that of points spread evenly, is (Wu, Zhu, Tan, Kartha and Lu, 2023)

    p(x) = (|r(x)|^k / mean |r|^k + c) / (1 + c).

A point counts 1/p(x) times as much, so that sums over the points stay those integrals that they were: what moves is how
well they are known. Multiplying r by a constant changes nothing.
"""

import equinox as eqx

from natgrad.options import Checked, Count, Positive


class ByResidual(Checked):
    """Points that are drawn anew, more of them where the residual is large.

        square.interior(1000, key=key, adaptive=ng.ByResidual())

    Arguments:
        every: steps between two times; in the first step the points are those they begin with.
        power: k of the density; 0 < k, and 2 follows the loss.
        floor: c of the density, the share of the points that are spread evenly against those that follow: no point
            counts more than (1 + c)/c times as much as one of those.
        pool: candidates for each point. At each of them the residual is evaluated once.
    """

    every: Count = eqx.field(static=True, default=1)
    power: Positive = eqx.field(static=True, default=1.0)
    floor: Positive = eqx.field(static=True, default=1.0)
    pool: Count = eqx.field(static=True, default=5)


#: How a part of some points moves: not at all, at every step, or by a rule.
Policy = None | bool | ByResidual


def policy(fresh: bool, adaptive: ByResidual | None, rule: str, dim: int) -> Policy:
    """The policy of points as their user wrote it; ValueError where nothing could move as told."""
    if not isinstance(fresh, bool):
        raise ValueError(f"fresh is True or False, got {fresh!r}")
    if adaptive is not None and not isinstance(adaptive, ByResidual):
        raise ValueError(f"adaptive takes a rule such as ng.ByResidual(), got {adaptive!r}")
    if not fresh and adaptive is None:
        return None
    name = "fresh" if fresh else "adaptive"
    if fresh and adaptive is not None:
        raise ValueError("points are either fresh at every step or adaptive: leave one of them out")
    if dim == 0:
        raise ValueError(f"a set of single points has no others: leave {name} out")
    if rule == "gauss":
        raise ValueError(f"a Gauss rule has no other points, and {name} ones take rule='monte-carlo' or 'sobol'")
    return adaptive or True
