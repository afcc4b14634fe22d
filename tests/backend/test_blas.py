"""LAPACK has one thread while a step runs, its own number before and after, and all of them for what is large."""

import re
import threading

import jax
import jax.numpy as jnp
import pytest

import natgrad as ng
from natgrad.backend import blas, programs, tuning
from tests.helpers import poisson

pytestmark = pytest.mark.usefixtures("quick_compilation")


class Recorder:
    """A BLAS that notes what is set."""

    def __init__(self, threads=4):
        self.threads, self.seen = threads, []

    def put(self, threads):
        self.threads = threads
        self.seen.append(threads)


@pytest.fixture
def library(monkeypatch):
    recorder = Recorder()
    pool = blas.Pool(lambda: recorder.threads, recorder.put)
    monkeypatch.setattr(blas, "_pool", lambda: pool)
    return recorder


@pytest.fixture
def threads():
    """SciPy's own number of threads, four for the test."""
    pool = blas._pool()
    if pool is None:
        pytest.skip("SciPy has no OpenBLAS")
    before = pool.get()
    pool.put(4)
    yield pool
    pool.put(before)


def test_inside_there_is_one_thread_and_afterwards_what_was_set(threads):
    with blas.one_thread():
        assert threads.get() == 1
        with blas.one_thread():
            assert threads.get() == 1
        assert threads.get() == 1
    assert threads.get() == 4


def test_an_error_leaves_nothing_behind(threads):
    with pytest.raises(KeyboardInterrupt), blas.one_thread():
        raise KeyboardInterrupt
    assert threads.get() == 4


def test_the_last_of_several_callers_sets_it_back(library):
    meet, leave = threading.Barrier(2), threading.Event()

    def other():
        with blas.one_thread():
            meet.wait()
            leave.wait()

    thread = threading.Thread(target=other)
    thread.start()
    meet.wait()
    with blas.one_thread():
        pass
    assert library.threads == 1
    leave.set()
    thread.join()
    assert library.seen == [1, 4]


def test_a_number_that_the_user_sets_meanwhile_stays(library):
    with blas.one_thread():
        library.put(3)
    assert library.threads == 3


def test_training_runs_with_one_thread_and_leaves_callbacks_and_the_user_their_own(threads):
    seen = []
    within = jax.pure_callback(lambda x: seen.append(threads.get()) or x, jax.ShapeDtypeStruct((), float), 1.0)
    assert float(within) == 1
    assert seen == [4]
    told = []
    ng.solve(poisson(), ng.NystromNGD(max_rank=10), 3, progress=False, callback=lambda _: told.append(threads.get()))
    assert told == [4, 4, 4]
    assert threads.get() == 4


def test_programs_run_with_one_thread_unless_a_factorization_is_large(library, monkeypatch):
    def run(n):
        seen = []
        watch = lambda A: jax.pure_callback(lambda a: seen.append(library.threads) or a, A, A)
        programs.Program(lambda A: watch(jnp.linalg.cholesky(A)), jnp.eye(n))(jnp.eye(n))
        assert library.threads == 4
        return seen

    monkeypatch.setattr(tuning, "ALL_THREADS", 20**3)
    assert run(19) == [1]
    assert run(20) == [4]


@pytest.mark.parametrize(
    ("fn", "shapes", "work"),
    [
        (jnp.linalg.cholesky, [(50, 50)], 50**3),
        (jnp.linalg.eigh, [(3, 50, 50)], 50**3),
        (jnp.linalg.qr, [(70, 20)], 70 * 20**2),
        (lambda A: jnp.linalg.svd(A, full_matrices=False), [(70, 20)], 70 * 20**2),
        (lambda L, B: jax.lax.linalg.triangular_solve(L, B, left_side=True), [(50, 50), (50, 1)], 50),
        (lambda L, B: jax.lax.linalg.triangular_solve(L, B), [(20, 20), (70, 20)], 70 * 20**2),
    ],
)
def test_the_work_of_lapack_is_read_off_the_program(fn, shapes, work):
    text = jax.jit(fn).lower(*[jnp.ones(shape) for shape in shapes]).as_text()
    assert re.search("@lapack_", text)
    assert max(map(blas._work, blas.CALL.findall(text))) == work
