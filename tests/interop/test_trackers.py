"""Trackers: TensorBoard's events read back; MLflow and Weights & Biases themselves where they are installed.

Their calls are recorded by stubs where they are not.
"""

import json
import sys
from types import ModuleType, SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.cli import command
from natgrad.extras import MissingExtra
from natgrad.interop.trackers import flat

pytestmark = pytest.mark.usefixtures("quick_compilation")
X = np.linspace(0.0, 1.0, 9)[:, None]


def inverse():
    """y = ν x, with ν = 2 to be found."""
    net = ng.Fields(u=ng.MLP(1, 1, 3, 1, key=jax.random.key(0)), nu=ng.Unknown([0.5, 1.0], positive=True))
    model = lambda net, x: jnp.stack([net.nu.value[0] * x[0] - 2 * x[0], net.nu.value[1] - 3, net.u(x)])
    return ng.LeastSquares(net, data=ng.Residual(model, X), exact={"u": lambda x: 0.0 * x[0]}, evaluation=X)


def solve(tracker, steps=7, **options):
    return ng.solve(
        inverse(), ng.FullNGD(), steps, callback=tracker, progress=False, evaluate_every=3, group=4, **options
    )


def test_numbers_of_a_record():
    record = {"step": 3, "loss": np.float64(0.5), "errors": {"h1": 0.1, "l2": np.nan}, "accepted": np.True_}
    record |= {"weights": {"pde": 2.0}, "grid": np.array([1.0, np.inf]), "name": "a", "mu": None}
    assert flat(record) == {"loss": 0.5, "errors/h1": 0.1, "accepted": 1.0, "weights/pde": 2.0, "grid/0": 1.0}


def scalars(folder):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    reader = events.EventAccumulator(str(folder), purge_orphaned_data=True)
    reader.Reload()
    return {name: {e.step: e.value for e in reader.Scalars(name)} for name in reader.Tags()["scalars"]}


def test_tensorboard_reads_what_was_logged(tmp_path):
    pytest.importorskip("tensorboardX")
    board = ng.trackers.TensorBoard(tmp_path / "logs")
    solution = solve(board)
    found = scalars(tmp_path / "logs")
    np.testing.assert_allclose(list(found["loss"].values()), solution.history.loss, rtol=1e-6)
    assert list(found["loss"]) == [1, 2, 3, 4, 5, 6, 7]
    assert list(found["unknowns/nu/0"]) == list(found["errors/l2"]) == [3, 6, 7]
    np.testing.assert_allclose(found["unknowns/nu/0"][7], solution.u.nu.value[0], rtol=1e-6)

    longer = solve(board, 2, resume=solution)  # the same object, the same folder
    found = scalars(tmp_path / "logs")
    np.testing.assert_allclose(list(found["loss"].values()), longer.history.loss, rtol=1e-6)
    np.testing.assert_allclose(found["unknowns/nu/1"][longer.steps], longer.u.nu.value[1], rtol=1e-6)


def test_what_is_logged_in_the_same_second_stays(tmp_path):
    pytest.importorskip("tensorboardX")
    board = ng.trackers.TensorBoard(tmp_path)
    for step in (1, 2, 3):
        board.log(step, {"loss": 1 / step})
        board.close()
    assert list(scalars(tmp_path)["loss"]) == [1, 2, 3]


def test_a_file_is_no_folder_of_events(tmp_path):
    pytest.importorskip("tensorboardX")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="is a file: TensorBoard takes the name of a folder"):
        ng.trackers.TensorBoard(tmp_path / "file")


class Recorder:
    """A stub whose methods record their names and arguments."""

    def __init__(self, calls, **answers):
        self.calls, self.answers = calls, answers

    def __getattr__(self, name):
        return lambda *given, **named: self.calls.append((name, given, named)) or self.answers.get(name)


def test_weights_and_biases_gets_every_step(monkeypatch):
    calls = []
    run = Recorder(calls)
    module = ModuleType("wandb")
    module.init = lambda **options: calls.append(("init", (), options)) or run
    monkeypatch.setitem(sys.modules, "wandb", module)
    solution = solve(ng.trackers.WandB("heat", mode="offline"))
    assert calls[0] == ("init", (), {"project": "heat", "mode": "offline"})
    assert [c[2]["step"] for c in calls if c[0] == "log"] == [1, 2, 3, 4, 5, 6, 7, 7]
    assert calls[-1][0] == "finish"
    np.testing.assert_array_equal(calls[-2][1][0]["unknowns/nu/0"], solution.u.nu.value[0])
    assert calls[1][1][0]["loss"] == solution.history.loss[0]
    assert "unknowns/nu/0" not in calls[1][1][0]


@pytest.mark.parametrize("known", [None, SimpleNamespace(experiment_id="7")])
def test_mlflow_gets_every_step_and_leaves_the_active_run_alone(monkeypatch, known):
    calls = []
    client = Recorder(
        calls,
        get_experiment_by_name=known,
        create_experiment="9",
        create_run=SimpleNamespace(info=SimpleNamespace(run_id="r")),
    )
    module = ModuleType("mlflow")
    module.MlflowClient = lambda tracking_uri: calls.append(("client", (tracking_uri,), {})) or client
    module.entities = SimpleNamespace(Metric=lambda *given: given)
    monkeypatch.setitem(sys.modules, "mlflow", module)
    solve(ng.trackers.MLflow("heat", uri="http://x", name="one"), 2)
    assert calls[0] == ("client", ("http://x",), {})
    assert ("create_run", ("9" if known is None else "7",), {"run_name": "one"}) in calls
    batches = [c[2]["metrics"] for c in calls if c[0] == "log_batch"]
    assert [{metric[3] for metric in batch} for batch in batches] == [{1}, {2}, {2}]
    assert {"loss", "unknowns/nu/1"} <= {metric[0] for metric in batches[1]}
    assert calls[-1] == ("set_terminated", ("r",), {})


def test_mlflow_without_its_database_is_told_before_a_run(monkeypatch):
    """Its own words are about a model registry."""
    monkeypatch.setitem(sys.modules, "mlflow", ModuleType("mlflow"))
    monkeypatch.setitem(sys.modules, "alembic", None)
    with pytest.raises(MissingExtra, match=r"^MLflow needs alembic: pip install 'natgrad\[mlflow\]'$"):
        ng.trackers.MLflow("heat", uri="sqlite:///x.db")


def test_mlflow_itself_keeps_every_step(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    solution = solve(ng.trackers.MLflow("heat", uri=store, name="one"))
    client = mlflow.MlflowClient(tracking_uri=store)
    (run,) = client.search_runs([client.get_experiment_by_name("heat").experiment_id])
    assert (run.info.run_name, run.info.status) == ("one", "FINISHED")
    losses = client.get_metric_history(run.info.run_id, "loss")
    assert [entry.step for entry in losses] == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_array_equal([entry.value for entry in losses], solution.history.loss)
    assert run.data.metrics["unknowns/nu/0"] == solution.u.nu.value[0]
    with pytest.raises(ValueError, match=r"^MLflow at nowhere://x does not begin a run: .*nowhere"):
        solve(ng.trackers.MLflow("heat", uri="nowhere://x"))


@pytest.mark.slow
def test_weights_and_biases_itself_keeps_a_run(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    assert wandb.run is None
    solution = solve(ng.trackers.WandB("heat", mode="offline", dir=str(tmp_path)))
    assert wandb.run is None
    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    wandb.teardown()  # what writes the file is a process of its own
    kept = file.read_bytes()  # its numbers are JSON in there
    assert b"unknowns/nu/0" in kept
    for loss in solution.history.loss:
        assert json.dumps(loss).encode() in kept


def test_a_library_that_does_not_begin_is_told_in_a_line(monkeypatch):
    module = ModuleType("wandb")
    module.init = lambda **options: [][1]
    monkeypatch.setitem(sys.modules, "wandb", module)
    with pytest.raises(ValueError, match=r"^Weights & Biases does not begin a run: list index out of range$"):
        solve(ng.trackers.WandB("heat"))


SMALL = "--steps 4 --no-plots -q --set width=4 --set depth=1 --set interior=40 --set boundary=20"


def natgrad(out, *words):
    return command(["run", "poisson3d", *SMALL.split(), "--out", str(out), *words])


def test_the_command_logs_into_the_folder_of_the_run(tmp_path):
    pytest.importorskip("tensorboardX")
    assert natgrad(tmp_path / "run", "--log", "tensorboard") == 0
    assert list(scalars(tmp_path / "run" / "tensorboard")["loss"]) == [1, 2, 3, 4]
    assert natgrad(tmp_path / "run", "--log", "tensorboard", "--steps", "6", "--resume") == 0
    assert list(scalars(tmp_path / "run" / "tensorboard")["loss"]) == [1, 2, 3, 4, 5, 6]
    assert natgrad(tmp_path / "run", "--log", "tensorboard", "--force") == 0  # hides what was
    assert list(scalars(tmp_path / "run" / "tensorboard")["loss"]) == [1, 2, 3, 4]


def test_the_command_logs_into_a_database_in_the_folder(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    assert natgrad(tmp_path / "run", "--log", "mlflow") == 0
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'run' / 'mlflow.db'}")
    (run,) = client.search_runs([client.get_experiment_by_name("natgrad").experiment_id])
    assert [entry.step for entry in client.get_metric_history(run.info.run_id, "loss")] == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["tensorbord", "tensorboard,tensorboard"])
def test_a_wrong_name_is_told_before_anything_is_written(tmp_path, name, capsys):
    assert natgrad(tmp_path / "run", "--log", name) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--log takes" in said
    assert not (tmp_path / "run").exists()
