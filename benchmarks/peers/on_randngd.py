"""Randngd on a small case: `python -m benchmarks.peers.on_randngd CASE --method nystrom --out FILE`.

The package's defaults, but for three sizes of the sketch in place of 25, each of which is compiled on its own. The
loss, residuals and network are natgrad's.
"""

import jax
import randngd

from benchmarks.peers.case import Run
from benchmarks.peers.on_natgrad import problem_of
from benchmarks.peers.randngd_runs import Loop, metric_of

jax.config.update("jax_enable_x64", True)


def training(run: Run) -> None:
    """Until the run says that it is over."""
    problem = problem_of(run.case)
    metric = metric_of(problem, run.method)
    solvers = {
        "nystrom": lambda: randngd.NystromNGD(metric, ell_levels=(100, 300, 500), key=0),
        "full": lambda: randngd.NGDFull(metric, key=0),
    }
    predict = jax.jit(lambda params, x: jax.vmap(problem.network(params))(x))
    loop = Loop(randngd.ngd_solver(solvers[run.method]()), problem.loss, problem.params, every=1)
    run.record.ready()
    before = -1
    while (step := loop()) > before:
        run.look(before := step, lambda x: predict(loop.y, x))


if __name__ == "__main__":
    Run(__doc__, "randngd", ("nystrom", "full"), "jax", "jaxlib", "optimistix").train(training)
