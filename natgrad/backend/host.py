"""What is done once, before anything is compiled: arrays and random numbers by NumPy, as JAX would have made them.

JAX compiles each operation for each shape it meets, 0.02 to 0.5 s a time; setting a problem up is some fifty operations
that never come back. Here they cost what they cost in NumPy, and `array` brings the result to the device. A processor
takes 11.2 s to the end of the first step of a small problem, 2.5 s with a warm cache of programs; 14.7 and 5.0 s where
`jax.random` draws (docs/compilation.md).

Random numbers are JAX's own: with the cipher E_k of its keys (Threefry-2x32 with 20 rounds: Salmon, Moraes, Dror and
Shaw, 2011), the n-th 64 bits are E_k(n), the n-th 32 bits the two halves of E_k(n) added without carry, and the n-th
key split off k is E_k(n). Keys of another kind, and keys that are traced, go to `jax.random`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float, PRNGKeyArray

AnyArray = Array | np.ndarray

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
MANTISSA = {np.dtype("float32"): (9, np.uint32, 0x3F800000), np.dtype("float64"): (12, np.uint64, 0x3FF << 52)}
CUT = 0.87962566103423978  # the standard deviation of a normal distribution cut off at ±2
# Seeds where the library is given no key: one a purpose, and none that a user would think of. With JAX's keys
# `fold_in(k, i)` is `split(k, n)[i]`, so a key is split once or drawn from once, and never both.
EVALUATION, SOLVER, VALIDATION = 20_250_504, 20_250_505, 20_250_507


def traced(tree: Any) -> bool:
    """Whether JAX is tracing something in there, so that it has no values."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree))


def numpy(x: Any) -> Any:
    """The values as a NumPy array; a traced array as it is."""
    return x if isinstance(x, jax.core.Tracer) else np.asarray(x)


def array(values: Any, dtype: Any = None) -> Array:
    """`jnp.asarray` that compiles nothing, and has no weak types but those it is given."""
    if traced(values):
        return jnp.asarray(values, dtype)
    if isinstance(values, jax.Array) and (dtype is None or np.dtype(dtype) == values.dtype):
        return values
    return jax.device_put(np.array(values, dtype))


def zeros(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """`jnp.zeros` that compiles nothing."""
    return jax.device_put(np.zeros(shape, dtype))


def afford(numbers: float, what: str) -> None:
    """ValueError where numbers that are yet to be made, of 8 bytes each, do not fit into the memory that is left."""
    if (needed := 8 * numbers) > (free := free_memory()):
        gigabytes = min(needed, 10**300) / 1e9
        raise ValueError(f"{what} would take {gigabytes:.3g} GB, and {free / 1e9:.3g} GB are free: choose fewer")


def free_memory() -> int:
    """Bytes that this machine can still give; more than any machine has where it does not say."""
    try:
        with open("/proc/meminfo") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return 2**62


def processor() -> AbstractContextManager:
    """Inside, JAX computes on the processor; where it was told to know none, as ever."""
    try:
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    except RuntimeError:
        return nullcontext()


def row(a: Array) -> jax.ShapeDtypeStruct:
    """The shape and dtype of a[0], without taking it."""
    return jax.ShapeDtypeStruct(a.shape[1:], a.dtype)


def key(seed: int) -> PRNGKeyArray:
    """`jax.random.key(seed)`, for 0 ≤ seed < 2³²."""
    if jax.config.jax_default_prng_impl != "threefry2x32":  # type: ignore[attr-defined]
        return jax.random.key(seed)
    return jax.random.wrap_key_data(array([0, seed], np.uint32))


def as_key(given: PRNGKeyArray | int) -> PRNGKeyArray:
    """A key as users write it: one of JAX, new style or old, or the integer of `jax.random.key`."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        try:
            return jax.random.key(int(given))
        except OverflowError:
            raise ValueError(f"key must be below 2⁶³ where it is an integer, got {given}") from None
    if not isinstance(given, jax.Array | np.ndarray) or not (_typed(given) or given.dtype == np.uint32):
        kind = f"an array of {given.dtype}" if hasattr(given, "dtype") else repr(given)
        raise ValueError(f"key must be a JAX random key such as jax.random.key(0), or an integer, got {kind}")
    if given.ndim != (0 if _typed(given) else 1):
        raise ValueError(f"key must be one key, got an array of them of shape {given.shape}: take one, or split it")
    return given if isinstance(given, jax.Array) else array(given)


def split(key: PRNGKeyArray, num: int = 2) -> Sequence[PRNGKeyArray]:
    """`jax.random.split(key, num)`, key by key."""
    key = as_key(key)
    words = _words(key)
    if words is None:
        return list(jax.random.split(key, num))
    pairs = map(array, np.stack(_cipher(words, num), axis=-1))
    return [jax.random.wrap_key_data(pair) if _typed(key) else pair for pair in pairs]


def uniform(key: PRNGKeyArray, shape: tuple[int, ...], dtype: Any) -> Float[AnyArray, "..."]:
    """`jax.random.uniform(key, shape, dtype)`, on [0, 1), the same numbers to the last bit."""
    words, known = _words(key), MANTISSA.get(np.dtype(dtype))
    if words is None or known is None:
        return jax.random.uniform(key, shape, dtype)
    shift, unsigned, one = known
    high, low = _cipher(words, math.prod(shape))
    bits = high ^ low if unsigned is np.uint32 else high.astype(unsigned) << unsigned(32) | low
    return ((bits >> unsigned(shift) | unsigned(one)).view(dtype) - np.ones((), dtype)).reshape(shape)


def glorot_normal(key: PRNGKeyArray, shape: tuple[int, int], dtype: Any) -> Float[Array, "out in"]:
    """`jax.nn.initializers.glorot_normal()(key, shape, dtype)` up to round-off."""
    if _words(key) is None or np.dtype(dtype) not in MANTISSA:
        return jax.nn.initializers.glorot_normal()(key, shape, dtype)
    u = uniform(key, shape, dtype)
    edge = math.erf(math.sqrt(2))  # the normal distribution between −2 and 2 is that of √2 erf⁻¹ between ∓ this
    normal = math.sqrt(2) * scipy.special.erfinv(2 * edge * u - edge)
    return array(math.sqrt(2 / sum(shape)) / CUT * normal, dtype)


def _typed(key: PRNGKeyArray) -> bool:
    return jnp.issubdtype(key.dtype, jax.dtypes.prng_key)


def _words(key: PRNGKeyArray) -> tuple[int, int] | None:
    """The two words of a Threefry key, None where it is of another kind or not known."""
    partitionable = jax.config.jax_threefry_partitionable  # type: ignore[attr-defined]
    if traced(key) or not partitionable or str(jax.random.key_impl(key)) != "threefry2x32":
        return None
    with jax.ensure_compile_time_eval():  # a key that is known is read, whatever else is being traced
        words = np.asarray(jax.random.key_data(key) if _typed(key) else key)
    return (int(words[0]), int(words[1])) if words.shape == (2,) else None


def _cipher(key: tuple[int, int], count: int) -> tuple[np.ndarray, np.ndarray]:
    """E_k(0), …, E_k(count − 1): the high and the low halves, uint32."""
    number = np.arange(count, dtype=np.uint64)
    x, y = (number >> np.uint64(32)).astype(np.uint32), number.astype(np.uint32)
    schedule = [np.uint32(word) for word in (*key, key[0] ^ key[1] ^ PARITY)]
    x, y = x + schedule[0], y + schedule[1]
    for group in range(1, 6):
        for turn in ROTATIONS[(group - 1) % 2]:
            x = x + y
            y = (y << np.uint32(turn) | y >> np.uint32(32 - turn)) ^ x
        x = x + schedule[group % 3]
        y = y + np.uint32((int(schedule[(group + 1) % 3]) + group) % 2**32)
    return x, y
