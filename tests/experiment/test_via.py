"""`natgrad run … --via`: other values of an option first, in one folder, which goes on wherever it was killed."""

import json

import jax.numpy as jnp
import pytest

from benchmarks.records import reached_after
from natgrad import zoo
from natgrad.experiment import checkpoint
from natgrad.experiment.config import Config, asked, prepare
from natgrad.experiment.fields import panels
from natgrad.experiment.journal import Journal
from natgrad.experiment.live import Live
from natgrad.experiment.run import run
from natgrad.experiment.runs import load
from natgrad.experiment.watch import position
from tests.experiment.small_runs import assert_same_run, history
from tests.experiment.test_resume import Crash, crash_after

pytestmark = pytest.mark.usefixtures("compiled")
SETTINGS = ("width=4", "depth=2", "interior=30", "waves_y=1", "k=3")
STEPS = 4


def config(via="k=1,2", settings=SETTINGS, **options):
    return Config("helmholtz2d", "ngd-full", steps=STEPS, settings=settings, via=via, **options)


def train(folder, resume=False, **options):
    return run(config(**options), folder, resume=resume, quiet=True, say=lambda text: None, warn=lambda text: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, compiled):
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(folder)
    return folder


def test_one_folder_of_all_values(whole):
    """The result is that of the last value, which began where the one before ended."""
    result, known = (json.loads((whole / name).read_text()) for name in ("result.json", "config.json"))
    records = history(whole)
    assert (result["status"], result["steps"], known["via"]) == ("steps", 12, {"k": [1.0, 2.0]})
    assert [record["value"] for record in records] == [1.0] * 4 + [2.0] * 4 + [3.0] * 4
    assert "--via k=1,2" in " ".join(result["command"])
    assert known["options"]["problem"]["k"] == 3.0
    assert result["errors"] == records[-1]["errors"]
    assert result["plateau"]["error"] == result["errors"]["h1"]
    assert records[8]["loss"] < 0.5 * records[0]["loss"]
    assert position(Live(whole, known, {}, records)) == "12 at k = 3"


def test_a_target_is_that_of_the_last_value(whole):
    """However small the error was at the values before."""
    read = load(whole)
    assert reached_after(1e9, read, "l2", read.result["errors"]["l2"]) == history(whole)[8]["time"]


@pytest.mark.parametrize("steps", [2, 6, 11])
def test_crash_and_resume_at_any_value(tmp_path, monkeypatch, whole, steps):
    monkeypatch.setattr(checkpoint, "SHARE", float("inf"))
    with monkeypatch.context() as patch:
        crash_after(patch, Journal, "append", steps)
        with pytest.raises(Crash):
            train(tmp_path / "run")
    train(tmp_path / "run", resume=True)
    assert_same_run(whole, tmp_path / "run")


def test_what_has_ended_is_left_as_it_is(whole):
    before = (whole / "result.json").read_text()
    train(whole, resume=True)
    assert (whole / "result.json").read_text() == before
    with pytest.raises(ValueError, match=r"via is \{'k': \[1.0, 2.0\]\} there and \{'k': \[1.0\]\} here"):
        train(whole, via="k=1", resume=True)


def test_the_function_of_the_last_value_is_read_back_and_drawn(whole):
    read = load(whole)
    assert jnp.shape(read.function()(jnp.array([0.1, 0.2]))) == ()
    problem, params = read.restore()
    assert float(problem.errors(params[-1])["l2"]) == pytest.approx(read.result["errors"]["l2"], rel=1e-9)
    assert [panel.title for panel in panels(read)[0]] == ["u", "exact u", "difference"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"via": "k"}, "--via takes an option and its values, such as reynolds=100,400, or none, got 'k'"),
        ({"via": "nu=1"}, "unknown option 'nu' of helmholtz2d"),
        ({"via": "k=a"}, "problem.k .*'a'"),
        ({"via": "k=1,3"}, "--via k=1.0,3.0: with the problem's own k, values must differ from one another"),
        ({"via": "width=0"}, "width must be a positive integer, got 0"),
    ],
)
def test_bad_values_end_in_one_line(options, words):
    with pytest.raises(ValueError, match=words) as caught:
        prepare(config(**options)).stages(float(options["via"].partition("=")[2].split(",")[0]))
    assert "\n" not in str(caught.value)


def test_windows_and_values_do_not_go_together():
    with pytest.raises(ValueError, match="windows of time, or values in turn: leave --windows out"):
        prepare(Config("reaction", windows="3", via="rho=1,2"))


def test_none_leaves_out_those_of_the_preset():
    assert zoo.get("cavity").preset("record_1000").via == {"reynolds": (100.0, 400.0)}
    small = ("width=4", "depth=1", "interior=20", "reynolds=20")
    for via, known in ((None, {"reynolds": [100.0, 400.0]}), ("none", None), ("reynolds=10", {"reynolds": [10.0]})):
        assert asked(Config("cavity", preset="record_1000", settings=small, via=via)).get("via") == known
