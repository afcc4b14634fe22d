"""The ways to take a third or a fourth derivative of a network, and its per-sample parameter Jacobian.

    python -m benchmarks.derivatives [--points 2000] [--width 40] [--depth 3] [--repeats 5] [--activations tanh sin]

`natgrad` is `ng.partial`, `nested` so many `jax.jvp`, `jet` that of `jax.experimental`. Milliseconds are processor
time, medians of interleaved repeats; the Jacobian is traced as a problem traces it on a processor
(`products_together`). The last column is the processor time of compiling it.
"""

import argparse
import contextlib
import functools
import statistics
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.jet import jet
from jax.flatten_util import ravel_pytree

import natgrad as ng
from benchmarks import tables
from benchmarks.machine import description
from natgrad.calculus import products_together


def ours(u: Any, x: Any, k: int) -> Any:
    return ng.partial(u, x, *[1] * k)


def nested(u: Any, x: Any, k: int) -> Any:
    e = jnp.eye(x.size)[1]
    return u(x) if k == 0 else jax.jvp(lambda x: nested(u, x, k - 1), (x,), (e,))[1]


def taylor(u: Any, x: Any, k: int) -> Any:
    e = jnp.eye(x.size)[1]
    return jet(u, (x,), ((e, *[jnp.zeros_like(e)] * (k - 1)),))[1][-1]


def derivative(way: Any, unravel: Any, k: int, theta: Any, x: Any) -> Any:
    return way(unravel(theta), x, k)


HEAD = ("activation", "order", "", "ms", "Jacobian, ms", "compilation of the Jacobian, s")
WAYS = {"natgrad": ours, "nested": nested, "jet": taylor}


def measure(functions: dict[str, Any], args: tuple, repeats: int, together: Any) -> dict[str, tuple[float, float]]:
    """Milliseconds of a call and seconds of compilation."""
    compiled, compiling, times, reference = {}, {}, {name: [] for name in functions}, None
    with together:
        for name, f in functions.items():
            start = time.process_time()
            compiled[name] = jax.jit(f).lower(*args).compile()
            compiling[name] = time.process_time() - start
    for _ in range(repeats):
        for name, f in compiled.items():
            start = time.process_time()
            value = jax.block_until_ready(f(*args))
            times[name].append(time.process_time() - start)
            reference = value if reference is None else reference
            assert jnp.abs(value - reference).max() < 1e-11 * jnp.abs(reference).max(), name
    return {name: (1e3 * statistics.median(times[name]), compiling[name]) for name in functions}


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One for each activation, order and way."""
    points = jax.random.uniform(jax.random.key(1), (options.points, 2))
    for activation in (getattr(jnp, name) for name in options.activations):
        net = ng.MLP(2, 1, options.width, options.depth, activation=activation, key=jax.random.key(0))
        theta, unravel = ravel_pytree(net)
        for k in (3, 4):
            at = {name: functools.partial(derivative, way, unravel, k) for name, way in WAYS.items()}
            values = {name: jax.vmap(f, (None, 0)) for name, f in at.items()}
            jacobians = {name: jax.vmap(jax.grad(f), (None, 0)) for name, f in at.items()}
            first = measure(values, (theta, points), options.repeats, contextlib.nullcontext())
            second = measure(jacobians, (theta, points), options.repeats, products_together())
            for name in WAYS:
                numbers = (f"{first[name][0]:.1f}", f"{second[name][0]:.0f}", f"{second[name][1]:.2f}")
                yield (activation.__name__, str(k), name, *numbers)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"points": 2000, "width": 40, "depth": 3, "repeats": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--activations", nargs="+", default=["tanh", "sin"])
    tables.option(parser)
    options = parser.parse_args()
    print(f"{description()}; {options.points} points, {options.depth} layers of {options.width}\n")
    tables.show(HEAD, rows(options), options.keep)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
