"""Numbers that depend on the device, or are there because of XLA: each by name, with why, and what it gained.

Sizes are upper bounds: results do not depend on them but by the order of summation. What has a value for processors and
one for all other devices is read by `.here()`. Milliseconds and versions are in docs/notes. Read them as
`tuning.NAME`, so that one who tries another value has it everywhere (compiled programs know of it).
"""

from typing import Any, NamedTuple

from natgrad.backend.xla import on_cpu


class ByDevice(NamedTuple):
    """A value for processors, and one for all other devices."""

    cpu: Any
    other: Any

    def here(self) -> Any:
        """The one for the device in use."""
        return self.cpu if on_cpu() else self.other


# Products (`backend.products`).
NUMPY_FLOPS = 2e9  # from which on AᵀA and ABᵀ are NumPy's: XLA does not know that AᵀA is symmetric, a call costs a copy
NUMPY_NUMBERS = 2**23  # that such a call is given at a time, as it copies them
CACHE_BYTES = 6_000_000  # of rows, kept by a CPU's cache between two products: 34 ms in place of 51; 3 MB gain nothing
CACHE_ROWS = 64  # the least of such rows; with fewer, two passes over A are made

# Triangles (`backend.products`).
TRIANGLES_BY_BLOCKS = ByDevice(cpu=False, other=True)  # 0.11 ms in place of 0.53 for order 1,000 on an H200
TRIANGLE_ROWS = 32  # of a triangle, inverted by substitution

# Solves with the Cholesky factors of several problems at once (`backend.batched`).
SOLVES_BY_INVERSE = ByDevice(cpu=False, other=True)  # 0.4 ms in place of 1.7 for ten of order 941 on an H200

# Orthogonal factors of tall matrices (`linalg.damped`): LAPACK's reflections take a sixth of the time of three Gram
# passes on a CPU (1500 × 500, one core); on a GPU they run at a fortieth of the rate of products.
REFLECTIONS = ByDevice(cpu=True, other=False)

# The Nyström factor: m²(p + q)/pq up to which its second factorization takes no longer than the iterations it saves,
# three passes over A on a CPU, four on a GPU: kovasznay takes 8 in place of 14, and small steps on two cores lose.
MENDING = ByDevice(cpu=50, other=400)
SUM_SLICES = 64  # of A, up to which a sum of them is written out: XLA makes one loop of it

# Loops of a few products, written out: a GPU has them in one graph; a CPU compiles a loop in a tenth of the time.
WRITTEN_OUT = ByDevice(cpu=False, other=True)

# Rows of the Jacobian. A CPU makes some at a time, up to four times as many points as this while their rows have no
# more numbers than that (16 MB): no temporary is of the size of A.
JACOBIAN_POINTS = 64
JACOBIAN_NUMBERS = 2**21
# XLA for CPUs computes the factors of a sum of outer products anew for every entry; see `calculus.products_together`.
PRODUCTS_TOGETHER = ByDevice(cpu=True, other=False)
# Sums over points in parts, all at a time: as one product they keep four of 132 multiprocessors busy. A product with G
# through the network takes 0.17 ms in place of 0.43 (deepritz2d, H200).
POINT_PARTS = ByDevice(cpu=1, other=64)

# Vectors at a time, for memory: their activations are what such a product takes (docs/memory.md).
NETWORK_VECTORS = 16  # through the network, …
NETWORK_POINTS = 2**15  # … or fewer, so that points times vectors are not many more
KERNEL_VECTORS = 64  # through the rows of a kernel
UNIT_VECTORS = 256  # of which a matrix or a diagonal is made
COUPLED_COLUMNS = 1024  # of A that a coupling is applied to
ELEMENT_COLUMNS = ByDevice(cpu=32, other=512)  # that an operator of finite elements gathers: few stay in a CPU's caches
TABLE_NUMBERS = 2**24  # of the gradients of basis functions: 128 MB
TABLE_POINTS = 2048  # a user's function is compiled for: once for all meshes

# Steps a call (`stepping`): between calls a third of a GPU's time can go by.
STEPS = 64
SECONDS = 0.25  # a call may take: a display stays alive, an interruption is heard
STEP_NUMBERS = ByDevice(cpu=10_000_000, other=float("inf"))  # of A up to which there are several: longer ones are long

# LAPACK (`backend.blas`): multiplications from which on a factorization takes all threads, a matrix of order 2,000.
ALL_THREADS = 8e9

# Forms (`optim.fastest`): parameters up to which G is factored. On a CPU the forms cross there (`benchmarks.forms`), on
# GPUs it lies between two known times (docs/performance.md).
DIRECT_PARAMETERS = ByDevice(cpu=2500, other=4000)
