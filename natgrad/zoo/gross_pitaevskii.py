"""A Bose–Einstein condensate in a harmonic trap: Gross–Pitaevskii at chemical potential λ (small: H¹ error 6.3e-4).

−Δu + |x|²u + βu³ = λu, by minimizing ∫ ½|∇u|² + ½(|x|² − λ)u² + ¼βu⁴ in the metric ∫ ∇v·∇w + |x|²vw + βu²vw.
"""

import jax.numpy as jnp

from natgrad.calculus import gradient
from natgrad.domains import Box
from natgrad.networks import MLP, HardBoundary
from natgrad.problem import Energy, EnergyMinimization
from natgrad.problem.metrics import GrossPitaevskii
from natgrad.zoo import _reference
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar

SQUARE = Box([-4, -4], [4, 4])


def bubble(x):
    return jnp.prod(1 - (x / 4) ** 2)


def build(
    key, *, width: int = 40, depth: int = 3, interior: int = 4_900, beta: float = 1.0, chemical: float = 5.0
) -> EnergyMinimization:
    def energy(u, x):
        value = u(x)
        return 0.5 * jnp.sum(gradient(u, x) ** 2) + 0.5 * (x @ x - chemical) * value**2 + 0.25 * beta * value**4

    def change(u, new, x):  # energy(new, x) − energy(u, x) in powers of d = new − u, so that nothing cancels
        a, d = u(x), new(x) - u(x)
        g, h = gradient(u, x), gradient(new, x) - gradient(u, x)
        quartic = d * (a**3 + 1.5 * a**2 * d + a * d**2 + 0.25 * d**3)
        return g @ h + 0.5 * h @ h + (x @ x - chemical) * d * (a + 0.5 * d) + beta * quartic

    # The ground state of the trap without interaction, to start at the positive of the two solutions ±u.
    start = lambda x: bubble(x) * jnp.exp(-(x @ x) / 2)
    network = HardBoundary(MLP(in_size=2, out_size=1, width=width, depth=depth, key=key), distance=bubble, lift=start)
    points, metric = SQUARE.interior(interior, rule="gauss"), GrossPitaevskii(lambda x: x @ x, beta)
    trap = Energy(energy, points, metric=metric, difference=change)
    return EnergyMinimization(network, trap=trap, exact=_reference.condensate(beta, chemical, 4.0))


def picture(options):
    exact = _reference.condensate(options.get("beta", 1.0), options.get("chemical", 5.0), 4.0)
    return Picture(SQUARE.lower, SQUARE.upper, ("x", "y"), scalar(exact))


options = {"width": 24, "depth": 2, "interior": 2_025}
small = Preset(options, budget(ngd=60, quasi_newton=2_000, adam=10_000), {"max_rank": 200}, error=1.3e-3)
benchmark = register(
    Benchmark(
        name="gross_pitaevskii",
        title="Gross–Pitaevskii equation",
        equation="−Δu + |x|²u + βu³ = λu in (−4,4)², u = 0 on the boundary, β = 1, λ = 5",
        build=build,
        presets={"small": small},
        fields=picture,
    )
)
