"""Save and load: networks, solutions, run folders.

    solution.save("u.ng")                                   # or ng.save("u.ng", network)
    u = ng.load("u.ng")                                     # in another process: the network
    ng.solve(problem, solver, steps=100, resume=ng.load_solution("u.ng"))

A file is written whole or not at all, and replaces only what natgrad saved. Nothing in it is code: natgrad's own
networks are made anew from their description; any other is loaded into one of the same make.
"""

import dataclasses
from pathlib import Path
from typing import Any

from natgrad.backend import host
from natgrad.history import History, Solution
from natgrad.problem import Problem
from natgrad.solve import check, planned_for
from natgrad.storage.solutions import Saved, save_network


def save(path: Path | str, network: Any) -> None:
    """Writes a network (or a solution) into one file, by habit `*.ng`.

        ng.save("u.ng", network)

    It replaces a file that natgrad saved, and no other.
    """
    if isinstance(network, Solution):
        network.save(path)
    else:
        save_network(path, network)


def load(path: Path | str, like: Any = None) -> Any:
    """The network in a file of `ng.save` or `solution.save`, or the last one of a run folder.

        u = ng.load("u.ng")
        u(jnp.array([0.3, 0.5]))

    natgrad's own networks (`MLP`, `Fields`, `Normalized`, …) with activations of JAX's need no code of yours. Others
    (`Apply`, a `HardBoundary` of your own functions, a class of your own) are loaded into a network of the same make:

        u = ng.load("u.ng", like=network)
    """
    path = Path(path)
    if not path.is_dir():
        return Saved(path).network(like)
    if like is not None:
        raise ValueError(f"{path} is a run folder, which has all it needs: leave `like` out")
    from natgrad.experiment.runs import load as load_run

    return load_run(path).function()


def load_solution(path: Path | str, problem: Problem | None = None, solver: Any = None) -> Solution:
    """The solution in a file of `solution.save`, to go on from as if nothing had happened.

        ng.solve(problem, solver, steps=100, resume=ng.load_solution("u.ng"))

    Arguments:
        problem: needed where the network is not natgrad's own alone, and has parts of your code.
        solver: needed, with `problem`, where the solver is one of your own.
    """
    if Path(path).is_dir():
        raise ValueError(f"{path} is a run folder: ng.load has its network, natgrad run --resume goes on with it")
    saved = Saved(Path(path), "solution")
    if solver is not None and problem is None:
        raise ValueError("the state of a solver fits a problem: give the problem too")
    if problem is not None and not isinstance(problem, Problem):
        raise ValueError(f"load_solution takes a problem such as ng.LeastSquares(…), got {type(problem).__name__}")
    if problem is not None and solver is not None:
        check(problem, solver)
    more = f"give what made it, ng.load_solution({str(path)!r}, problem"
    others, origin, records = (saved.get(name) for name in ("told", "origin", "records"))
    if problem is None:
        params, u = (saved.get(name, f"{more})") for name in ("params", "u"))
    else:
        params = saved.params(problem.params)
        u = problem.solution(params)
    if problem is None or solver is None:
        state, before = (saved.get(name, f"{more}, solver)") for name in ("state", "solver"))
    else:
        start = planned_for(problem, solver, None).init(problem, problem.params, host.key(host.SOLVER))
        state, before = saved.state(start), saved.get("solver", otherwise=solver)
    origin = None if origin is None else dataclasses.replace(origin, solver=before)
    return Solution(u=u, params=params, state=state, history=History(records), origin=origin, **others)
