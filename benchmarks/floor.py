"""What sets the floor at the end of a run: five numbers, for a problem of the zoo with residuals and a known solution.

    python -m benchmarks.floor poisson3d [--set width=16 …] [--solver "ng.NystromNGD()"] [--steps 200] [--seed 0]

    represents   the relative L² error of a fit of u itself from there, `--fit` steps of `ng.Polish` on the values of u
                 at the points of evaluation: what the network can do, from above
    points       the loss at independent points over that at the points of training; far above 1, they are too few
    solve        μ of the last step over σ_p², the smallest eigenvalue of AᵀA: far above 1, μ holds directions back; and
                 the part of the loss that the linear model promises to take away with this μ, and with none
    round-off    the loss that is left when only the last digits are wrong, ½‖F(θ(1 ± eps)) − F(θ)‖², a mean over random
                 signs, over the loss
    curvature    of the Gauss–Newton step v with that μ: the largest α = 1, ½, … that lowers the loss with geodesic
                 acceleration a, and ‖a‖/‖v‖

docs/last_digits.md says what to change.
"""

import argparse
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import natgrad as ng
from benchmarks.machine import description
from natgrad import zoo
from natgrad.experiment.config import keys
from natgrad.gramian import second_directional
from natgrad.problem import Problem

PROBES = 8
TRIALS = 20


def represents(problem: Problem, params: Any, steps: int) -> float:
    """The relative L² error of a fit of the exact solution from the given parameters."""
    norms: Any = problem.norms
    fields = lambda u: [u] if norms.fields is None else [getattr(u, name) for name in norms.fields]
    values = lambda u, x: jnp.concatenate([jnp.atleast_1d(field(x)) for field in fields(u)])
    block = ng.Residual(lambda u, x, exact: values(u, x) - exact, norms.x, data=(norms.values,))
    fit = ng.LeastSquares(problem.network(params), fit=block)
    found = ng.solve(fit, ng.Polish(start=1e-10), steps=steps, progress=False, evaluate_every=steps)
    return float(problem.errors(found.params)["l2"])


def singular(problem: Problem, params: Any) -> tuple[np.ndarray, np.ndarray]:
    """The singular values of A, and the parts of r along its left singular vectors."""
    A = np.asarray(ng.gramian(problem, params, "jacobian").jacobian)  # type: ignore[attr-defined]
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    return s, U.T @ np.asarray(problem.covector(params))


def round_off(problem: Problem, params: Any, key: jax.Array) -> float:
    """½‖F(θ(1 ± eps)) − F(θ)‖², a mean over random signs."""
    theta, unravel = ravel_pytree(params)
    features = jax.jit(lambda theta: problem.covector(unravel(theta)))
    eps, base = jnp.finfo(theta.dtype).eps, features(theta)
    turned = lambda k: theta * (1 + eps * jax.random.rademacher(k, theta.shape, theta.dtype))
    return float(np.mean([0.5 * jnp.sum((features(turned(k)) - base) ** 2) for k in jax.random.split(key, PROBES)]))


def curvature(problem: Problem, params: Any, mu: float) -> tuple[float, float]:
    """α and ‖a‖/‖v‖ of the step damped by μ."""
    theta, unravel = ravel_pytree(params)
    factors = ng.linalg.damped_rows(ng.gramian(problem, params, "jacobian").jacobian, jnp.asarray(mu))  # type: ignore[attr-defined]
    v = factors.solve(problem.covector(params))
    weights = jnp.concatenate([jnp.repeat(jnp.sqrt(f.weights), f.size) for f in problem.features])
    a = factors.solve(weights * second_directional(problem, params, unravel(v)))
    change = jax.jit(problem.changes(params))
    lowers = lambda alpha: change(unravel(theta - alpha * v - 0.5 * alpha**2 * a)) < 0
    found = next((alpha for alpha in 0.5 ** np.arange(TRIALS) if lowers(alpha)), 0.0)
    return float(found), float(jnp.linalg.norm(a) / jnp.linalg.norm(v))


def floor(problem: Problem, solution: ng.Solution, fit: int, key: jax.Array) -> dict[str, float]:
    """The five numbers, those with two parts in two entries."""
    params, history = solution.params, solution.history
    s, c = singular(problem, params)
    loss, mu = float(problem.loss(params)), float(history.mu[-1])
    validation = problem.validate(params)
    training = float(sum(problem.losses(params).values()))  # type: ignore[attr-defined]
    alpha, bend = curvature(problem, params, mu)
    return {
        "error": float(problem.errors(params)["l2"]),
        "loss": loss,
        "represents": represents(problem, params, fit),
        "points": float(validation["validation"]) / training if validation else float("nan"),
        "mu over least": mu / float(s[-1]) ** 2,
        "promised": float(np.sum(c**2 * (1 - (mu / (s**2 + mu)) ** 2))) / (2 * loss),
        "promised, mu = 0": float(np.sum(c**2)) / (2 * loss),
        "round-off": round_off(problem, params, key) / loss,
        "alpha": alpha,
        "bend": bend,
    }


def run(options: argparse.Namespace) -> dict[str, float]:
    """Trains the problem, and takes the end apart."""
    benchmark = zoo.get(options.problem)
    values = dict(pair.split("=", 1) for pair in options.set)
    sizes = {name: float(value) if "." in value or "e" in value else int(value) for name, value in values.items()}
    problem = benchmark.problem(keys(options.seed).problem, options.preset, **sizes)
    if problem.norms is None or not problem.least_squares or problem.coupling(problem.params) is not None:
        raise ValueError(f"{options.problem} has no residuals at points, or no known solution: take poisson3d, say")
    solver = eval(options.solver, {"ng": ng})
    key = keys(options.seed).solver
    solution = ng.solve(problem, solver, options.steps, key=key, progress=False, evaluate_every=options.steps)
    return floor(problem, solution, options.fit, jax.random.fold_in(key, 1))


def main() -> None:
    """Prints the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", help="a problem of the zoo")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--set", nargs="*", default=[], help="sizes, as width=16")
    parser.add_argument("--solver", default="ng.NystromNGD()", help="an expression in ng")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--fit", type=int, default=40, help="steps of the fit of u itself")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    try:
        found = run(options)
    except ValueError as error:
        raise SystemExit(f"benchmarks.floor: {error}") from None
    what = " ".join([options.problem, options.preset, *options.set])
    print(f"{what}, {options.solver}, {options.steps} steps, seed {options.seed}; {description()}")
    for name, value in found.items():
        print(f"{name:>18} {value:.2e}")


if __name__ == "__main__":
    main()
