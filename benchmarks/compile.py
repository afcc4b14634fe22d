"""How long one waits for the first step: a first call, later calls of the same process, another process.

    python -m benchmarks.compile [--width 16] [--points 400] [--rank 150]

2D Poisson with NyströmNGD. Each call takes one step, and seconds are from the call of `solve` (of a process: from the
start of Python) to the end of that step: wall-clock, and of the processor, which others that use the machine do not
change. The last column counts the programs that the call compiled. `--parts` times the parts of a first call instead;
with `--by-jax` the set-up draws by `jax.random`, which compiles what `backend/host.py` does by NumPy.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from benchmarks import tables

HEAD = ("seconds to the end of the first step", "wall-clock", "of the processor", "programs compiled")
FIRST, ANOTHER = "first call, from the start of Python", "another process, from the start of Python"


def build(width: int, points: int, seed: int = 0):
    """−Δu = f on the unit square."""
    import jax
    import jax.numpy as jnp

    import natgrad as ng

    key = jax.random.split(jax.random.key(seed), 3)
    square = ng.Box([0, 0], [1, 1])
    exact = lambda x: jnp.prod(jnp.sin(jnp.pi * x))
    return ng.LeastSquares(
        ng.MLP(2, 1, width, 2, key=key[0]),
        pde=ng.Residual(
            lambda u, x: ng.laplacian(u, x) + 2 * jnp.pi**2 * exact(x), square.interior(points, key=key[1])
        ),
        boundary=ng.Residual(lambda u, x: u(x) - exact(x), square.boundary(points // 4, key=key[2]), weight=10),
        exact=exact,
    )


def child(options: argparse.Namespace) -> None:
    """A process: its first call, and, if asked for, later ones; a line of JSON each."""
    import jax

    import natgrad as ng
    from natgrad.backend import host, programs

    jax.config.update("jax_enable_x64", True)
    if options.by_jax:
        host._words, host.key = (lambda key: None), jax.random.key

    def call(name: str, problem, solver, wall: float, processor: float, **more):
        before = programs.COMPILATIONS["new"]
        solution = ng.solve(problem, solver, 1, progress=False, **more)
        seconds = (time.time() - wall, time.process_time() - processor)
        shown = (f"{number:.1f}" if number > 0.995 else f"{number:.2f}" for number in seconds)
        print(json.dumps((name, *shown, str(programs.COMPILATIONS["new"] - before))), flush=True)
        return solution

    problem, solver = build(options.width, options.points), ng.NystromNGD(max_rank=options.rank)
    first = call(options.child, problem, solver, options.started, 0.0)
    if options.child != FIRST:
        return
    now = lambda: (time.time(), time.process_time())
    call("`resume=solution`", problem, solver, *now(), resume=first)
    call("another `key`", problem, solver, *now(), key=jax.random.key(1))
    call("a new solver with the same options", problem, ng.NystromNGD(max_rank=options.rank), *now())
    start = now()
    call("the function that builds the problem, called again", build(options.width, options.points, 1), solver, *start)
    call("`cache=False`", problem, solver, *now(), cache=False)


def process(name: str, folder: str, options: argparse.Namespace) -> list[list[str]]:
    """The rows of a fresh process that keeps its programs in a folder."""
    sizes = [f"--{key}={getattr(options, key)}" for key in ("width", "points", "rank")]
    words = [sys.executable, "-m", "benchmarks.compile", *sizes, f"--child={name}", f"--started={time.time()}"]
    words += ["--by-jax"] if options.by_jax else []
    done = subprocess.run(
        words, env={**os.environ, "NATGRAD_CACHE": folder}, stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def parts(options: argparse.Namespace) -> None:
    """Where the seconds of a first call go."""
    import jax
    import numpy as np

    import natgrad as ng
    from natgrad import stepping
    from natgrad.backend import host, tuning, xla
    from natgrad.plan import plan

    jax.config.update("jax_enable_x64", True)
    clock = time.process_time()

    def tell(name: str) -> None:
        nonlocal clock
        print(f"{name:<40}{time.process_time() - clock:8.2f}", flush=True)
        clock = time.process_time()

    problem = build(options.width, options.points)
    tell("the problem")
    solver = plan(ng.NystromNGD(max_rank=options.rank), problem)
    state = solver.init(problem, problem.params, host.key(0))
    tell("strategy and state")
    run = jax.jit(stepping._loop(solver, tuning.STEPS))
    traced = run.trace(problem, problem.params, state, np.int32(1))
    tell("tracing")
    lowered = traced.lower()
    tell("lowering")
    text = lowered.as_text()
    tell(f"text of {len(text.splitlines())} lines")
    compiled = lowered.compile(xla.compiler_options())
    tell("compiling")
    hlo = compiled.as_text()
    count = lambda word: hlo.count(word)
    print(f"in the program: {count(' fusion(')} fusions, {count(' while(')} loops, {count(' conditional(')} branches")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--points", type=int, default=400)
    parser.add_argument("--rank", type=int, default=150)
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--by-jax", action="store_true", help="keys and random numbers of the set-up by jax.random")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--started", type=float, help=argparse.SUPPRESS)
    tables.option(parser)
    options = parser.parse_args()
    if options.parts:
        parts(options)
    elif options.child:
        child(options)
    else:
        with tempfile.TemporaryDirectory() as folder:
            rows = (row for name in (FIRST, ANOTHER) for row in process(name, folder, options))
            tables.show(HEAD, rows, options.keep)
            size = sum(entry.stat().st_size for entry in os.scandir(folder))
        print(f"on disk: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
