"""The Allen–Cahn equation, periodic in x by the network: u_t = D u_xx + R (u − u³), points (t, x), in two forms.

`cosine` begins with −cos πx. `standard`, with x² cos πx and D = 10⁻⁴, is that of the literature. The derivative of its
initial values jumps at x = ±1, which no series resolves for t → 0: errors are those where |x| ≤ 0.99, on 64 × 200
points of the window, the middles of a regular grid of time and space. There the reference is good to ten digits from
t = 0.0025 on, and to five before.
"""

import functools
from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from natgrad.calculus import value_gradient_laplacian
from natgrad.domains import Box
from natgrad.networks import MLP, Periodic
from natgrad.options import Count, Range, Whole
from natgrad.problem import Evolution, LeastSquares
from natgrad.zoo import _reference
from natgrad.zoo._grid import regular
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar

STARTS = {"cosine": lambda x: -jnp.cos(jnp.pi * x[0]), "standard": lambda x: x[0] ** 2 * jnp.cos(jnp.pi * x[0])}


def equation(diffusion: float, reaction: float):
    def allen_cahn(u, z):
        value, (u_t, _), u_xx = value_gradient_laplacian(u, z, dims=1)
        return u_t - diffusion * u_xx - reaction * (value - value**3)

    return allen_cahn


def reference(form: str, *of: float, end: float):
    return _reference.allen_cahn(*of) if form == "cosine" else _reference.allen_cahn_standard(*of, end)


def evolution(
    key,
    *,
    width: Count = 40,
    depth: Whole = 3,
    activation: Literal["tanh", "sin"] = "tanh",
    harmonics: Count = 1,
    interior: Count = 10_000,
    initial: Count = 400,
    form: Literal["cosine", "standard"] = "cosine",
    diffusion: Annotated[float, Range(at_least=1e-4, at_most=2e-2)] = 1e-3,
    reaction: Annotated[float, Range(at_least=0, at_most=10)] = 5.0,
    end: Annotated[float, Range(above=0, at_most=1)] = 1.0,
) -> Evolution:
    net, inside, start = jax.random.split(key, 3)
    waves = MLP(1 + 2 * harmonics, 1, width, depth, activation=getattr(jnp, activation), key=net)
    return Evolution(
        Periodic(waves, periods=(None, 2.0), harmonics=harmonics),
        Box([-1], [1]),
        pde=equation(diffusion, reaction),
        initial=STARTS[form],
        interval=(0, end),
        points={
            "pde": lambda cylinder: cylinder.interior(interior, key=inside, rule="sobol"),
            "initial": lambda cylinder: cylinder.initial(initial, key=start),
        },
        exact=reference(form, diffusion, reaction, end=end),
        evaluation=None if form == "cosine" else lambda cylinder: regular(cylinder, 64, 200, [(-0.99, 0.99)]),
    )


@functools.wraps(evolution)
def build(key, **options) -> LeastSquares:
    """One network for all times. Of the form `cosine` the initial values weigh a tenth of what they do in windows."""
    problem = evolution(key, **options)
    problem.weights["initial"] *= 1.0 if options.get("form") == "standard" else 0.1
    return problem.whole()


def picture(options):
    end, given = options.get("end", 1.0), (options.get("diffusion", 1e-3), options.get("reaction", 5.0))
    exact = reference(options.get("form", "cosine"), *given, end=end)
    return Picture((0, -1), (end, 1), ("t", "x"), scalar(exact))


steps, start = budget(100, 3_000, 10_000), {"form": "standard", "diffusion": 1e-4}
options = {"width": 24, "depth": 2, "interior": 4_000, "initial": 200}
small = Preset(options, steps, {"max_rank": 300}, error=8.8e-5)  # measured 4.4e-5
standard = Preset({"width": 16, "interior": 3_500, "initial": 300, **start}, steps, {"max_rank": 300}, error=8e-3)
options = {"width": 48, "interior": 16_384, "initial": 2_048}
record = Preset({"activation": "sin", **options, **start}, budget(60, 20_000, 100_000), windows=6)
benchmark = register(
    Benchmark(
        name="allen_cahn",
        title="Allen–Cahn equation",
        equation="u_t = D u_xx + R (u − u³) in (0,1)×(−1,1), periodic, u(0, x) = −cos πx, D = 10⁻³, R = 5",
        build=build,
        evolution=evolution,
        presets={"small": small, "standard": standard, "record": record},
        fields=picture,
    )
)
