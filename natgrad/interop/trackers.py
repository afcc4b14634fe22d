"""Experiment trackers as callbacks: every number of every step in TensorBoard, Weights & Biases or MLflow.

    ng.solve(problem, solver, steps=300, callback=ng.trackers.TensorBoard("logs"))

A tracker takes the record of each step (loss, μ, errors, weights …), and unknown numbers of an inverse problem at the
steps that are `due` (`natgrad.callbacks.Now`), so that no step is taken twice. One of your own has `log` and `close`:

    class Lines(ng.trackers.Tracker):
        def log(self, step, numbers): print(step, numbers["loss"])
        def close(self): pass

Each opens what it writes to with its first step, and closes it at the end; of several processes the first one writes.
"""

import abc
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from natgrad.backend.parallel import first
from natgrad.callbacks import Now
from natgrad.extras import needs
from natgrad.unknowns import numbers as unknown


class Tracker(abc.ABC):
    """What all trackers do: numbers out of records. A subclass writes them."""

    @abc.abstractmethod
    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Writes the numbers of a step, by name: `loss`, `mu`, `errors/h1`, `unknowns/nu`."""

    @abc.abstractmethod
    def close(self) -> None:
        """Writes what is left; a further run opens anew."""

    def __call__(self, record: Mapping[str, Any], now: Now) -> None:
        if first():
            self.log(record["step"], flat(record) | (flat(unknown(now.network), "unknowns/") if now.due else {}))

    def ended(self, solution: Any) -> None:
        """The evaluation that came after the last step, the unknowns where the run ended, and the end."""
        if not first():
            return
        if solution.steps:
            last = {key: solution.history.records[-1].get(key, math.nan) for key in ("errors", "validation")}
            self.log(solution.steps, flat(last) | flat(unknown(solution.u), "unknowns/"))
        self.close()


class TensorBoard(Tracker):
    """Event files in a folder, for `tensorboard --logdir FOLDER`; needs tensorboardX.

    A run that begins or goes on in a folder with events of another hides those from its first step on.
    """

    def __init__(self, folder: str | Path):
        with needs("TensorBoard", "tensorboard"):
            import tensorboardX
        self.folder, self._make = Path(folder), tensorboardX.SummaryWriter
        self._writer: Any = None
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{folder} is a file: TensorBoard takes the name of a folder")

    def log(self, step, numbers):
        if self._writer is None:  # its files have names of a second: another one in the same second would replace it
            self._writer = self._make(str(self.folder), purge_step=step, filename_suffix=f".{time.time_ns()}")
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def close(self):
        if self._writer is not None:
            self._writer.close()
        self._writer = None


class WandB(Tracker):
    """A run of Weights & Biases; options are those of `wandb.init`, `mode="offline"` among them."""

    def __init__(self, project: str = "natgrad", **options: Any):
        with needs("WandB", "wandb"):
            import wandb
        self.options, self._start = {"project": project, **options}, wandb.init
        self._run: Any = None

    def log(self, step, numbers):
        if self._run is None:
            with opens("Weights & Biases"):
                self._run = self._start(**self.options)
        self._run.log(dict(numbers), step=step)

    def close(self):
        if self._run is not None:
            self._run.finish()
        self._run = None


class MLflow(Tracker):
    """A run of MLflow at a tracking URI: a database in a file, `sqlite:///mlflow.db`, or a server's address.

    The default is MLflow's own choice. The run that is active is left alone.
    """

    def __init__(self, experiment: str = "natgrad", *, uri: str | None = None, name: str | None = None):
        with needs("MLflow", "mlflow"):
            import mlflow

            if (uri or "").startswith("sqlite"):
                import alembic  # noqa: F401
                import sqlalchemy  # noqa: F401
        self.experiment, self.uri, self.name = experiment, uri, name
        self._library, self._run = mlflow, ""
        self._client: Any = None

    def log(self, step, numbers):
        if self._client is None:
            with opens(f"MLflow at {self.uri}" if self.uri else "MLflow"), silent("mlflow.store.db.utils"):
                self._open()
        stamp = int(1000 * time.time())
        metrics = [self._library.entities.Metric(key, value, stamp, step) for key, value in numbers.items()]
        self._client.log_batch(self._run, metrics=metrics)

    def _open(self):
        client = self._library.MlflowClient(tracking_uri=self.uri)
        known = client.get_experiment_by_name(self.experiment)
        home = known.experiment_id if known is not None else client.create_experiment(self.experiment)
        self._run = client.create_run(home, run_name=self.name).info.run_id
        self._client = client

    def close(self):
        if self._client is not None:
            self._client.set_terminated(self._run)
        self._client = None


@contextmanager
def opens(where: str) -> Iterator[None]:
    """What a tracker's own library says when it cannot begin a run, in one line."""
    try:
        yield
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{where} does not begin a run: {said}") from error


@contextmanager
def silent(name: str) -> Iterator[None]:
    """Only warnings of a logger: MLflow tells of each table that it makes."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The finite numbers of a record under one name each: those of dicts and arrays with what they are in before."""
    found: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}/")
        elif np.ndim(value):
            found |= flat({str(i): entry for i, entry in enumerate(np.ravel(value))}, f"{prefix}{name}/")
        elif name != "step" and np.asarray(value).dtype.kind in "bifu" and np.isfinite(value):
            found[f"{prefix}{name}"] = float(value)
    return found


# What `natgrad run --log NAME` makes, all of it within the folder of the run.
NAMES: dict[str, Callable[[Path], Tracker]] = {
    "tensorboard": lambda folder: TensorBoard(folder / "tensorboard"),
    "wandb": lambda folder: WandB(mode="offline", dir=str(folder), name=folder.name),
    "mlflow": lambda folder: MLflow(uri=f"sqlite:///{(folder / 'mlflow.db').absolute().as_posix()}", name=folder.name),
}


def by_names(names: Sequence[str], folder: Path) -> list[Tracker]:
    """The trackers of these names; ValueError where there is none of a name."""
    for name in names:
        if name not in NAMES:
            raise ValueError(f"there is no tracker {name!r}: --log takes {', '.join(NAMES)}")
    return [NAMES[name](folder) for name in names]
