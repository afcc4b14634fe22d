"""`solve`: trains a problem, shows how it goes, and keeps what there is when it is interrupted."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray, PyTree

from natgrad.backend import host
from natgrad.backend.programs import Program, compile_together
from natgrad.callbacks import Callback as Callback
from natgrad.callbacks import Callbacks, Now
from natgrad.history import History as History
from natgrad.history import Solution
from natgrad.history import evaluated as evaluated
from natgrad.optim.resample import complete
from natgrad.options import Count, parse_bytes
from natgrad.options import check as check_option
from natgrad.plan import plan
from natgrad.problem import Problem
from natgrad.problem.base import check_params
from natgrad.progress import Progress
from natgrad.resuming import Origin
from natgrad.stepping import Stepper
from natgrad.stopping import Stop
from natgrad.training import Training

Checkpoint = Callable[[PyTree, Any], Any]
Start = tuple[PRNGKeyArray | None, PyTree | None, Solution | None]  # key, params, resume


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
    callback: Callback | Sequence[Callback] | None = None,
    checkpoint: Checkpoint | None = None,
    progress: bool = True,
    memory: int | float | str | None = None,
    group: int | None = None,
    cache: bool = True,
) -> Solution:
    """Trains a problem's network; Ctrl-C ends it early and keeps what there is.

        solution = ng.solve(problem, ng.NystromNGD(), steps=300, target_error=1e-5)

    Arguments:
        solver: anything with `init(problem, params, key)` and `step(problem, params, state) -> (params, state, info)`.
        steps: the most steps; with `resume`, the most further steps.
        key: the randomness of the solver, a key that nothing else was drawn from; a fixed one by default.
        params: where to start; the problem's own network by default.
        resume: a solution to go on from, its state and history included, with the same solver and shapes.
        evaluate_every: steps from one evaluation of errors and validation loss to the next; the last is at the end.
        target_error, target_loss: stop at or below (the error is H¹, against values at points L²).
        time_limit: stop after this many seconds of stepping.
        patience: stop when the loss has not fallen by 1 % within this many steps.
        callback: called with each step's record (a dict); a true value stops the training (a word becomes its status).
            One that takes two arguments is also given `natgrad.callbacks.Now`: the parameters and the network, when it
            asks for them. Several in a list; `ng.trackers` has some for TensorBoard and others.
        checkpoint: called with the parameters and the state after each group of steps but a stopping one, at all
            multiples of `evaluate_every` among others; with `group=1` after every step.
        progress: a live display in a terminal or notebook, a line now and then elsewhere.
        memory: what a step may take on a device, as bytes or "8GB": strategy, batch and rank follow, and what cannot
            fit is said at once.
        group: the most steps that run in one go on the device, up to the next evaluation. By default they take a
            quarter of a second. On a CPU each runs by itself where rows times parameters are more than ten million.
        cache: use what was compiled before, in this process or (from the user's cache folder) in another one, and keep
            what is compiled now; see docs/compilation.md.
    """
    check(problem, solver, steps=steps, evaluate_every=evaluate_every, group=group)
    check_start(problem, params, resume, checkpoint=checkpoint)
    hear = Callbacks(callback)
    stop = Stop(target_error, target_loss, time_limit, patience)
    stop.suits(problem)
    planned = planned_for(problem, solver, memory)
    run = begin(problem, solver, planned, steps, evaluate_every, stop, (key, params, resume), cache)
    with Progress(problem, run.first, run.last, enabled=progress) as display:
        train(run, None, hear, checkpoint, display, group, cache)
        solution = run.solution()
        display.finish(solution.status, run.records, solution.diagnosis)
    hear.ended(solution)
    return solution


def planned_for(problem: Problem, solver: Any, memory: int | float | str | None) -> Any:
    """The solver with nothing left open."""
    return complete(plan(solver, problem, None if memory is None else parse_bytes("memory", memory)), problem)


def begin(
    problem: Problem,
    solver: Any,
    planned: Any,
    steps: int,
    every: int,
    stop: Stop,
    start: Start,
    cache: bool,
    **stage: Any,
) -> Training:
    """A training before its first step, or where `resume` left it; of several stages it is one (see `Training`)."""
    key, params, resume = start
    origin, records = Origin.of(problem, solver), []
    if resume is not None:
        if resume.origin is not None:
            origin.check(resume.origin)
        place, records = (resume.params, resume.state), list(resume.history.records)
    else:
        params = problem.params if params is None else params
        place = params, planned.init(problem, params, host.key(host.SOLVER) if key is None else key)
    limits: dict[str, Any] = {"steps": steps, "every": every, "stop": stop}
    return Training(problem, planned, place, records, **limits, origin=origin, cache=cache, **stage)


def train(
    run: Training,
    stepper: Stepper | None,
    hear: Callable[[dict[str, Any], Now], str | None],
    checkpoint: Checkpoint | None,
    display: Progress,
    group: int | None,
    cache: bool,
) -> Stepper | None:
    """All steps of a run, shown as they come, by a stepper that is compiled or made here; Ctrl-C ends it."""
    try:
        if stepper is None:
            stepper = Stepper(run.problem, run.solver, *run.ahead, group=group, cache=cache)
        compile_programs(stepper.program, [run], display)
        again = lambda count: stepper(run.behind, count)[0]
        for record in run.steps(stepper, checkpoint):
            display.update(record)
            run.status = hear(record, run.now(again)) or run.status
    except KeyboardInterrupt:
        run.status = "interrupted"
    if run.cut and stepper is not None:
        run.move_to(stepper(run.behind, run.cut)[0])
    return stepper


def compile_programs(program: Program, runs: Sequence[Training], display: Progress) -> None:
    """Compiles the steps of some runs and their evaluation, at the same time, and says how long it took."""
    started, there = time.perf_counter(), program.compiled is not None
    evaluation = runs[0].evaluate.program
    compile_together(program, *([] if evaluation is None else [evaluation]))
    seconds, origin = time.perf_counter() - started, "memory" if there else program.origin
    for run in runs:
        run.compile_time, run.compiled = seconds, origin
    display.compiled(seconds, origin)


def check(problem: Any, solver: Any, **counts: Any) -> None:
    """ValueError where these are no problem, no solver, or not positive."""
    if not isinstance(problem, Problem):
        raise ValueError(f"solve takes a problem such as ng.LeastSquares(…), got {type(problem).__name__}")
    if not (hasattr(solver, "init") and hasattr(solver, "step")):
        hint = f"; did you mean {solver.__name__}()?" if isinstance(solver, type) else ""
        raise ValueError(f"solve takes a solver such as ng.NystromNGD(), got {type(solver).__name__}{hint}")
    if isinstance(solver, type):
        raise ValueError(f"solve takes a solver object: write {solver.__name__}() with parentheses")
    for name, value in counts.items():
        if value is not None or name != "group":
            check_option(name, value, Count)


def check_start(problem: Problem, params: Any, resume: Any, **functions: Any) -> None:
    """ValueError where a run cannot start there."""
    if resume is not None and params is not None:
        raise ValueError("give either params or resume, not both: resume starts from its own parameters")
    if resume is not None and not isinstance(resume, Solution):
        kind = type(resume).__name__
        raise ValueError(f"resume takes the solution of an earlier solve, or ng.load_solution(path), got {kind}")
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise ValueError(f"{name} must be a function, got {type(function).__name__}")
    if params is None:
        return
    check_params(problem, params)
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(params)):
        raise ValueError("params must be finite, and some of them are NaN or infinite")
