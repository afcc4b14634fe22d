"""Programs compiled once for all tests of a module, and with little effort; made-up runs to draw and to count."""

import jax
import pytest

from natgrad import stepping
from tests.experiment.made_up import made_up
from tests.helpers import FAST

FLOOR = {"nystrom-gaussian": 1e-4, "ngd-full": 2e-4, "adam": 1e-1}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A compilation cache, which makes training again a matter of tracing."""
    from jax.experimental.compilation_cache import compilation_cache

    options = {
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }
    before = {name: getattr(jax.config, name) for name in options}
    for name, value in options.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    plain = stepping.compiler_options
    stepping.compiler_options = lambda: FAST
    yield
    stepping.compiler_options = plain
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Three optimizers, three seeds each, on one problem; one of them on another."""
    home = tmp_path_factory.mktemp("runs")
    for name, floor in FLOOR.items():
        for seed in range(3):
            made_up(home / f"{name}-{seed}", name, seed, floor=floor * (1 + seed), second=0.01 * (1 + seed))
    made_up(home / "heat", "ngd-full", problem="heat3d", floor=3e-3)
    return home
