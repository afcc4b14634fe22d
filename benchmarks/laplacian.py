"""The ways to take the Laplacian of a network, and its per-sample parameter Jacobian, side by side.

    python -m benchmarks.laplacian [--points 10000] [--width 64] [--depth 3] [--repeats 7]

Time is the median of interleaved repetitions, `spread` the distance between its quartiles; memory is what the
compiled program takes for temporaries, its result aside. Ratios are to the fastest.
"""

import argparse
import statistics
import time

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental.jet import jet
from jax.flatten_util import ravel_pytree

import natgrad.calculus as calculus
from natgrad.domains import Box
from natgrad.networks import MLP, Normalized


def interpreter(u, x):
    return calculus.laplacian(u, x)


def normalized(u, x):
    """The same number in other units: half the lengths, so four times the Laplacian, and a quarter of u."""
    return calculus.laplacian(Normalized(u, Box([0] * x.size, [1] * x.size), scale=0.25), (x + 1) / 2)


def by_hand(u, x):
    """The forward Laplacian written out for a tanh network: what the interpreter should cost."""
    value, jac, lap = x, jnp.eye(x.size, dtype=x.dtype), None
    for layer in u.layers:
        value = layer.weight @ value + layer.bias
        jac = jac @ layer.weight.T
        lap = lap if lap is None else layer.weight @ lap
        if layer is not u.layers[-1]:
            value = jnp.tanh(value)
            slope = 1 - value**2
            curvature = -2 * value * slope * jnp.sum(jac**2, axis=0)
            lap = curvature if lap is None else slope * lap + curvature
            jac = slope * jac
    return lap[0]


def nested_jvp(u, x):
    def second(v):
        return jax.jvp(lambda y: jax.jvp(u, (y,), (v,))[1], (x,), (v,))[1]

    return jnp.sum(jax.vmap(second)(jnp.eye(x.size, dtype=x.dtype)))


def linearized(u, x):
    """The derivative of the gradient, linearized once and applied to every direction."""
    _, push = jax.linearize(jax.grad(u), x)
    return jnp.trace(jax.vmap(push)(jnp.eye(x.size, dtype=x.dtype)))


def hessian_trace(u, x):
    return jnp.trace(jax.hessian(u)(x))


def taylor_mode(u, x):
    def second(v):
        return jet(u, (x,), ((v, jnp.zeros_like(v)),))[1][1]

    return jnp.sum(jax.vmap(second)(jnp.eye(x.size, dtype=x.dtype)))


WAYS = {
    "natgrad.laplacian": interpreter,
    "of ng.Normalized": normalized,
    "by hand, MLP only": by_hand,
    "jvp of jvp": nested_jvp,
    "linearize of grad": linearized,
    "trace of hessian": hessian_trace,
    "jax.experimental.jet": taylor_mode,
}


def measure(functions, args, repeats):
    """Rows (name, seconds, spread, temporary bytes, compile seconds), the repetitions interleaved."""
    compiled, rows = {}, []
    for name, f in functions.items():
        start = time.perf_counter()
        compiled[name] = jax.jit(f).lower(*args).compile()
        rows.append([name, time.perf_counter() - start])
    times = {name: [] for name in functions}
    reference = None
    for repeat in range(repeats + 1):
        for name, f in compiled.items():
            start = time.perf_counter()
            out = jax.block_until_ready(f(*args))
            if repeat:
                times[name].append(time.perf_counter() - start)
            else:
                reference = out if reference is None else reference
                error = float(jnp.max(jnp.abs(out - reference)) / jnp.max(jnp.abs(reference)))
                assert error < 1e-9, f"{name} is off by {error:.1e}"
            del out
    for row in rows:
        ts = times[row[0]]
        quartiles = statistics.quantiles(ts, n=4)
        memory = compiled[row[0]].memory_analysis().temp_size_in_bytes
        row[1:] = statistics.median(ts), quartiles[2] - quartiles[0], memory, row[1]
    return rows


def show(title, rows):
    fastest = min(row[1] for row in rows)
    print(f"\n{title}\n{'':22s}{'ms':>9s}{'spread':>9s}{'ratio':>8s}{'temp MB':>10s}{'compile s':>11s}")
    for name, seconds, spread, memory, compiling in rows:
        times = f"{1e3 * seconds:9.2f}{1e3 * spread:9.2f}{seconds / fastest:8.2f}"
        print(f"{name:22s}{times}{memory / 1e6:10.1f}{compiling:11.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--dim", type=int, default=3)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()

    jax.config.update("jax_enable_x64", True)
    net = MLP(options.dim, 1, options.width, options.depth, key=jax.random.key(0))
    params, static = eqx.partition(net, eqx.is_inexact_array)
    theta, unravel = ravel_pytree(params)
    points = jax.random.uniform(jax.random.key(1), (options.points, options.dim))

    def at(way):
        return lambda theta, x: way(eqx.combine(unravel(theta), static), x)

    def laplacians(way):
        return jax.vmap(at(way), (None, 0))

    def jacobians(way):
        return jax.vmap(jax.grad(at(way)), (None, 0))

    device = jax.devices()[0]
    versions = f"jax {jax.__version__}, equinox {eqx.__version__}"
    print(f"{device.device_kind} ({device.platform}), {versions}, {theta.dtype}")
    shape = [options.dim, *[options.width] * options.depth, 1]
    print(f"tanh network {shape}, {theta.size} parameters, {options.points} points, {options.repeats} repeats")
    for title, wrap in (
        ("Laplacian", laplacians),
        ("per-sample parameter Jacobian of the Laplacian", jacobians),
    ):
        rows = measure({name: wrap(way) for name, way in WAYS.items()}, (theta, points), options.repeats)
        show(title, rows)


if __name__ == "__main__":
    main()
