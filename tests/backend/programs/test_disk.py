"""Programs on disk: found by the next process, never wrong, never in the way."""

import os
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.backend import programs
from natgrad.backend.programs import disk, surroundings

X = jnp.linspace(0.0, 1.0, 5)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of its own, in which everything is kept."""
    monkeypatch.setenv("NATGRAD_CACHE", str(tmp_path / "programs"))
    monkeypatch.setattr(disk, "WORTH", 0.0)
    programs.clear_cache()
    return tmp_path / "programs"


def entries(folder):
    return sorted(folder.glob(f"*{disk.SUFFIX}"))


def run(fn=jnp.sin, x=X, **options):
    """Where a program comes from that is not in memory, and what it gives."""
    programs.clear_cache()
    program = programs.Program(fn, x, **options)
    return program(x), program.origin


def test_a_program_is_found_again(folder):
    first, origin = run()
    assert origin == "new"
    again, origin = run()
    assert origin == "disk"
    np.testing.assert_array_equal(first, again)
    assert len(entries(folder)) == 1
    assert not list(folder.glob("*.part"))


def test_an_argument_that_is_not_used_counts(folder):
    """It is not in the program's text, and the program insists on its shape."""
    some = lambda pair: jnp.sin(pair[0])
    for length in (3, 4):
        found, origin = run(some, (X, jnp.zeros(length)))
        assert origin == "new"
        np.testing.assert_array_equal(found, jnp.sin(X))


@pytest.mark.parametrize("damage", ["truncated", "emptied", "a bit turned", "another's content"])
def test_a_damaged_entry_is_compiled_and_written_again(folder, damage):
    first, _ = run()
    (path,) = entries(folder)
    whole = path.read_bytes()
    turned = bytearray(whole)
    turned[len(whole) // 2] ^= 1
    damaged = {"truncated": whole[:-20], "emptied": b"", "a bit turned": bytes(turned), "another's content": b"x" * 99}
    path.write_bytes(damaged[damage])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again, origin = run()
    assert origin == "new"
    np.testing.assert_array_equal(first, again)
    assert run()[1] == "disk"


def test_a_damaged_entry_goes_though_nothing_takes_its_place(folder, monkeypatch):
    """What compiles in a moment this time is not kept, and is not looked for in a damaged file again and again."""
    run()
    (path,) = entries(folder)
    path.write_bytes(path.read_bytes()[:50])
    monkeypatch.setattr(disk, "WORTH", 1e9)
    assert run()[1] == "new"
    assert not entries(folder)


def test_a_truncated_entry_of_jax_is_replaced(tmp_path):
    """JAX's own cache neither uses nor replaces one: where natgrad hands over to it, such an entry is removed."""
    code = (
        "import sys, jax, jax.numpy as jnp\n"
        "from natgrad.backend.programs import disk\n"
        "disk.keep_by_jax()\n"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)\n"
        "jax.config.update('jax_persistent_cache_min_entry_size_bytes', 0)\n"
        "print(jax.jit(lambda x: jnp.sin(x) @ x)(jnp.arange(5.0)))\n"
    )
    environment = {**os.environ, "NATGRAD_CACHE": str(tmp_path)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    again = lambda: subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    first = again().stdout
    (path,) = [p for p in (tmp_path / "processes").glob("*-cache") if "lambda" in p.name]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    second = again()
    assert second.stdout == first
    assert "Error reading" not in second.stderr
    assert len(path.read_bytes()) > 0.9 * len(whole)


def test_an_entry_that_is_no_program_is_compiled(folder):
    """Its hash is right, what is in it is not: written by another version, say."""
    import hashlib
    import zlib

    run()
    (path,) = entries(folder)
    content = zlib.compress(b"no pickle")
    path.write_bytes(hashlib.sha256(content).digest() + content)
    assert run()[1] == "new"
    assert run()[1] == "disk"


def test_what_the_compiler_goes_by_is_in_the_name(folder, monkeypatch):
    run()
    assert run(jnp.cos)[1] == "new"
    assert run(lambda x: jnp.sin(x) + 1e-300)[1] == "new"
    assert run(x=jnp.linspace(0.0, 1.0, 6))[1] == "new"
    assert run(options={"xla_cpu_enable_fast_math": True})[1] == "new"
    with jax.default_matmul_precision("highest"):
        assert run()[1] == "new"
    assert run()[1] == "disk"
    monkeypatch.setattr(surroundings, "processor", lambda: "another processor")
    assert run()[1] == "new"


def test_constants_are_in_the_name(folder):
    """Large ones too, of which a text may show a part only."""
    table = np.arange(20_000.0)
    fn = lambda x: x[0] + jnp.asarray(table)
    run(fn)
    table[10_000] = -1.0
    value, origin = run(fn)
    assert origin == "new"
    assert value[10_000] == X[0] - 1.0


def calling(fn, x):
    """A program's call into this process."""
    return jax.pure_callback(fn, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def test_calls_are_those_of_the_process_that_runs_it(folder):
    """Two functions that differ in what they call are one program: each calls its own, in its order."""
    both = lambda first, second: lambda x: calling(first, x) - 2 * calling(second, x)
    assert run(both(np.sin, np.cos))[1] == "new"
    for first, second in ((np.sin, np.cos), (np.cos, np.sin), (np.exp, np.exp)):
        value, origin = run(both(first, second))
        assert origin == "disk"
        np.testing.assert_allclose(value, first(X) - 2 * second(X), rtol=1e-6)
    assert len(entries(folder)) == 1
    assert run(lambda x: calling(np.sin, x))[1] == "new"


def test_another_process_calls_its_own_products(folder):
    """AᵀA of NumPy, from the disk of this process."""
    code = """if True:
        import jax, numpy as np
        from natgrad.backend import products, programs, tuning
        from natgrad.backend.programs import disk
        disk.WORTH, products.tuning.NUMPY_FLOPS = 0.0, 1.0
        A = jax.numpy.asarray(np.random.default_rng(0).normal(size=(40, 7)), "float32")
        program = programs.Program(products.gram, A)
        error = np.abs(np.asarray(program(A)) - np.asarray(A).T @ np.asarray(A)).max()
        print(program.origin, error < 1e-4)
    """
    told = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(2)]
    assert [done.stdout.strip() for done in told] == ["new True", "disk True"], told[-1].stderr


def test_it_is_switched_off(folder, monkeypatch):
    assert run(cache=False)[1] == "new"
    assert not folder.exists()
    monkeypatch.setenv("NATGRAD_CACHE", "0")
    assert disk.folder() is None
    assert run()[1] == run()[1] == "new"


def test_the_users_own_cache_goes_first(folder):
    jax.config.update("jax_compilation_cache_dir", str(folder.parent / "jax"))
    try:
        assert disk.folder() is None
    finally:
        jax.config.update("jax_compilation_cache_dir", None)
    assert disk.folder() == folder


def test_the_users_settings_stay(folder):
    before = dict(jax.config.values)
    run()
    run()
    assert dict(jax.config.values) == before


@pytest.mark.parametrize("place", ["a file", "below a file", "/dev/null/x"])
def test_a_folder_that_cannot_be_is_none(folder, place, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    paths = {"a file": str(tmp_path / "file"), "below a file": str(tmp_path / "file" / "x")}
    monkeypatch.setenv("NATGRAD_CACHE", paths.get(place, place))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert disk.folder() is None
        assert run()[1] == "new"


def test_a_folder_that_breaks_while_writing_is_no_failure(folder, monkeypatch):
    def full(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert run()[1] == "new"
    assert not list(folder.iterdir())


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no users")
def test_the_folder_of_another_user_is_not_read(folder, monkeypatch):
    run()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert disk.folder() is None


def test_the_folder_is_bounded(folder, monkeypatch):
    run()
    size = entries(folder)[0].stat().st_size
    os.utime(entries(folder)[0], (1, 1))
    oldest = entries(folder)
    monkeypatch.setattr(disk, "LIMIT", 4 * size)
    for shift in range(8):
        run(lambda x, shift=shift: jnp.sin(x + shift))
    assert sum(path.stat().st_size for path in entries(folder)) <= 4 * size
    assert len(entries(folder)) >= 2
    assert not set(oldest) & set(entries(folder))


def test_caches_are_where_the_system_has_them(monkeypatch):
    from pathlib import Path

    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert disk._caches() == Path("/caches")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert disk._caches() == Path.home() / "Library" / "Caches"
    monkeypatch.setattr(sys, "platform", "linux")
    assert disk._caches() == Path.home() / ".cache"


PROCESS = """
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
import natgrad as ng
from tests.backend.programs.test_programs import build
solution = ng.solve(build(), ng.FullNGD(), 6)
print(solution.compiled, solution.errors["h1"].hex(), *[float(loss).hex() for loss in solution.history.loss])
"""


def test_processes_share_programs_bit_for_bit(folder):
    """Two at the same time, none of which finds half a file; then one that compiles nothing."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_backend_optimization_level=0", "JAX_PLATFORMS": "cpu"}
    start = lambda: subprocess.Popen(
        [sys.executable, "-c", PROCESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    told = [process.communicate() for process in [start(), start()]] + [start().communicate()]
    words = [out.split() for out, _ in told]
    assert words[2][0] == "disk", told[2]
    assert "(cached)" in told[2][1]
    assert words[0][1:] == words[1][1:] == words[2][1:]
    assert len(words[0]) == 8
