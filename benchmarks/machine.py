"""What the machine can do: its own matrix-product and copy rates, against which every part of a step is held."""

import platform
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng


def best_time(f: Callable[[], Any], repeats: int = 3) -> float:
    """Seconds of the fastest of some calls, after one to warm up."""
    jax.block_until_ready(f())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(f())
        times.append(time.perf_counter() - start)
    return min(times)


def gemm_rate(n: int | None = None) -> float:
    """Flops a second of a float64 matrix product: NumPy's BLAS on a CPU, XLA's elsewhere."""
    if jax.default_backend() == "cpu":
        n = n or 2000
        A = np.random.default_rng(0).standard_normal((n, n))
        return 2 * n**3 / best_time(lambda: A @ A)
    n = n or 8192
    B = jax.random.normal(jax.random.key(0), (n, n), jnp.float64)
    product = jax.jit(lambda B: B @ B)
    return 2 * n**3 / best_time(lambda: product(B))


def copy_rate(size: int = 2**26) -> float:
    """Bytes a second, read and written, of a copy into memory already there."""
    if jax.default_backend() == "cpu":
        source, target = np.ones(size), np.zeros(size)
        return 2 * source.nbytes / best_time(lambda: np.copyto(target, source))
    x = jnp.ones(size, jnp.float64)
    copy = jax.jit(lambda x: 2 * x)
    return 2 * x.nbytes / best_time(lambda: copy(x))


def description() -> str:
    """Device, dtype and versions, for the head of a table."""
    device = jax.devices()[0]
    name = platform.processor() or platform.machine() if device.platform == "cpu" else device.device_kind
    return f"{device.platform} ({name}), float64, jax {jax.__version__}, natgrad {ng.__version__}"
