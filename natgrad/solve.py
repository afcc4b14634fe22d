"""`solve`: the training loop with history, stopping rules, progress display and interruption.

The loop is plain: compile the solver's step, call it, look at what it says. Time counts stepping alone: compilation,
error evaluation, display and callbacks are outside the clock. Where a call takes several steps, they share its seconds,
and a run that is to stop amid them takes those up to there again.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from natgrad import host
from natgrad.diagnosis import diagnose
from natgrad.optim.balance import balance, weighted
from natgrad.parallel import agree, everywhere
from natgrad.plan import plan
from natgrad.problem import Problem
from natgrad.programs import Program, together
from natgrad.progress import Progress
from natgrad.stepping import Stepper, strong

GIVE_UP = 10  # rejected steps in a row, each with more damping than the one before
# In the record of a step that was not evaluated.
NOTHING = {"validation": math.nan, "training": math.nan, "size": math.nan}


class History(Mapping):
    """What each step reported, as NumPy arrays (steps,): `history.loss`, `history["mu"]`, `history.errors["h1"]`.

        history = ng.solve(problem, ng.NystromNGD(), steps=100).history
        plt.semilogy(history.time, history.loss)

    `loss` is the loss after each step, with the weights of that step; `time` counts seconds of stepping. `validation`
    is the loss at independent points, of the blocks that can be drawn again, and `training` the loss of the same blocks
    at their own points; `size` is that of u over the size of the network at the start. These and the errors are NaN at
    steps where they were not evaluated. `weights` has those of the blocks, by name, where some are "auto".
    """

    def __init__(self, records: list[dict[str, Any]]):
        self._records = records

    def __getitem__(self, name: str) -> np.ndarray:
        if self._records and name not in self._records[0]:
            raise KeyError(f"no {name!r} in the history: it has {', '.join(self)}")
        return np.asarray([record.get(name, math.nan) for record in self._records])

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(str(error.args[0])) from None

    @property
    def errors(self) -> dict[str, np.ndarray]:
        names = sorted({name for record in self._records for name in record["errors"]})
        return {n: np.asarray([r["errors"].get(n, math.nan) for r in self._records], float) for n in names}

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """{block: its weight in each step}; {} where no weight is "auto"."""
        names = self._records[0].get("weights", {}) if self._records else {}
        return {n: np.asarray([record["weights"][n] for record in self._records], float) for n in names}

    @property
    def records(self) -> list[dict[str, Any]]:
        """One dict a step."""
        return self._records

    def __iter__(self):
        return iter(self._records[0] if self._records else ())

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"History({len(self)} steps: {', '.join(self)})"


@dataclass(frozen=True)
class Solution:
    """What training gave.

    `u` is the trained network, `errors` its relative errors against the exact solution (empty without one), `status`
    why training ended, `time` the seconds of stepping, `compile_time` those of compilation, `compiled` whether the step
    was compiled ("new") or came from an earlier call ("memory") or process ("disk"). `validation` is the loss at points
    the training never saw (NaN where there are none), and `diagnosis` says in short sentences what is wrong where
    something is (see `natgrad.diagnosis`). `state` goes on where it ended:
    `ng.solve(problem, solver, steps=…, resume=solution)`.
    """

    u: Callable = field(repr=False)
    params: PyTree = field(repr=False)
    state: Any = field(repr=False)
    history: History
    loss: float
    errors: dict[str, float]
    status: str
    steps: int
    time: float
    compile_time: float
    validation: float = math.nan
    diagnosis: tuple[str, ...] = ()
    compiled: str = "new"


def solve(
    problem: Problem,
    solver: Any,
    steps: int,
    *,
    key: PRNGKeyArray | None = None,
    params: PyTree | None = None,
    resume: Solution | None = None,
    evaluate_every: int = 10,
    target_error: float | None = None,
    target_loss: float | None = None,
    time_limit: float | None = None,
    patience: int | None = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    checkpoint: Callable[[PyTree, Any], Any] | None = None,
    progress: bool = True,
    memory: int | None = None,
    group: int | None = None,
    cache: bool = True,
) -> Solution:
    """Trains a problem's network; Ctrl-C ends it early and keeps what there is.

        solution = ng.solve(problem, ng.NystromNGD(), steps=300, target_error=1e-5)

    Arguments:
        solver: anything with `init(problem, params, key)` and `step(problem, params, state) -> (params, state, info)`.
        steps: at most so many (more, where `resume` is given).
        key: the randomness of the solver, a key that nothing else was drawn from; a fixed one by default.
        params: where to start; the problem's own network by default.
        resume: a solution to go on from, its state and history included.
        evaluate_every: errors and the validation loss are evaluated every so many steps, and at the end.
        target_error, target_loss: stop at or below (the error is H¹).
        time_limit: stop after so many seconds of stepping.
        patience: stop when the loss has not fallen by 1 % within so many steps.
        callback: called with each step's record (a dict); a true value stops the training (a word becomes its status).
        checkpoint: called with the parameters and the state after each group of steps but a stopping one, at all
            multiples of `evaluate_every` among others; with `group=1` after every step.
        progress: a live display in a terminal or notebook, a line now and then elsewhere.
        memory: bytes a step may take on a device: strategy, batch and rank follow, and what cannot fit is said at once.
        group: at most so many steps run in one go on the device, up to the next evaluation; by default what takes a
            quarter of a second, and each by itself on a CPU where rows times parameters are more than ten million.
        cache: use what was compiled before, in this process or (from the user's cache folder) in another one, and keep
            what is compiled now; see docs/compilation.md.
    """
    _check(problem, solver, target_error, time_limit)
    _check_counts(steps=steps, evaluate_every=evaluate_every, patience=patience, group=group)
    _check_start(problem, params, resume, callback)
    solver = balance(plan(solver, problem, memory), problem)
    if resume is not None:
        params, state, records = resume.params, resume.state, list(resume.history.records)
    else:
        params = problem.params if params is None else params
        state = solver.init(problem, params, host.key(host.SOLVER) if key is None else key)
        records = []
    params, state = jax.tree.map(strong, (params, state))
    evaluate = Evaluation(problem, params, state, cache)

    clock = records[-1]["time"] if records else 0.0
    begun = clock
    rejected, status = _rejected(records), "steps"
    loss = records[-1]["loss"] if records else math.nan
    first, last = len(records), len(records) + steps
    # The last call of the stepper goes from `before`, after step `at`, on to `ahead`, by `count` steps.
    before = ahead = params, state
    at, count = first, 0
    with Progress(problem, solver, first, last, enabled=progress) as display:
        started, compile_time, compiled = time.perf_counter(), 0.0, "new"
        try:
            stepper = Stepper(problem, solver, params, state, group, cache)
            together(stepper.program, *([evaluate.program] if evaluate.program is not None else []))
            compile_time, compiled = time.perf_counter() - started, stepper.program.origin
            display.compiled(compile_time, compiled)
            pace: float | None = None
            reason: str | None = None
            while len(records) < last and not reason:
                before, at = ahead, len(records)
                count = min(stepper.count(pace), last - at, evaluate_every - at % evaluate_every)
                tick = time.perf_counter()
                ahead, told = stepper(before, count)
                end = agree(clock + time.perf_counter() - tick)
                pace = (end - clock) / count
                for place, row in enumerate(told, 1):
                    loss = float(row.pop("loss") + row.pop("change"))
                    if not math.isfinite(loss):
                        reason = "not finite"
                        break
                    step, clock = at + place, end - (count - place) * pace
                    due = step % evaluate_every == 0 or step == last  # and then the last of its group
                    seen = evaluate(*ahead, loss) if due else NOTHING
                    record = {"step": step, "time": clock, "loss": loss, "errors": {}, **seen, **row}
                    records.append(record)
                    display.update(record)
                    rejected = 0 if row.get("accepted", True) else rejected + 1
                    reason = _stop(records, rejected, clock - begun, target_error, target_loss, time_limit, patience)
                    if callback is not None and (wish := callback(record)):
                        reason = wish if isinstance(wish, str) else "callback"
                    if reason:
                        break
                if checkpoint is not None and not reason:
                    checkpoint(*ahead)
            status = reason or status
        except KeyboardInterrupt:
            status = "interrupted"
        kept = len(records) - at
        params, state = ahead if kept == count else before if kept == 0 else stepper(before, kept)[0]
        final: dict[str, Any] = records[-1] if records else {"errors": {}, **NOTHING}
        if records or status != "interrupted":  # else nothing was done, and nothing is worth waiting for
            if not math.isfinite(loss):
                loss = evaluate.loss(params, state)
            if not evaluated(final):
                final.update(evaluate(params, state, loss))
        diagnosis = diagnose(records, problem, solver)
        display.finish(status, records, diagnosis)
    return Solution(
        u=problem.solution(params),
        params=params,
        state=state,
        history=History(records),
        loss=loss,
        errors=final["errors"],
        status=status,
        steps=len(records),
        time=clock,
        compile_time=compile_time,
        validation=final.get("validation", math.nan),
        diagnosis=diagnosis,
        compiled=compiled,
    )


def evaluated(record: Mapping[str, Any]) -> bool:
    """Whether a step's record has what is evaluated now and then: errors, or the validation loss."""
    return bool(record["errors"]) or math.isfinite(record.get("validation", math.nan))


class Evaluation:
    """What is looked at now and then: errors and the validation loss, by one program."""

    def __init__(self, problem: Problem, params: PyTree, state: PyTree, cache: bool):
        self.problem, self.cache = problem, cache

        def both(problem: Problem, params: PyTree, state: PyTree) -> Any:
            return problem.errors(params), weighted(problem, state).validate(params) | problem.size(params)

        some = problem.norms is not None or problem.validated
        self.program = self._program(both, params, state) if some else None

    def __call__(self, params: PyTree, state: PyTree, loss: float) -> dict[str, Any]:
        """What an evaluation adds to the record of a step with this loss."""
        if self.program is None:
            return {"errors": {}, **NOTHING}
        errors, checks = map(_floats, self.program(self.problem, params, self._weights(state)))
        if "validation" in checks:  # fresh points: the loss of the step's own points is what the display shows
            checks["training"] = min(loss, checks.get("training", loss))
        return {"errors": errors, **NOTHING, **checks}

    def loss(self, params: PyTree, state: PyTree) -> float:
        """L(θ), where no step has told it."""
        alone = lambda problem, params, state: weighted(problem, state).loss(params)
        return float(self._program(alone, params, state)(self.problem, params, self._weights(state)))

    def _program(self, fn: Callable, params: PyTree, state: PyTree) -> Program:
        return Program(partial(everywhere, fn), self.problem, params, self._weights(state), cache=self.cache)

    def _weights(self, state: PyTree) -> PyTree:
        """Of the state, what an evaluation needs: the weights of the blocks where it has found them."""
        return state if self.problem.auto else None


def _stop(
    records: list[dict[str, Any]],
    rejected: int,
    elapsed: float,
    target_error: float | None,
    target_loss: float | None,
    time_limit: float | None,
    patience: int | None,
) -> str | None:
    """Why to stop after this step, if there is a reason."""
    record = records[-1]
    if target_error is not None and record["errors"].get("h1", math.inf) <= target_error:
        return "target error"
    if target_loss is not None and record["loss"] <= target_loss:
        return "target loss"
    if rejected >= GIVE_UP:
        return "no descent"
    if time_limit is not None and elapsed >= time_limit:
        return "time"
    if patience is not None and len(records) > patience:
        before, now = records[-1 - patience]["loss"], record["loss"]
        if before - now <= 0.01 * abs(before):
            return "stagnation"
    return None


def _rejected(records: list[dict[str, Any]]) -> int:
    """How many steps in a row were rejected last."""
    count = 0
    while count < len(records) and not records[-1 - count].get("accepted", True):
        count += 1
    return count


def _floats(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def _check(problem, solver, target_error, time_limit) -> None:
    if not isinstance(problem, Problem):
        raise ValueError(f"solve takes a problem such as ng.LeastSquares(…), got {type(problem).__name__}")
    if not (hasattr(solver, "init") and hasattr(solver, "step")):
        hint = f"; did you mean {solver.__name__}()?" if isinstance(solver, type) else ""
        raise ValueError(f"solve takes a solver such as ng.NystromNGD(), got {type(solver).__name__}{hint}")
    if isinstance(solver, type):
        raise ValueError(f"solve takes a solver object: write {solver.__name__}() with parentheses")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be positive seconds, got {time_limit}")
    if target_error is not None and problem.norms is None:
        raise ValueError("target_error needs an exact solution: give the problem exact=…, or use target_loss")


def _check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and (not isinstance(value, int | np.integer) or value < 1):
            raise ValueError(f"{name} must be a positive integer, got {value!r}")


def _check_start(problem, params, resume, callback) -> None:
    if resume is not None and params is not None:
        raise ValueError("give either params or resume, not both: resume starts from its own parameters")
    if resume is not None and not isinstance(resume, Solution):
        raise ValueError(f"resume takes the solution of an earlier solve, got {type(resume).__name__}")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be a function of a step's record, got {type(callback).__name__}")
    start = params if resume is None else resume.params
    if start is None:
        return
    shapes = lambda tree: [(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in jax.tree.leaves(tree)]
    same = jax.tree.structure(start) == jax.tree.structure(problem.params)  # type: ignore[operator]
    if not same or shapes(start) != shapes(problem.params):
        raise ValueError("params do not fit the problem's network: give a tree of the same structure, shapes and dtype")
