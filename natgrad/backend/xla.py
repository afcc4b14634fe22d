"""What XLA has to be told: where not to look ahead, which branch to take, when to call Python, how to compile."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Shaped


def on_cpu() -> bool:
    """Whether programs run on a processor."""
    return jax.default_backend() == "cpu"


def apart(x: Array) -> Array:
    """x, on a CPU computed by itself: XLA folds transpositions into products there, and is then two to three times
    slower."""
    return jax.lax.optimization_barrier(x) if on_cpu() else x


def whole(x: Array) -> Array:
    """x as one array: what reads parts of it does not see what they were made of.

    XLA would keep the columns of a Jacobian that are one layer's a second time. kovasznay took 36.4 ms a step and
    4.9 GB of memory without the barrier, 33.9 ms and 2.9 GB with it (docs/notes).
    """
    return jax.lax.optimization_barrier(x)


@jax.custom_batching.custom_vmap
def jointly(index: Shaped[Array, ""]) -> Shaped[Array, ""]:
    """The index of a branch; of problems that step together (`jax.vmap`), the largest of theirs.

    A branch whose index differs from problem to problem is no branch under `jax.vmap`: all branches are computed, and
    one is selected. With one index for all it stays a branch. The largest must be right for each of them.
    """
    return index


@jointly.def_vmap
def _largest(size: int, batched: list[bool], index: Array) -> tuple[Array, bool]:
    return (jnp.max(index, axis=0) if batched[0] else index), False


def call(fn: Callable[..., Any], shape: tuple[int, ...], dtype: Any, *args: Array, batched: bool = False) -> Array:
    """fn(*args) by Python, an array of this shape and dtype; `batched` where it takes further axes in front."""
    method = "broadcast_all" if batched else "sequential"
    return jax.pure_callback(fn, jax.ShapeDtypeStruct(shape, dtype), *args, vmap_method=method)


def compiler_options() -> dict[str, Any]:
    """How programs are compiled, for the device in use.

    On a CPU at LLVM's first level: a tenth to a fifth less to compile than at the second, and steps take as long; level
    0 compiles in half the time, and its steps take twice as long (docs/notes/2026-11-compile.md).
    On a GPU, products are cuBLAS' as they are: XLA's own kernels, tried out one by one, triple the time of
    compilation (15 s instead of 4.5 at p = 8641, on an H200), and are not faster in double precision. And loops and
    branches run there without asking the host, as CUDA graphs: a twelfth of a step.
    """
    if on_cpu():
        return {"xla_backend_optimization_level": 1}
    if jax.default_backend() != "gpu":
        return {}
    return {
        "xla_gpu_autotune_level": 0,
        "xla_gpu_enable_triton_gemm": False,
        "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,WHILE,CONDITIONAL",
    }
