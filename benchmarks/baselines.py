"""The baselines against public implementations: SciPy's BFGS and L-BFGS-B, and ssbroyden-optimistix where installed.

    python -m benchmarks.baselines [--steps 300] [--width 16] [--points 200]

First the evaluations (value and gradient) that each needs until max |∇f| ≤ 1e-6 on standard functions, then the loss of
a 2D Poisson PINN against evaluations. Optimistix counts a trial of a line search as a step of its own, and stops by a
test of its own, on the size of the last step.
"""

import argparse
import importlib.util
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree

import natgrad as ng
from benchmarks.machine import description
from natgrad.optim import BFGS, LBFGS, SSBroyden
from tests.helpers import poisson
from tests.optim.functions import Function, minimize, standard

jax.config.update("jax_enable_x64", True)
TOLERANCE = 1e-6
PEERS = importlib.util.find_spec("ssbroyden_optimistix") is not None


def scipy_peer(fn: Callable, start: jax.Array, method: str, **options) -> tuple[int, int, float]:
    """Iterations, evaluations and the value reached."""
    value_and_grad = jax.jit(jax.value_and_grad(fn))
    fun = lambda x: tuple(np.asarray(part) for part in value_and_grad(jnp.asarray(x)))
    end = scipy.optimize.minimize(fun, np.asarray(start), jac=True, method=method, options=options)
    return end.nit, end.nfev, float(end.fun)


def optimistix_peer(fn: Callable, start: jax.Array, name: str, steps: int, atol: float) -> tuple[int, int, float]:
    """Evaluations (as iterations too) and the value reached."""
    import optimistix
    import ssbroyden_optimistix

    solver = getattr(ssbroyden_optimistix, name)(rtol=1e-300, atol=atol, norm=optimistix.max_norm)
    end = optimistix.minimise(lambda x, _: fn(x), solver, start, max_steps=steps, throw=False)
    count = int(end.stats["num_steps"])
    return count, count, float(fn(end.value))


def functions() -> None:
    """The first table."""
    print(f"{'function':16s} {'method':28s} {'steps':>6s} {'evaluations':>11s} {'value':>9s}")
    for name, (fn, start) in standard().items():
        show = lambda method, nit, nfev, value, name=name: print(
            f"{name:16s} {method:28s} {nit:6d} {nfev:11d} {value:9.1e}", flush=True
        )
        for solver in (BFGS(), LBFGS(10), SSBroyden()):
            params, _, infos = minimize(solver, Function(fn, start), 2_000, TOLERANCE)
            calls = 1 + sum(int(info.evaluations) for info in infos)
            show(type(solver).__name__, len(infos), calls, float(fn(params)))
        options = {"gtol": TOLERANCE, "maxiter": 2_000}
        show("SciPy BFGS", *scipy_peer(fn, start, "BFGS", **options))
        show("SciPy L-BFGS-B", *scipy_peer(fn, start, "L-BFGS-B", maxcor=10, ftol=0, maxfun=10_000, **options))
        for peer in ("BFGS", "SSBroyden") if PEERS else ():
            show(f"ssbroyden-optimistix {peer}", *optimistix_peer(fn, start, peer, 5_000, TOLERANCE))


def pinn(points: int, width: int, steps: int) -> None:
    """The second table."""
    problem = poisson(points, points // 3, width)
    theta, unravel = ravel_pytree(problem.params)
    loss = lambda t: problem.loss(unravel(t))
    print(f"\n2D Poisson, p = {theta.size}")
    print(f"{'method':28s} {'steps':>6s} {'evaluations':>11s} {'loss':>9s} {'ms/step':>8s}")
    for solver in (BFGS(), LBFGS(), SSBroyden()):
        end = ng.solve(problem, solver, steps, progress=False, evaluate_every=steps)
        calls = 1 + int(end.history.evaluations.sum())
        name, ms = type(solver).__name__, 1e3 * end.time / len(end.history)
        print(f"{name:28s} {end.steps:6d} {calls:11d} {end.loss:9.1e} {ms:8.2f}", flush=True)
    rows = {
        "SciPy BFGS": lambda: scipy_peer(loss, theta, "BFGS", gtol=0, maxiter=steps),
        "SciPy L-BFGS-B": lambda: scipy_peer(
            loss, theta, "L-BFGS-B", gtol=0, ftol=0, maxcor=500, maxiter=steps, maxfun=10 * steps
        ),
    }
    for peer in ("BFGS", "SSBroyden") if PEERS else ():
        rows[f"ssbroyden-optimistix {peer}"] = lambda peer=peer: optimistix_peer(loss, theta, peer, steps, 1e-300)
    for name, row in rows.items():
        nit, nfev, value = row()
        print(f"{name:28s} {nit:6d} {nfev:11d} {value:9.1e}", flush=True)


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    print(description() + ("" if PEERS else "; ssbroyden-optimistix is not installed"))
    functions()
    pinn(options.points, options.width, options.steps)


if __name__ == "__main__":
    main()
