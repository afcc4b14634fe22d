"""The registry: names, suggestions, lazy import, presets."""

import subprocess
import sys

import jax
import numpy as np
import pytest

from natgrad import zoo
from natgrad.options import describe
from natgrad.zoo import registry


def test_unknown_names_suggest():
    with pytest.raises(ValueError, match=r"unknown problem 'poison3d': did you mean poisson3d\? There are .*heat3d"):
        zoo.get("poison3d")
    with pytest.raises(ValueError, match=r"unknown problem 'registry'"):
        zoo.get("registry")
    with pytest.raises(ValueError, match=r"'smal' of heat3d: did you mean small\? There are small, paper"):
        zoo.get("heat3d").preset("smal")
    with pytest.raises(ValueError, match=r"unknown option 'with' of poisson3d: did you mean width\?"):
        zoo.get("poisson3d").problem(jax.random.key(0), **{"with": 3})


def test_names_are_the_files_and_sorted():
    assert list(zoo.names()) == sorted(zoo.names())
    assert {"poisson3d", "heat3d", "kovasznay", "burgers"} <= set(zoo.names())
    assert not {"registry", "_reference"} & set(zoo.names())
    assert all(zoo.get(name).name == name for name in zoo.names())


def test_problems_are_imported_when_asked_for():
    code = (
        "import sys; from natgrad import zoo; zoo.names(); zoo.get('poisson3d')\n"
        "print([m for m in sys.modules if m.startswith('natgrad.zoo.') and m.split('.')[-1] != 'registry'])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "['natgrad.zoo.poisson3d']"


def test_options_override_a_preset():
    benchmark = zoo.get("poisson3d")
    problem = benchmark.problem(jax.random.key(0), "small", width=5, depth=1, interior=10, boundary=8)
    assert problem.num_parameters == 5 * 4 + 6
    assert problem.num_rows == 18


@pytest.mark.parametrize("name", [name for name in zoo.names() if zoo.get(name).evolution])
def test_windows_have_the_options_and_the_equation_of_the_problem(name):
    benchmark = zoo.get(name)
    assert describe(benchmark.marched()) == describe(benchmark.build)
    options = {name: 40 for name in ("interior", "initial", "boundary") if name in benchmark.options}
    options |= {name: value for name, value in {"end": 0.002, "depth": 1}.items() if name in benchmark.options}
    window = benchmark.windows(0, width=3, **options).whole()
    problem = benchmark.problem(0, width=3, **options)
    blocks, started = ({block.name for block in p.features} for p in (problem, window))
    assert started in (blocks, blocks | {"initial"}), "a start that is exact for one network is a block in a window"
    assert window.num_parameters == problem.num_parameters


def test_a_problem_without_time_has_no_windows():
    with pytest.raises(ValueError, match="poisson3d has no windows of time"):
        zoo.get("poisson3d").windows(0)


def test_one_window_is_the_whole_problem():
    build = registry.whole(zoo.get("burgers").marched())
    benchmark = zoo.Benchmark("b", "", "", build, {}, lambda options: None)
    assert benchmark.options.keys() == zoo.get("burgers").options.keys()
    assert build(jax.random.key(0), width=3, depth=1, interior=40).num_rows == 44


def test_a_user_registers_a_problem(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})
    preset = zoo.Preset({}, registry.budget(1, 2, 3))
    mine = zoo.Benchmark("mine", "Mine", "u = 0", lambda key: None, {"small": preset}, lambda options: None)
    assert zoo.register(mine) is mine
    assert zoo.get("mine") is mine
    assert "mine" in zoo.names()
    with pytest.raises(ValueError, match="preset named small"):
        zoo.register(zoo.Benchmark("other", "", "", lambda key: None, {}, lambda options: None))


def test_bad_presets_and_pictures_are_refused():
    with pytest.raises(ValueError, match="budgets for ngd, bfgs"):
        zoo.Preset({}, {"ngd": 10})
    with pytest.raises(ValueError, match="as many coordinate names"):
        zoo.Picture((0, 0), (1, 1), ("x",), {})
    with pytest.raises(ValueError, match="not among"):
        zoo.Picture((0, 0), (1, 1), ("x", "y"), {}, at={"z": 0.5})


@pytest.mark.parametrize("name", zoo.names())
def test_no_option_is_taken_out_of_its_range(name):
    """Every option says what it may be, and what it may not be is refused before anything is built."""
    benchmark = zoo.get(name)
    ranges = describe(benchmark.build)
    assert set(ranges) == set(benchmark.options)
    for option in benchmark.options:
        flag = isinstance(benchmark.options[option].default, bool)
        for wrong in (float("nan"), "nonsense", 1 if flag else True, None if option != "depth" else 2.5):
            with pytest.raises(ValueError, match=f"^{option} must be ") as caught:
                benchmark.problem(0, **{option: wrong})
            assert "\n" not in str(caught.value)


def test_integers_are_keys_of_problems():
    build = lambda key: zoo.get("poisson3d").problem(key, width=4, interior=9, boundary=6)
    first, second = build(5), build(jax.random.key(5))
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(a, b)
