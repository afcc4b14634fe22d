"""Options given as text: their types, their paths, and what they reach."""

from typing import Literal

import jax
import pytest

import natgrad as ng
from natgrad import zoo
from natgrad.experiment import optimizers
from natgrad.experiment.config import Config, resolve
from natgrad.experiment.settings import parse


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("16", int, 16),
        ("1e4", int, 10_000),
        ("-3", int, -3),
        ("0.5", float, 0.5),
        ("3", float, 3.0),
        ("inf", float, float("inf")),
        ("true", bool, True),
        ("off", bool, False),
        ("tanh", str, "tanh"),
        ("none", int | None, None),
        ("7", int | None, 7),
        ("b", Literal["a", "b"], "b"),
        ("1,2,3", tuple[int, ...], (1, 2, 3)),
        ("(1, 0.5)", tuple[int, float], (1, 0.5)),
    ],
)
def test_text_becomes_values(text, kind, value):
    found = parse("option", text, kind)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1.5", int),
        ("x", float),
        ("2", bool),
        ("c", Literal["a", "b"]),
        ("1,2", tuple[int, int, int]),
        ("x", int | None),
    ],
)
def test_wrong_text_is_refused(text, kind):
    with pytest.raises(ValueError, match="option"):
        parse("option", text, kind)


def test_the_type_of_the_default_where_there_is_no_annotation():
    assert parse("option", "3", None, 1.5) == 3.0
    assert parse("option", "3", None, None) == "3"


def test_every_part_of_a_solver_can_be_reached():
    solver = optimizers.build("nystrom-gaussian", "default", {"max_rank": 300}, 10)
    assert solver.direction.preconditioner.max_rank == 300
    for key, text, found in (
        ("max_rank", "100", lambda s: s.direction.preconditioner.max_rank == 100),
        ("direction.maxiter", "7", lambda s: s.direction.maxiter == 7),
        ("gamma", "3", lambda s: s.damping.rule.gamma == 3.0),
        ("search", "GridSearch", lambda s: type(s.search).__name__ == "GridSearch"),
        ("damping", "LevenbergMarquardt", lambda s: type(s.damping).__name__ == "LevenbergMarquardt"),
        ("rule", "Spectral", lambda s: type(s.damping.rule).__name__ == "Spectral" and s.damping.up == 8.0),
        ("damping.short", "0.1", lambda s: s.damping.short == 0.1),
        ("batch", "50", lambda s: s.batch == 50),
        ("warm_start", "no", lambda s: s.direction.warm_start is False),
    ):
        assert found(optimizers.set_option(solver, key, text)), key
        assert not found(solver), key


def test_exchanging_the_damping_keeps_gamma_and_its_options_follow():
    solver, record = resolve(
        Config("poisson3d", "nystrom", settings=("up=4", "gamma=5", "damping=LevenbergMarquardt")), {}
    )
    assert solver.damping.gamma == 5.0
    assert solver.damping.up == 4.0
    assert record["options"]["solver"]["damping"] == "LevenbergMarquardt"


def test_ambiguous_options_are_named():
    solver = optimizers.build("nystrom", "published", {}, 10)
    solver = optimizers.set_option(solver, "damping", "Geometric")
    with pytest.raises(
        ValueError, match=r"ambiguous: write one of solver\.direction\.preconditioner\.ratio, solver\.damping"
    ):
        optimizers.set_option(solver, "ratio", "0.5")


def test_the_default_optimizer_takes_the_parts_that_all_forms_have():
    solver, record = resolve(Config("poisson3d", settings=("search=GridSearch", "damping=LevenbergMarquardt")), {})
    assert solver == ng.NGD(search=ng.GridSearch(), damping=ng.damping.LevenbergMarquardt())
    assert record["options"]["solver"]["damping"] == "LevenbergMarquardt"
    poisson = zoo.get("poisson3d").problem(jax.random.key(0), "small", width=4, interior=20, boundary=12)
    plan = optimizers.planned(solver, poisson, None, None)
    assert optimizers.planned(None, poisson, None, optimizers.record_of(plan)) == plan


def test_what_another_optimizer_has_is_refused():
    for name, key in (("nystrom", "ratio"), ("auto", "max_rank"), ("rpcholesky", "increase"), ("kernel", "tol")):
        with pytest.raises(ValueError, match=f"the option '{key}' would do nothing with this optimizer: it is one of"):
            resolve(Config("poisson3d", name, settings=(f"{key}=0.5",)), {})


@pytest.mark.parametrize("name", optimizers.NAMES)
def test_every_optimizer_is_built_from_its_name(name):
    solver, record = resolve(Config("poisson3d", name), {})
    assert hasattr(solver, "step")
    assert record["options"]["solver"]
    assert record["steps"] > 0
    if name in optimizers.ONE_RECIPE:
        with pytest.raises(ValueError, match=f"the optimizer {name} has no published recipe"):
            resolve(Config("poisson3d", name, recipe="published"), {})
    else:
        published, _ = resolve(Config("poisson3d", name, recipe="published"), {})
        assert hasattr(published, "step")


def test_recipes_and_schedules():
    default, _ = resolve(Config("poisson3d", "nystrom"), {})
    published, _ = resolve(Config("poisson3d", "nystrom", recipe="published"), {})
    assert default.acceleration > 0
    assert published.acceleration == 0
    adam, record = resolve(Config("poisson3d", "adam", steps=77), {})
    assert adam.total == 77 == record["steps"]


def test_network_options_are_options_of_the_problem():
    _, record = resolve(Config("poisson3d", settings=("network.width=7", "problem.depth=1", "interior=9")), {})
    assert record["options"]["problem"] == {"width": 7, "depth": 1, "interior": 9, "boundary": 600}
