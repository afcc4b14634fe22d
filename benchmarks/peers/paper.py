"""What the runs of both packages on the paper's problems share: command line, problem, errors, record."""

import argparse
import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

import natgrad as ng
from benchmarks.peers.record import Recorder, versions
from benchmarks.peers.table import TARGETS
from natgrad import zoo
from natgrad.problem import Problem


def arguments(doc: str | None, settings: Sequence[str]) -> argparse.Namespace:
    """The command line of a run."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", choices=TARGETS)
    parser.add_argument("--setting", choices=settings, default=settings[0])
    parser.add_argument("--preset", choices=("paper", "small"), default="paper")
    parser.add_argument("--steps", type=int, help="accepted steps at most; the preset's by default")
    parser.add_argument("--seconds", type=float, default=120.0, help="of stepping, at most")
    parser.add_argument("--stop-at", type=float, default=0.0, help="stop at this relative H¹ error")
    parser.add_argument("--every", type=int, default=5, help="accepted steps between two evaluations of the error")
    parser.add_argument("--rank", type=int, help="of the preconditioner, at most; natgrad's own or randngd's 500 else")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="options of the problem")
    parser.add_argument("--lock", type=Path, help="a file: of runs started together with it, one steps at a time")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def problem_of(options: argparse.Namespace, recipe: str = "published") -> tuple[Problem, zoo.Preset]:
    """The problem with the points of the paper, and its preset; the metric is the recipe's."""
    benchmark = zoo.get(options.problem)
    changes: dict[str, Any] = dict(change.split("=", 1) for change in options.set)
    changes = {key: int(value) if value.isdigit() else value for key, value in changes.items()}
    preset = benchmark.preset(options.preset)
    if options.steps is None:
        options.steps = preset.steps["ngd"]
    if recipe != "published":
        changes = {key: value for key, value in preset.as_published.items() if key != "metric"} | changes
    return benchmark.problem(jax.random.key(options.seed), options.preset, recipe, **changes), preset


@contextmanager
def alone(lock: Path | None) -> Iterator[None]:
    """Inside, no other run with the same lock is."""
    if lock is None:
        yield
        return
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def evaluator(problem: Problem) -> Callable[[Any], dict[str, float]]:
    """params ↦ errors, compiled."""
    evaluate = eqx.filter_jit(lambda problem, params: problem.errors(params))
    errors = lambda params: {name: float(value) for name, value in evaluate(problem, params).items()}
    errors(problem.params)
    return errors


def recorder(peer: str, problem: Problem, options: argparse.Namespace) -> Recorder:
    """A record with everything that is known before the run; its clock starts here."""
    device = jax.devices()[0]
    return Recorder(
        peer=peer,
        problem=options.problem,
        setting=options.setting,
        preset=options.preset,
        seed=options.seed,
        options=options.set,
        rank=options.rank,
        parameters=problem.num_parameters,
        rows=problem.num_rows,
        dtype=str(problem.dtype),
        device=device.device_kind,
        versions={"natgrad": ng.__version__, **versions("jax", "jaxlib", "equinox", "optimistix", "randngd")},
    )


def finish(record: Recorder, options: argparse.Namespace) -> None:
    """Writes the run and says where."""
    names = [record.facts["peer"], options.problem, options.setting, options.preset, *options.set, str(options.seed)]
    path = options.out / ("-".join(names) + ".json")
    record.save(path)
    last = record.history[-1]
    times = f"{last['time']:.1f} s of stepping, {last['wall']:.1f} s in all"
    print(f"{path}: {record.status}, {last['step']} steps, {times}, H¹ {last['h1']:.2e}")
