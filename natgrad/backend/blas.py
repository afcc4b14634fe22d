"""The threads of LAPACK: one for the small factorizations of a step, as many as ever for large ones.

On a CPU, XLA's factorizations and triangular solves are LAPACK's, of the OpenBLAS that SciPy brings. It has a pool of
threads of its own beside XLA's, and wakes it for matrices of order 100 already. Its threads wait for each other without
giving their cores away: where another process, or XLA's own threads, have these, each wait lasts until the system's
scheduler takes turns. One thread waits for nobody; on an idle machine it is faster up to order 500, and takes a third
longer at 1,000 and 2,000 (docs/threads.md has the numbers). So programs run with one, unless they have a factorization
that is worth more. What the user has set is there again when a program ends.

NumPy has an OpenBLAS of its own. A step goes there for large products alone, and it is left as it is.
"""

import ctypes
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from natgrad.backend import tuning

NAMES = ("scipy_openblas_{}_num_threads", "scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads")
CALL = re.compile(r"custom_call @lapack_\w+\(.*?: \((.*?)\) ->")
SHAPE = re.compile(r"tensor<(?:\d+x)*?(\d+)x(\d+)x[a-z]")


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, LAPACK has one thread. Several callers may be inside at a time; the last one out sets what was before."""
    pool = _pool()
    if pool is None:
        yield
        return
    pool.enter()
    try:
        yield
    finally:
        pool.leave()


def small(program: str) -> bool:
    """Whether no factorization or triangular solve of a program (StableHLO) is worth several threads."""
    return all(_work(operands) < tuning.ALL_THREADS for operands in CALL.findall(program))


def _work(operands: str) -> float:
    """Multiplications, up to a factor: the last matrix's rows and columns times the least of all sides."""
    shapes = [(int(r), int(c)) for r, c in SHAPE.findall(operands)]
    if not shapes:
        return 0
    rows, columns = shapes[-1]
    return rows * columns * min(min(shape) for shape in shapes)


class Pool:
    """The threads of a BLAS, by the functions that read and set their number."""

    def __init__(self, get: Callable[[], int], put: Callable[[int], None]):
        self.get, self.put = get, put
        self.inside = 0  # how many callers want one thread
        self.before = 1  # the number to go back to
        self.lock = threading.Lock()

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.before = self.get()
                if self.before > 1:
                    self.put(1)
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0 and self.before > 1 and self.get() == 1:  # else someone has set another number since
                self.put(self.before)


@cache
def _pool() -> Pool | None:
    """SciPy's OpenBLAS; None where it has another BLAS."""
    from scipy.linalg import cython_blas  # whose functions are those that jaxlib calls

    try:
        library = ctypes.CDLL(cython_blas.__file__)  # names are looked up in the libraries it needs, too
    except OSError:
        return None
    for name in NAMES:
        if hasattr(library, name.format("set")):
            return Pool(getattr(library, name.format("get")), getattr(library, name.format("set")))
    return None
