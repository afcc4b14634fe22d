"""The baselines against public implementations: SciPy's BFGS and L-BFGS-B, and ssbroyden-optimistix where installed.

    python -m benchmarks.baselines [--steps 300] [--seeds 3] [--width 16] [--points 200]

First the steps and evaluations (value and gradient) that each needs until max |∇f| ≤ 1e-6 on standard functions, then
the loss of a 2D Poisson PINN after the same number of steps, from several networks. Such a loss is a matter of luck,
a factor of two from one network to the next: the geometric mean over many is what to compare.
"""

import argparse
import functools
import importlib.util
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree

from benchmarks.machine import description
from natgrad.optim import BFGS, LBFGS, SSBroyden
from natgrad.problem import Problem
from tests.helpers import poisson
from tests.optim.functions import Function, minimize, standard

jax.config.update("jax_enable_x64", True)
PEERS = importlib.util.find_spec("ssbroyden_optimistix") is not None

#: (problem, steps, tolerance of max |∇L|) ↦ steps and evaluations taken, and the loss reached.
Method = Callable[[Problem, int, float], tuple[int, int, float]]


def flat(problem: Problem) -> tuple[Callable, jax.Array]:
    """The loss of a vector, and the one to start from."""
    start, unravel = ravel_pytree(problem.params)
    return lambda theta: problem.loss(unravel(theta)), start


def ours(solver, problem: Problem, steps: int, tolerance: float) -> tuple[int, int, float]:
    """A solver of natgrad; a step may fail where round-off leaves nothing to gain."""
    params, _, infos = minimize(solver, problem, steps, tolerance)
    return len(infos), 1 + sum(int(info.evaluations) for info in infos), float(problem.loss(params))


def scipys(method: str, problem: Problem, steps: int, tolerance: float, **options) -> tuple[int, int, float]:
    """A method of scipy.optimize.minimize."""
    loss, start = flat(problem)
    both = jax.jit(jax.value_and_grad(loss))
    fun = lambda theta: tuple(np.asarray(part) for part in both(jnp.asarray(theta)))
    options = {"gtol": tolerance, "maxiter": steps, **options}
    end = scipy.optimize.minimize(fun, np.asarray(start), jac=True, method=method, options=options)
    return end.nit, end.nfev, float(end.fun)


def optimistix(name: str, problem: Problem, steps: int, tolerance: float) -> tuple[int, int, float]:
    """A solver of ssbroyden-optimistix, without its own test on the size of steps, and with 1 as the first trial of its
    line search: from the length of the last step, its default, it takes several times as many steps."""
    import ssbroyden_optimistix
    from ssbroyden_optimistix.contrib import run

    loss, start = flat(problem)
    gradient = jax.jit(jax.grad(loss))
    stop = lambda iteration, theta, state, value: bool(jnp.max(jnp.abs(gradient(theta))) <= tolerance)
    search = ssbroyden_optimistix.Zoom(initial_guess_strategy="one")
    end = run(getattr(ssbroyden_optimistix, name)(rtol=0.0, atol=0.0, search=search), loss, start, steps, stop)
    return int(end.num_iters), int(end.num_steps), float(loss(end.params))


def methods(history: int) -> dict[str, Method]:
    """All that are installed; `history` is the number of pairs of L-BFGS."""
    lbfgs: dict[str, Any] = {"maxcor": history, "ftol": 0, "maxfun": 100_000}
    rows: dict[str, Method] = {
        "BFGS": functools.partial(ours, BFGS()),
        "SciPy BFGS": functools.partial(scipys, "BFGS"),
        "LBFGS": functools.partial(ours, LBFGS(history=history)),
        "SciPy L-BFGS-B": lambda *args: scipys("L-BFGS-B", *args, **lbfgs),
        "SSBroyden": functools.partial(ours, SSBroyden()),
    }
    for name in ("BFGS", "SSBroyden") if PEERS else ():
        rows[f"ssbroyden-optimistix {name}"] = functools.partial(optimistix, name)
    return rows


def functions() -> None:
    """The first table."""
    print(f"{'function':16s} {'method':30s} {'steps':>6s} {'evaluations':>11s} {'value':>8s}")
    for name, (fn, start) in standard().items():
        for method, solve in methods(10).items():
            steps, evaluations, value = solve(Function(fn=fn, params=start), 2_000, 1e-6)
            print(f"{name:16s} {method:30s} {steps:6d} {evaluations:11d} {value:8.1e}", flush=True)


def pinn(points: int, width: int, steps: int, seeds: int) -> None:
    """The second table."""
    problem = poisson(points, points // 3, width)
    starts = [poisson(1, 1, width, seed=seed).params for seed in range(seeds)]
    print(f"\n2D Poisson, p = {flat(problem)[1].size}, loss after {steps} steps")
    print(f"{'method':30s} {'evaluations':>11s} {'mean loss':>9s}  from each start")
    for method, solve in methods(steps).items():
        ends = [solve(eqx.tree_at(lambda p: p.params, problem, start), steps, 0.0) for start in starts]
        evaluations, losses = np.mean([end[1] for end in ends]), [end[2] for end in ends]
        mean = np.exp(np.mean(np.log(losses)))
        print(f"{method:30s} {evaluations:11.0f} {mean:9.1e}  {' '.join(f'{x:.1e}' for x in losses)}", flush=True)


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(description() + ("" if PEERS else "; ssbroyden-optimistix is not installed"))
    functions()
    pinn(options.points, options.width, options.steps, options.seeds)


if __name__ == "__main__":
    main()
