"""Natgrad on one of the paper's problems, recorded in the form of `randngd_runs`.

python -m benchmarks.peers.natgrad_runs poisson3d --setting default --steps 300 --seed 0 --out DIR
"""

from typing import Any

import equinox as eqx
import jax

import natgrad as ng
from benchmarks.peers import paper
from natgrad.experiment import optimizers
from natgrad.experiment.config import keys

jax.config.update("jax_enable_x64", True)

#: setting: optimizer and recipe.
SETTINGS = {
    "default": ("nystrom", "default"),
    "published": ("nystrom-gaussian", "published"),
    "full": ("ngd-full", "default"),
    "rpchol": ("rpcholesky", "default"),
}


def main() -> None:
    """One run."""
    options = paper.arguments(__doc__, tuple(SETTINGS))
    name, recipe = SETTINGS[options.setting]
    problem, preset = paper.problem_of(options, recipe)
    chosen = preset.solver_options(recipe)
    chosen |= {} if options.rank is None else {"max_rank": options.rank}
    evaluate = paper.evaluator(problem)
    bare = eqx.tree_at(lambda p: p.norms, problem, None, is_leaf=lambda x: x is problem.norms)
    seen: dict[str, Any] = {}

    def callback(row: dict[str, Any]) -> str | None:
        seen["row"] = row
        return "target" if seen.get("h1", float("inf")) <= options.stop_at else None

    def checkpoint(params: Any, state: Any) -> None:
        row = seen["row"]
        if row["step"] % options.every == 0:
            with record.paused():
                errors = evaluate(params)
            record.add(row["step"], errors, row["time"], loss=row["loss"])
            seen["h1"] = errors["h1"]

    solver = optimizers.build(name, recipe, chosen, options.steps)
    with paper.alone(options.lock):
        record = paper.recorder("natgrad", problem, options)
        solution = ng.solve(
            bare,
            solver,
            options.steps,
            key=keys(options.seed).solver,
            time_limit=options.seconds,
            callback=callback,
            checkpoint=checkpoint,
            evaluate_every=options.every,
            progress=False,
        )
    with record.paused():
        errors = evaluate(solution.params)
    record.add(solution.steps, errors, solution.time, loss=solution.loss)
    record.status = solution.status
    record.facts["compile"] = solution.compile_time
    paper.finish(record, options)


if __name__ == "__main__":
    main()
