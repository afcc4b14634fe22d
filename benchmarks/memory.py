"""Peak memory of each Gramian strategy for the work of a NyströmNGD step: measured, one process a strategy.

    python -m benchmarks.memory [--points 10000] [--width 64] [--rank 500] [--batch 1000]

Each process builds the Gramian, sketches it with ℓ vectors, takes its diagonal and ten products with a vector. Reported
is the growth of the process' peak resident memory over what it had when the problem was set up.
"""

import argparse
import resource
import subprocess
import sys

STRATEGIES = ("assembled", "jacobian", "batched", "linearized")


def peak() -> float:
    """Peak resident memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(strategy: str, points: int, width: int, rank: int, batch: int) -> float:
    """MB that the work of a step adds."""
    import jax
    import jax.numpy as jnp

    import natgrad as ng
    from benchmarks.step import poisson3d
    from natgrad.linalg import gaussian

    problem = poisson3d(points, width)
    omega = jax.block_until_ready(gaussian(jax.random.key(0), problem.num_parameters, rank))

    @jax.jit
    def work(problem, params, omega):
        G = ng.gramian(problem, params, strategy, batch=batch)
        v = jax.lax.fori_loop(0, 10, lambda _, v: G.mv(v) / jnp.linalg.norm(v), omega[:, 0])
        return G.mm(omega), G.diagonal(), v

    small = poisson3d(20, 4)
    jax.block_until_ready(jax.jit(lambda problem, params: problem.loss(params))(small, small.params))
    compiled = work.lower(problem, problem.params, omega).compile()
    before = peak()
    jax.block_until_ready(compiled(problem, problem.params, omega))
    return peak() - before


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rank", type=int, default=500)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--strategy", choices=STRATEGIES, help="measure this one in this process")
    options = parser.parse_args()
    sizes = (options.points, options.width, options.rank, options.batch)
    if options.strategy:
        print(measure(options.strategy, *sizes))
        sys.exit()
    print(f"\npeak memory beyond the problem's own, B = {options.batch}, ℓ = {options.rank}")
    flags = [f"--{n}={v}" for n, v in zip(("points", "width", "rank", "batch"), sizes, strict=True)]
    results = {}
    for strategy in ("jacobian", "assembled", "batched", "linearized"):
        command = [sys.executable, "-m", "benchmarks.memory", "--strategy", strategy, *flags]
        results[strategy] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        share = results[strategy] / results["jacobian"]
        print(f"{strategy:12s} {results[strategy]:8.0f} MB   {share:5.2f} × jacobian", flush=True)
