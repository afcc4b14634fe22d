"""Finite-element operators at the size of the paper's mesh: products along the axes against products by cells.

    python -m benchmarks.fem [--cells 30] [--degree 4] [--columns 1 50 500]

Both paths of a tensor mesh in one run: "axes" (Kronecker products, or sum factorization where the coefficients vary)
and "cells" (small dense matrices, what every other mesh uses), then the three Riesz maps. The floor of a product is the
larger of its flops over the rate of a matrix product and its bytes over the rate of a copy, both measured here; flops
and bytes are those of the path with the fewest: the matrices of the cells, once, and x and y.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.machine import best_time, copy_rate, description, gemm_rate
from natgrad.fem import STIFFNESS, Form, Operator, TensorSpace, rectangle

jax.config.update("jax_enable_x64", True)

VARIABLE = Form(
    lambda x: 2 + jnp.sin(x[0] + 2 * x[1]),
    lambda x: jnp.array([jnp.sqrt(x[0] - x[1] ** 2 + 5), jnp.sqrt(x[1] - x[0] ** 2 + 5)]),
    lambda x: jnp.exp(x[0] / 2 - x[1] / 3) + 2,
)


def seconds(operator: Operator, x: jax.Array, repeats: int) -> float:
    compiled = jax.jit(lambda op, x: op.apply(x)).lower(operator, x).compile()
    return best_time(lambda: compiled(operator, x), repeats)


def columns_of(n: int, m: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).standard_normal((n, m) if m > 1 else n))


def products(space: TensorSpace, free: np.ndarray, columns: list[int], repeats: int) -> None:
    """Both paths, constant and variable coefficients."""
    gemm, copy = gemm_rate(), copy_rate()
    print(f"machine: {gemm / 1e9:.0f} GFLOP/s in a matrix product, {copy / 1e9:.1f} GB/s in a copy\n")
    print(
        f"{'product with the operator':28s} {'m':>5s} {'axes ms':>9s} {'cells ms':>9s} {'axes/cells':>10s} "
        f"{'floor ms':>9s} {'best/floor':>10s}  bound by"
    )
    e, b = space.dofs.shape
    for name, form in (("constant", STIFFNESS), ("variable, advection", VARIABLE)):
        operators = [space.operator(form, free, path=path) for path in ("axes", "cells")]
        for m in columns:
            x = columns_of(len(free), m)
            axes, cells = (seconds(operator, x, repeats) for operator in operators)
            compute, memory = 2 * e * b * b * m / gemm, 8 * (e * b * b + 2 * x.size) / copy
            floor, bound = max((compute, "flops"), (memory, "memory"))
            print(
                f"{name:28s} {m:5d} {1e3 * axes:9.2f} {1e3 * cells:9.2f} {axes / cells:10.2f} {1e3 * floor:9.2f} "
                f"{min(axes, cells) / floor:10.1f}  {bound}",
                flush=True,
            )


def riesz(space: TensorSpace, free: np.ndarray, columns: list[int], repeats: int) -> None:
    """The inverse of the stiffness matrix, three ways."""
    print(f"\n{'Riesz map, ms':28s} {'set-up s':>9s}" + "".join(f"{'m = ' + str(m):>10s}" for m in columns))
    for kind in ("exact", "fast", "cycles"):
        start = time.perf_counter()
        operator = space.riesz(STIFFNESS, free, kind)
        setup = time.perf_counter() - start
        times = [seconds(operator, columns_of(len(free), m), repeats) for m in columns]
        bounds = getattr(operator, "bounds", None)
        note = f"  spectrum in [{bounds.lower:.2f}, {bounds.upper:.2f}]" if bounds else ""
        print(f"{kind:28s} {setup:9.2f}" + "".join(f"{1e3 * t:10.2f}" for t in times) + note, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=30)
    parser.add_argument("--degree", type=int, default=4)
    parser.add_argument("--columns", type=int, nargs="+", default=[1, 50, 500])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    space = rectangle((options.cells, options.cells), options.degree)
    free = space.free(["left", "right"])
    print(f"{space}, {len(free)} free; {description()}")
    products(space, free, options.columns, options.repeats)
    riesz(space, free, options.columns, options.repeats)
