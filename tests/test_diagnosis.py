"""What a run says is wrong with it: of records made up, of a run that fits its points alone, and of good ones."""

import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.diagnosis import diagnose
from tests.helpers import poisson

CYLINDER = ng.Interval(0.0, 1.0) * ng.Box([0.0], [2 * np.pi])
PROBLEM = poisson()


def advection(speed, points, initial, width, depth):
    """u_t + c u_x = 0 from u = sin x, periodic in x, by one network for all times."""
    start = CYLINDER.initial(initial, key=jax.random.key(2))
    return ng.LeastSquares(
        ng.Periodic(ng.MLP(3, 1, width, depth, key=jax.random.key(0)), periods=(None, 2 * np.pi)),
        pde=ng.Residual(
            lambda u, z: ng.gradient(u, z) @ jnp.array([1.0, speed]), CYLINDER.interior(points, key=jax.random.key(1))
        ),
        initial=ng.Residual(lambda u, z: u(z) - jnp.sin(z[1]), start, weight=100.0),
        exact=lambda z: jnp.sin(z[1] - speed * z[0]),
    )


@pytest.mark.usefixtures("quick_compilation")
def test_too_few_points_are_told(capsys):
    """A loss ten orders of magnitude below the first one, and not a digit of the solution."""
    solution = ng.solve(advection(80.0, 60, 20, 12, 2), ng.KernelNGD(), steps=60)
    first = solution.history.loss[0]
    assert solution.loss < 1e-10 * first
    assert solution.errors["l2"] > 0.9
    assert solution.validation > 0.1 * first
    (sentence,) = solution.diagnosis
    assert sentence.startswith(f"points exhausted: the loss at other points is {solution.validation:.1e}")
    assert "domain.interior(n, key=…, fresh=True)" in sentence
    assert "adaptive=ng.ByResidual()" in sentence
    assert capsys.readouterr().err.splitlines()[-1] == f"natgrad: {sentence}"
    assert "\n" not in sentence


@pytest.mark.usefixtures("quick_compilation")
def test_a_good_run_says_nothing(capsys):
    """At a speed that the points resolve."""
    solution = ng.solve(advection(1.0, 300, 50, 6, 1), ng.FullNGD(), steps=60)
    assert solution.errors["l2"] < 0.02
    assert solution.diagnosis == ()
    assert capsys.readouterr().err.splitlines()[-1].startswith("stopped after 60 steps")


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize(("scale", "normalized", "says"), [(1.0, False, False), (1e3, False, True), (1e3, True, False)])
def test_a_solution_of_another_size_than_the_network_is_told(scale, normalized, says):
    square, key = ng.Box([0.0, 0.0], [1.0, 1.0]), jax.random.split(jax.random.key(0), 2)
    network = ng.MLP(2, 1, 6, 1, key=key[0])
    network = ng.Normalized(network, square, scale=scale) if normalized else network
    fit = ng.Residual(lambda u, x: u(x) - scale * jnp.sin(3 * x[0]) * x[1], square.interior(60, key=key[1]))
    solution = ng.solve(ng.LeastSquares(network, fit=fit), ng.FullNGD(), 20, progress=False)
    assert solution.history.validation[-1] < 0.1 * scale**2
    told = [sentence for sentence in solution.diagnosis if "times as large as the network" in sentence]
    assert len(told) == says
    assert all("ng.Normalized(network, domain, scale=…)" in sentence for sentence in told)


@pytest.mark.parametrize(("size", "least", "told"), [(1e3, 1e-10, True), (1e3, 1e-14, False), (3.0, 1e-10, False)])
def test_a_size_that_did_no_harm_is_not_told(size, least, told):
    rows = [{"step": k, "loss": 10.0**-k, "errors": {}, "size": size} for k in range(10)]
    rows.append({"step": 10, "loss": least, "errors": {}, "size": size})
    assert (
        any("times as large as the network" in sentence for sentence in diagnose(rows, PROBLEM, ng.NystromNGD()))
        == told
    )


def records(count=100, stall=True, validation=math.nan, training=math.nan, **more):
    """A loss that falls by ten orders of magnitude, and from the middle on no further where the run stalls."""
    losses = 10.0 ** -np.linspace(0, 10, count)
    losses = np.maximum(losses, losses[count // 2] if stall else 0)
    rows = [{"step": k + 1, "loss": float(loss), "errors": {}, **more} for k, loss in enumerate(losses)]
    rows[-1] |= {"validation": validation, "training": training}
    return rows


def scaled(rows, factor):
    units = ("loss", "validation", "training")
    return [{name: factor * value if name in units else value for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("factor", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize(
    ("validation", "training", "told"),
    [
        (1e-2, 1e-5, True),
        (1e-2, 0.0, True),
        (1e-2, 1e-3, False),  # ten times is usual
        (1e-7, 1e-12, False),  # far apart, and both small against the beginning
        (math.nan, math.nan, False),
    ],
)
def test_exhausted_points_whatever_the_units(validation, training, told, factor):
    rows = scaled(records(stall=False, validation=validation, training=training), factor)
    found = diagnose(rows, PROBLEM, ng.NystromNGD())
    assert [sentence.partition(":")[0] for sentence in found] == ["points exhausted"] * told


@pytest.mark.parametrize(("elsewhere", "told"), [(3.06, True), (1.1, False), (math.nan, False)])
def test_an_energy_of_another_size_between_its_points_is_told(elsewhere, told):
    found = diagnose(records(stall=False, elsewhere=elsewhere), PROBLEM, ng.NystromNGD())
    assert len(found) == told
    start = "points exhausted: the energy at other points is 3.1 times as large"
    assert all(sentence.startswith(start) and "\n" not in sentence for sentence in found)


@pytest.mark.usefixtures("quick_compilation")
def test_a_minimum_between_the_points_is_told():
    """−u'' = f by its energy at eight points, which hold a network of forty parameters by nothing."""
    line = ng.Interval(0.0, 1.0)
    density = lambda u, x: 0.5 * jnp.sum(ng.gradient(u, x) ** 2) - jnp.pi**2 * jnp.sin(jnp.pi * x[0]) * u(x)

    def train(points):
        network = ng.HardBoundary(ng.MLP(1, 1, 13, 1, key=jax.random.key(0)), lambda x: x[0] * (1 - x[0]))
        block = ng.Energy(density, line.interior(points, rule="gauss"), metric=ng.metrics.EnergyNorm())
        problem = ng.EnergyMinimization(network, interior=block, exact=lambda x: jnp.sin(jnp.pi * x[0]))
        return ng.solve(problem, ng.FullNGD(), steps=60, progress=False)

    wrong, right = train(4), train(60)
    assert wrong.errors["h1"] > 0.1 > 1e-2 > right.errors["h1"]
    assert wrong.diagnosis[0].startswith("points exhausted: the energy at other points")
    assert right.diagnosis == ()
    assert right.history.elsewhere[-1] == pytest.approx(1.0, abs=0.1)


SOLVER = ng.NystromNGD(max_rank=50, maxiter=20)
STUCK = {"rank": 50, "inner_iterations": 40, "inner_residual": 0.3, "guard": 1.0}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "the rank is at its cap of 50"),
        ({"rank": 30}, "the inner solve is at its cap of 20 iterations with a residual of 3e-01"),
        ({"rank": 30, "inner_residual": 1e-6}, None),
        ({"inner_residual": 1e-6}, None),
        ({"inner_iterations": 12}, None),
        ({"inner_iterations": 12, "guard": 1e4}, "the damping is held up by short steps: they have raised μ 1e+04"),
        ({"inner_iterations": 12, "guard": 2.0}, None),
    ],
)
def test_stalls_say_what_they_are(change, said):
    found = diagnose(records(**{**STUCK, **change}), PROBLEM, SOLVER)
    assert len(found) == (said is not None)
    assert all(sentence.startswith(said) and "\n" not in sentence for sentence in found)
    # The same numbers in a run that goes on, that is short, or that has come down to round-off.
    assert diagnose(records(stall=False, **{**STUCK, **change}), PROBLEM, SOLVER) == ()
    assert diagnose(records(**{**STUCK, **change})[-8:], PROBLEM, SOLVER) == ()
    rows = records(**{**STUCK, **change})
    deep = [{**row, "loss": row["loss"] * (1e-15 if k else 1.0)} for k, row in enumerate(rows)]
    assert diagnose(deep, PROBLEM, SOLVER) == ()


def test_the_caps_are_those_of_the_solver_inside():
    kernel = ng.NaturalGradient(ng.Kernel(ng.PCG(ng.RowFactor(max_rank=50), maxiter=20)))
    assert diagnose(records(**STUCK), PROBLEM, kernel)[0].startswith("the rank is at its cap")
    unlimited = ng.NystromNGD(maxiter=20)
    assert diagnose(records(**STUCK), PROBLEM, unlimited)[0].startswith("the inner solve is at its cap")
    assert diagnose(records(**STUCK), PROBLEM, ng.FullNGD()) == ()


def test_solvers_that_say_little_and_no_steps_at_all():
    assert diagnose(records(), PROBLEM, ng.Adam()) == ()
    assert diagnose(records(**dict.fromkeys(STUCK, math.nan)), PROBLEM, SOLVER) == ()
    assert diagnose([], PROBLEM, SOLVER) == ()


def test_an_energy_that_no_longer_falls_has_not_stalled():
    square = ng.Box([0.0, 0.0], [1.0, 1.0])
    energy = ng.EnergyMinimization(
        ng.MLP(2, 1, 4, 1, key=jax.random.key(0)),
        interior=ng.Energy(lambda u, x: u(x) ** 2 - u(x), square.interior(9, rule="gauss"), metric=ng.metrics.L2()),
    )
    assert diagnose(records(**STUCK), energy, SOLVER) == ()


@pytest.mark.usefixtures("quick_compilation")
def test_without_a_display_the_solution_alone_has_it(capsys, monkeypatch):
    monkeypatch.setattr(sys.modules["natgrad.training"], "diagnose", lambda *run: ("something is wrong",))
    assert ng.solve(PROBLEM, ng.Adam(), steps=1, progress=False).diagnosis == ("something is wrong",)
    assert capsys.readouterr().err == ""
