"""A Bose–Einstein condensate in a harmonic trap: the Gross–Pitaevskii equation at chemical potential λ.

−Δu + |x|²u + βu³ = λu, by minimizing ∫ ½|∇u|² + ½(|x|² − λ)u² + ¼βu⁴. The metric is the energy's second derivative,
∫ ∇v·∇w + (|x|² − λ + 3βu²)vw, without its negative part, which exists only far from the minimum.
"""

from typing import Annotated

import jax.numpy as jnp

from natgrad.calculus import gradient
from natgrad.domains import Box
from natgrad.networks import MLP, HardBoundary
from natgrad.options import Count, Positive, Range, Whole
from natgrad.problem import Energy, EnergyMinimization
from natgrad.problem.metrics import Metric
from natgrad.zoo import _reference
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar

SQUARE = Box([-4, -4], [4, 4])


def bubble(x):
    return jnp.prod(1 - (x / 4) ** 2)


def build(
    key,
    *,
    width: Count = 40,
    depth: Whole = 3,
    interior: Count = 4_900,
    beta: Positive = 1.0,
    chemical: Annotated[float, Range(at_least=2.1, at_most=10)] = 5.0,
) -> EnergyMinimization:
    def energy(u, x):
        return 0.5 * (jnp.sum(gradient(u, x) ** 2) + (x @ x - chemical + 0.5 * beta * u(x) ** 2) * u(x) ** 2)

    def change(u, new, x):  # energy(new, x) − energy(u, x) in powers of d = new − u, so that nothing cancels
        a, d = u(x), new(x) - u(x)
        g, h = gradient(u, x), gradient(new, x) - gradient(u, x)
        quartic = a**3 + 1.5 * a**2 * d + a * d**2 + 0.25 * d**3
        return g @ h + 0.5 * h @ h + d * ((x @ x - chemical) * (a + 0.5 * d) + beta * quartic)

    def newton(u, v, x):
        return jnp.append(gradient(v, x), jnp.sqrt(jnp.maximum(x @ x - chemical + 3 * beta * u(x) ** 2, 0.0)) * v(x))

    # The ground state of the trap without interaction, to start at the positive of the two solutions ±u.
    start = lambda x: bubble(x) * jnp.exp(-(x @ x) / 2)
    network = HardBoundary(MLP(2, 1, width, depth, key=key), distance=bubble, lift=start)
    trap = Energy(energy, SQUARE.interior(interior, rule="gauss"), metric=Metric(newton), difference=change)
    return EnergyMinimization(network, trap=trap, exact=_reference.condensate(beta, chemical, 4.0))


exact = lambda options: _reference.condensate(options.get("beta", 1.0), options.get("chemical", 5.0), 4.0)
options = {"width": 20, "depth": 2, "interior": 1_600}
small = Preset(options, budget(ngd=100, quasi_newton=2_000, adam=10_000), {"max_rank": 200}, error=5.5e-5)  # 1.2e-5
benchmark = register(
    Benchmark(
        name="gross_pitaevskii",
        title="Gross–Pitaevskii equation",
        equation="−Δu + |x|²u + βu³ = λu in (−4,4)², u = 0 on the boundary, β = 1, λ = 5",
        build=build,
        presets={"small": small},
        fields=lambda options: Picture(SQUARE.lower, SQUARE.upper, ("x", "y"), scalar(exact(options))),
    )
)
