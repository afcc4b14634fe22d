"""The demo: a 3D Poisson equation solved by a small network, once with NyströmNGD and once with Adam, and drawn.

    python examples/demo.py --out out/demo

−Δu = f in the unit cube, u = 0 on its boundary, with the solution u* = sin(πx₁) sin(πx₂) sin(πx₃). Both optimizers
start from the same weights, see the same points and get the same seconds. Writes demo.png and result.json.
"""

import argparse
import json
import os
import shlex
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from demo_picture import draw

import natgrad as ng

WIDTH, DEPTH, INTERIOR, BOUNDARY, RANK = 32, 2, 1_500, 600, 300


def exact(x):
    return jnp.prod(jnp.sin(jnp.pi * x))


def poisson(key):
    """The problem: network, points and residuals."""
    network, interior, boundary = jax.random.split(key, 3)
    cube = ng.Box([0, 0, 0], [1, 1, 1])
    return ng.LeastSquares(
        ng.MLP(in_size=3, out_size=1, width=WIDTH, depth=DEPTH, key=network),
        pde=ng.Residual(
            lambda u, x: ng.laplacian(u, x) + 3 * jnp.pi**2 * exact(x), cube.interior(INTERIOR, key=interior)
        ),
        boundary=ng.Residual(lambda u, x: u(x) - exact(x), cube.boundary(BOUNDARY, key=boundary)),
        exact=exact,
    )


def adam(problem, seconds, *, start=1e-2, end=1e-4, chunk=50):
    """Adam on the full batch for so many seconds of stepping, its rate falling geometrically from start to end."""

    def step(carry, rate):
        params, m, v, k = carry
        loss, g = jax.value_and_grad(problem.loss)(params)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, g)
        move = lambda p, m, v: p - rate * (m / (1 - 0.9**k)) / (jnp.sqrt(v / (1 - 0.999**k)) + 1e-8)
        return (jax.tree.map(move, params, m, v), m, v, k + 1), loss

    def run(carry, rate):
        return jax.lax.scan(lambda c, _: step(c, rate), carry, None, length=chunk)

    zeros = jax.tree.map(jnp.zeros_like, problem.params)
    carry = (problem.params, zeros, zeros, jnp.asarray(1.0))
    begun = time.perf_counter()
    run = jax.jit(run).lower(carry, start).compile()
    compile_time = time.perf_counter() - begun
    errors = jax.jit(lambda params: problem.errors(params))
    records, clock, told = [], 0.0, 0.0
    print(f"\nAdam, for the same {seconds:.0f} s", file=sys.stderr)
    while clock < seconds:
        tick = time.perf_counter()
        carry, losses = jax.block_until_ready(run(carry, start * (end / start) ** (clock / seconds)))
        clock += time.perf_counter() - tick
        last = clock >= seconds
        if last or len(records) < 20 or clock - records[-1]["time"] > seconds / 100:
            h1 = float(errors(carry[0])["h1"])
            steps, loss = int(carry[3]) - 1, float(losses[-1])
            records.append({"step": steps, "time": clock, "loss": loss, "h1": h1})
            if last or clock - told > seconds / 10:
                told = clock
                print(f"{steps:>6}  loss {loss:.2e}  H¹ {h1:.2e}  {clock:.1f} s", file=sys.stderr)
    return carry[0], records, compile_time


def slices(u, n=121):
    """u and u* on a grid of the plane x₃ = ½."""
    s = np.linspace(0, 1, n)
    x = jnp.asarray(np.stack(np.meshgrid(s, s, [0.5], indexing="ij"), axis=-1).reshape(-1, 3))
    return [np.asarray(jax.vmap(f)(x)).reshape(n, n).T for f in (u, exact)]


def device():
    kind = jax.devices()[0].device_kind
    if jax.default_backend() != "cpu":
        return kind
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"CPU, {cores} core{'s' if cores != 1 else ''}"


def table(result):
    """The facts of a run, in lines."""
    columns = [("NyströmNGD", result["nystrom_ngd"])] + ([("Adam", result["adam"])] if result["adam"] else [])
    formats = {
        "relative H¹ error": ("h1", ".2e"),
        "relative L² error": ("l2", ".2e"),
        "loss": ("loss", ".2e"),
        "iterations": ("steps", ",d"),
        "seconds stepping": ("time", ".1f"),
        "seconds compiling": ("compile_time", ".1f"),
    }
    yield " " * 20 + "".join(f"{name:>13}" for name, _ in columns)
    for label, (key, form) in formats.items():
        yield f"{label:<20}" + "".join(f"{run[key]:>13{form}}" for _, run in columns)
    yield ""
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    yield f"{result['parameters']:,} parameters · {result['device']} · {result['dtype']}"
    yield f"{versions} · seed {result['seed']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder for demo.png and result.json")
    parser.add_argument("--steps", type=int, default=60, help="steps of NyströmNGD (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and points (default: 0)")
    parser.add_argument("--no-adam", action="store_true", help="leave the comparison out")
    args = parser.parse_args()
    if args.steps < 1:
        parser.error(f"--steps must be at least 1, got {args.steps}")
    args.out.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_enable_x64", True)

    points, sketches = jax.random.split(jax.random.key(args.seed))
    problem = poisson(points)
    print(f"NyströmNGD on {device()}: compiling takes about 15 s", file=sys.stderr)
    solution = ng.solve(problem, ng.NystromNGD(max_rank=RANK), steps=args.steps, key=sketches, evaluate_every=2)
    result = {
        "command": shlex.join([Path(sys.executable).name, *sys.argv]),
        "problem": "poisson3d",
        "network": f"tanh, 3–{'–'.join([str(WIDTH)] * DEPTH)}–1",
        "points": {"interior": INTERIOR, "boundary": BOUNDARY},
        "parameters": problem.num_parameters,
        "device": device(),
        "dtype": str(problem.dtype),
        "seed": args.seed,
        "versions": {"jax": jax.__version__, "natgrad": ng.__version__},
        "nystrom_ngd": {
            **solution.errors,
            "loss": solution.loss,
            "steps": solution.steps,
            "status": solution.status,
            "time": solution.time,
            "compile_time": solution.compile_time,
        },
        "adam": None,
    }
    grids = {"NyströmNGD": slices(solution.u)}
    records = []
    if not args.no_adam:
        params, records, compile_time = adam(problem, solution.time)
        errors = {name: float(value) for name, value in problem.errors(params).items()}
        last = {name: records[-1][name] for name in ("loss", "time")}
        result["adam"] = {**errors, **last, "steps": records[-1]["step"], "compile_time": compile_time}
        grids["Adam"] = slices(problem.network(params))

    (args.out / "result.json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    picture = draw(args.out / "demo.png", result, solution.history, records, grids)
    print("\n" + "\n".join(table(result)) + f"\npicture: {picture}")


if __name__ == "__main__":
    main()
