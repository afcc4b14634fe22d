"""Several seeds by one program: the same folders as one after the other, and the same resume."""

import json
import os
import signal

import jax
import pytest

from natgrad.experiment import checkpoint, run
from natgrad.experiment.config import prepare
from natgrad.experiment.folder import LOCK
from natgrad.experiment.journal import Journal
from natgrad.experiment.many import check_together
from natgrad.experiment.statuses import SIGNALS
from natgrad.experiment.summary import sentence
from tests.experiment.small_runs import assert_same_run, config, history, timeless

pytestmark = pytest.mark.usefixtures("compiled")
SEEDS, STEPS = (0, 1, 2), 6
TIMES = ("time", "compile_time", "checkpoints", "plateau")  # of result.json, what a clock says


def together(home, said=None, seeds=SEEDS, resume=False, force=False, **options):
    configs = [config("adam", **{"steps": STEPS, "seed": seed, **options}) for seed in seeds]
    say = (lambda text: None) if said is None else said.append
    return run.run_together(configs, folders(home, seeds), resume=resume, force=force, quiet=True, say=say, warn=say)


def folders(home, seeds=SEEDS):
    return [home / f"seed{seed}" for seed in seeds]


def record(folder, name, but=()):
    return {key: value for key, value in json.loads((folder / name).read_text()).items() if key not in but}


@pytest.fixture(scope="module")
def alone(tmp_path_factory, compiled):
    """The same seeds, each by itself."""
    home = tmp_path_factory.mktemp("alone")
    for seed, folder in zip(SEEDS, folders(home), strict=True):
        run.run(config("adam", steps=STEPS, seed=seed), folder, quiet=True, say=lambda text: None)
    return home


@pytest.fixture
def at_once(monkeypatch):
    """As on a GPU."""
    monkeypatch.setattr("natgrad.many.on_cpu", lambda: False)


def stopped(home, monkeypatch, at, number=signal.SIGTERM, **options):
    """The seeds, sent a signal in the middle of a step of one of them."""
    original, count = Journal.append, [0]

    def append(self, entry):
        count[0] += 1
        if count[0] == at:
            os.kill(os.getpid(), number)
        original(self, entry)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", append)
        return together(home, **options)


def test_the_same_folders_to_the_last_bit(tmp_path, alone):
    results = together(tmp_path)
    for seed, result, folder, other in zip(SEEDS, results, folders(tmp_path), folders(alone), strict=True):
        assert_same_run(other, folder)
        assert record(folder, "config.json") == record(other, "config.json")
        assert record(folder, "result.json", TIMES) == record(other, "result.json", TIMES)
        assert result["seed"] == seed
        assert result == record(folder, "result.json")
        assert sorted(p.name for p in folder.rglob("*")) == sorted(p.name for p in other.rglob("*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interruption_and_on(tmp_path, monkeypatch, alone, number):
    """In the second seed: the first is finished, the third has not begun, and all three end as if nothing had been."""
    results = stopped(tmp_path, monkeypatch, STEPS + 2, number)
    status = SIGNALS[number]
    assert [(r["status"], r["steps"]) for r in results] == [("steps", 6), (status, 2), (status, 0)]
    assert sentence(results[2]) == f"{status} before its first step"
    said = []
    assert [r["status"] for r in together(tmp_path, said, resume=True)] == ["steps"] * 3
    assert "seed0 is finished" in said[0]
    assert said[1].startswith("seed 1: going on from step 2")
    for folder, other in zip(folders(tmp_path), folders(alone), strict=True):
        assert_same_run(other, folder)


def test_one_that_has_ended_is_kept_whatever_comes(tmp_path, monkeypatch, alone):
    """A crash in the second seed leaves the first with its result; alone or together, the rest goes on."""

    class Crash(BaseException):
        pass

    def crash(self, entry):
        if self.path.parent.name == "seed1" and entry["step"] == 4:
            raise Crash
        original(self, entry)

    original = Journal.append
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", crash)
        with pytest.raises(Crash):
            together(tmp_path)
    assert [(folder / "result.json").exists() for folder in folders(tmp_path)] == [True, False, False]
    assert not list(tmp_path.rglob(LOCK))
    run.run(config("adam", steps=STEPS, seed=1), folders(tmp_path)[1], resume=True, quiet=True, say=lambda text: None)
    together(tmp_path, resume=True)
    for folder, other in zip(folders(tmp_path), folders(alone), strict=True):
        assert_same_run(other, folder)


def test_a_lost_result_is_written_anew(tmp_path, alone):
    together(tmp_path)
    before = record(folders(tmp_path)[2], "result.json", TIMES)
    (folders(tmp_path)[2] / "result.json").unlink()
    together(tmp_path, resume=True)
    assert record(folders(tmp_path)[2], "result.json", TIMES) == before
    assert together(tmp_path, said := [], resume=True)[2]["status"] == "steps"
    assert [text.partition(" (")[2] for text in said] == ["steps after 6 steps): nothing to resume"] * 3
    assert_same_run(folders(alone)[2], folders(tmp_path)[2])


def test_at_once_with_a_journal_each(tmp_path, monkeypatch, at_once, alone):
    """To round-off what each is alone; its folder says with how many it was trained. Stopped, all go on."""
    options = {"seeds": (0, 1)}
    results = stopped(tmp_path, monkeypatch, 5, **options)
    assert [r["status"] for r in results] == ["terminated"] * 2
    assert max(r["steps"] for r in results) < STEPS
    for folder, result in zip(folders(tmp_path, (0, 1)), results, strict=True):
        assert len(history(folder)) == result["steps"]
        assert checkpoint.read(checkpoint.files(folder / "checkpoint")[0])[0]["step"] == result["steps"]
    results = together(tmp_path, resume=True, **options)
    for folder, other, result in zip(folders(tmp_path, (0, 1)), folders(alone), results, strict=False):
        assert (result["status"], result["steps"], result["together"]) == ("steps", STEPS, 2)
        assert record(folder, "config.json", ("together",)) == record(other, "config.json")
        pairs = zip(timeless(folder), timeless(other), strict=True)
        assert all(mine["loss"] == pytest.approx(its["loss"], rel=1e-6) for mine, its in pairs)


def test_runs_at_once_share_a_budget():
    arrays = sum(leaf.nbytes for leaf in jax.tree.leaves(prepare(config()).problem) if isinstance(leaf, jax.Array))
    some = config("adam", memory=str(2 * arrays))
    assert prepare(some, None, 1).record["memory"] == str(2 * arrays)
    with pytest.raises(ValueError, match="is for each of 2 runs less than the problem's own arrays"):
        prepare(some, None, 2)


def test_all_is_checked_before_anything_is_written(tmp_path):
    """A stranger's folder, a run that is there, and a run of another kind: nobody's folder is touched."""
    stranger = folders(tmp_path)[2]
    stranger.mkdir()
    (stranger / "letter.txt").write_text("mine")
    with pytest.raises(ValueError, match="has other things in it"):
        together(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["seed2", "letter.txt"]
    together(tmp_path, seeds=(1,), evaluate_every=1)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="holds a run already: --resume goes on with it"):
        together(tmp_path, seeds=(0, 1))
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_runs_that_began_otherwise_do_not_go_together(tmp_path, monkeypatch):
    stopped(tmp_path, monkeypatch, 2, seeds=(0,), target_error=1e-9)
    stopped(tmp_path, monkeypatch, 2, seeds=(1,))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=r"seed0 do not go together \(--target-error is None and 1e-09\): leave"):
        together(tmp_path, seeds=(0, 1), resume=True)
    stopped(tmp_path, monkeypatch, 2, seeds=(2,), steps=STEPS + 1, target_error=1e-9)
    with pytest.raises(ValueError, match=r"seed0 do not go together \(total is 7 and 6\): leave --together out"):
        together(tmp_path, seeds=(0, 2), resume=True, steps=None)
    assert before.items() <= {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}.items()


@pytest.mark.parametrize(
    ("seeds", "others", "message"),
    [
        (None, {}, "--together trains several seeds: give them, as in --seeds 0:10"),
        ("0:2", {"devices": 2}, "--together trains on one device, and --devices is for several"),
        ("0:2", {"devices": None, "num_processes": 2}, "one device, and --num-processes is for several"),
    ],
)
def test_wrong_options(seeds, others, message):
    with pytest.raises(ValueError, match=message) as caught:
        check_together(seeds, **others)
    assert "\n" not in str(caught.value)
