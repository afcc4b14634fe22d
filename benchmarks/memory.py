"""Peak memory of the Gramian's strategies and of whole steps, measured, beside Table 1 of the paper.

    python -m benchmarks.memory [--points 10000] [--width 64] [--rank 500] [--batch 1000]
    python -m benchmarks.memory --table
    python -m benchmarks.memory --plans
    python -m benchmarks.memory --step nystrom --width 255 --points 18182 --batch 100 --memory 4e9

The first: one process a strategy builds the Gramian, sketches it with ℓ vectors, takes its diagonal and ten products
with a vector; reported is the growth of the process' peak resident memory over what it had when the problem was set up.
`--table`: what XLA allocates for the same work (its own account of temporaries and results, before anything runs) over
p and q, and the exponents in both. `--plans`: its account of whole steps, in activations R by strategy and in arrays of
p×ℓ by preconditioner. `--step`: one step of an optimizer within a budget, in a process of its own: XLA's
account of it, and with `--execute` the peak resident memory after running it.
"""

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks import tables

PAPER = {"jacobian": "pq", "assembled": "p² + pB", "batched": "pB", "linearized": "–"}
STRATEGIES = tuple(PAPER)
WIDTHS = (16, 24, 32, 48, 64)
POINTS = (500, 1000, 2000, 4000, 8000)


def peak() -> float:
    """Peak resident memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def products(strategy: str, batch: int) -> Callable:
    """The work of a step with the Gramian."""
    import jax
    import jax.numpy as jnp

    import natgrad as ng

    def work(problem, params, omega):
        G = ng.gramian(problem, params, strategy, batch=batch)
        v = jax.lax.fori_loop(0, 10, lambda _, v: G.mv(v) / jnp.linalg.norm(v), omega[:, 0])
        return G.mm(omega), G.diagonal(), v

    return jax.jit(work)


def measure(strategy: str, points: int, width: int, rank: int, batch: int) -> float:
    """MB that the work of a step adds."""
    import jax

    from benchmarks.step import poisson3d
    from natgrad.linalg import gaussian

    problem = poisson3d(points, width)
    omega = jax.block_until_ready(gaussian(jax.random.key(0), problem.num_parameters, rank))
    small = poisson3d(20, 4)
    jax.block_until_ready(jax.jit(lambda problem, params: problem.loss(params))(small, small.params))
    compiled = products(strategy, batch).lower(problem, problem.params, omega).compile()
    before = peak()
    jax.block_until_ready(compiled(problem, problem.params, omega))
    return peak() - before


def account(strategy: str, points: int, width: int, rank: int, batch: int) -> tuple[int, int, float]:
    """p, q and the MB that XLA plans for the same work."""
    import jax

    from benchmarks.step import poisson3d

    problem = poisson3d(points, width)
    p = problem.num_parameters
    omega = jax.ShapeDtypeStruct((p, rank), problem.dtype)
    found = products(strategy, batch).lower(problem, problem.params, omega).compile().memory_analysis()
    return p, problem.num_rows, (found.temp_size_in_bytes + found.output_size_in_bytes) / 1e6


def table(rank: int, batch: int) -> Iterator[tuple[str, ...]]:
    """Over p at a fixed q and over q at a fixed p, with the exponents of both; the head comes first."""
    head = ["", "Table 1"]
    for strategy, paper in PAPER.items():
        cells = [f"`{strategy}`", paper]
        for over, sizes in (("p", [(POINTS[2], w) for w in WIDTHS]), ("q", [(n, WIDTHS[1]) for n in POINTS])):
            rows = [account(strategy, points, width, rank, batch) for points, width in sizes]
            x = [row["pq".index(over)] for row in rows]
            slope = np.polyfit(np.log(x), np.log([row[2] for row in rows]), 1)[0]
            cells[-1:-1] = [*(f"{mb:.1f}" for _, _, mb in rows), f"{slope:.2f}".replace("-0.00", "0.00")]
            if strategy == next(iter(PAPER)):
                head[-1:-1] = [f"over {over}: {x[0]:,}", *(f"{size:,}" for size in x[1:]), f"{over}^"]
        if strategy == next(iter(PAPER)):
            yield tuple(head)
        yield tuple(cells)


def peaks(flags: list[str], own: float) -> Iterator[tuple[str, ...]]:
    """Each strategy's own, in a process each, and over the MB of the Jacobian."""
    for strategy in STRATEGIES:
        command = [sys.executable, "-m", "benchmarks.memory", "--strategy", strategy, *flags]
        found = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        yield f"`{strategy}`", f"{found:.0f} MB", f"{found / own:.2g}"


def planned(problem, solver) -> int:
    """The bytes that XLA plans for a step."""
    import jax

    shapes = jax.eval_shape(lambda: solver.init(problem, problem.params, jax.random.key(0)))
    found = jax.jit(solver.step).lower(problem, problem.params, shapes).compile().memory_analysis()
    return found.temp_size_in_bytes + found.output_size_in_bytes + found.argument_size_in_bytes


def plans() -> None:
    """Steps with many points and a small rank by strategy, and with few points and a large one by preconditioner."""
    import natgrad as ng
    from benchmarks.step import poisson3d
    from natgrad.plan import activations

    problem, rank, batch = poisson3d(4000, 32), 20, 50
    p, q, R = problem.num_parameters, problem.num_rows, activations(problem)
    print(f"p = {p}, q = {q}, ℓ = {rank}, B = {batch}; R = {R / 1e6:.0f} MB")
    for strategy, held in {"jacobian": q * p, "batched": 2 * p * batch, "linearized": 0}.items():
        points = None if strategy == "jacobian" else batch
        total = planned(problem, ng.NystromNGD(max_rank=rank, gramian=strategy, batch=points))
        print(f"{strategy:12s} {total / 1e6:6.0f} MB, {(total - 8 * held) / R:5.1f} R beyond its rows", flush=True)
    problem, rank, batch = poisson3d(200, 100), 300, 20
    p, R = problem.num_parameters, activations(problem)
    print(f"p = {p}, q = {problem.num_rows}, ℓ = {rank}, B = {batch}; R = {R / 1e6:.0f} MB")
    builders = {f"row factor, {test}": ng.RowFactor(max_rank=rank, test=test) for test in ("signs", "gaussian")}
    builders |= {f"Nyström, {m}": ng.Nystrom(max_rank=rank, method=m) for m in ("cholesky", "svd")}
    builders["pivoted row factor"] = ng.PivotedRowFactor(max_rank=rank)
    builders |= {f"RPCholesky, {m}": ng.RPCholesky(max_rank=rank, method=m) for m in ("svd", "woodbury")}
    for name, builder in builders.items():
        total = planned(problem, ng.NaturalGradient(direction=ng.PCG(builder), gramian="batched", batch=batch))
        copies = (total - R / 4 - 16 * p * batch) / (8 * p * rank)
        print(f"{name:25s} {total / 1e6:6.0f} MB, {copies:4.1f} arrays of p×ℓ beyond R/4 + 2pB", flush=True)


def step(name: str, points: int, width: int, rank: int, batch: int, memory: float, execute: bool) -> None:
    """One step of an optimizer: what fits, XLA's account of it, and the process' peak."""
    import jax

    import natgrad as ng
    from benchmarks.step import poisson3d
    from natgrad.plan import plan

    makers = {"nystrom": ng.NystromNGD, "rpcholesky": ng.RPCholNGD}
    problem = poisson3d(points, width)
    solver = plan(makers[name](max_rank=rank, gramian="batched", batch=batch), problem, int(memory))
    shapes = jax.eval_shape(lambda: solver.init(problem, problem.params, jax.random.key(0)))
    compiled = jax.jit(solver.step).lower(problem, problem.params, shapes).compile()
    found = compiled.memory_analysis()
    total = found.temp_size_in_bytes + found.output_size_in_bytes + found.argument_size_in_bytes
    used = solver.direction.preconditioner.max_rank
    column = problem.num_parameters * problem.dtype.itemsize * used
    print(f"p = {problem.num_parameters}, q = {problem.num_rows}, ℓ = {used}, budget {memory / 1e9:.2f} GB", flush=True)
    print(f"XLA plans {total / 1e9:.2f} GB, {total / column:.1f} arrays of p×ℓ", flush=True)
    if execute:
        state = solver.init(problem, problem.params, jax.random.key(0))
        jax.block_until_ready(compiled(problem, problem.params, state))
        print(f"peak resident memory {peak() / 1e3:.2f} GB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rank", type=int, default=500)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--strategy", choices=STRATEGIES, help="measure this one in this process")
    parser.add_argument("--table", action="store_true", help="XLA's account over p and q")
    parser.add_argument("--plans", action="store_true", help="XLA's account of whole steps")
    parser.add_argument("--step", choices=("nystrom", "rpcholesky"), help="a whole step of this optimizer")
    parser.add_argument("--memory", type=float, default=4e9, help="the budget of --step in bytes")
    parser.add_argument("--execute", action="store_true", help="run the step, and report the process' peak")
    tables.option(parser)
    options = parser.parse_args()
    sizes = (options.points, options.width, options.rank, options.batch)
    if options.strategy:
        print(measure(options.strategy, *sizes))
        sys.exit()
    if options.table:
        rank, batch = min(options.rank, 100), min(options.batch, 100)
        print(f"MB of temporaries and results, ℓ = {rank}, B = {batch}")
        found = table(rank, batch)
        tables.show(next(found), found, options.keep)
        sys.exit()
    if options.plans:
        plans()
        sys.exit()
    if options.step:
        step(options.step, *sizes, options.memory, options.execute)
        sys.exit()
    print(f"\npeak memory beyond the problem's own, B = {options.batch}, ℓ = {options.rank}")
    flags = [f"--{n}={v}" for n, v in zip(("points", "width", "rank", "batch"), sizes, strict=True)]
    from benchmarks.step import poisson3d

    problem = poisson3d(options.points, options.width)
    own = 8 * problem.num_parameters * problem.num_rows / 1e6
    tables.show(("strategy", "peak", f"of J's own {own:.0f} MB"), peaks(flags, own), options.keep)
