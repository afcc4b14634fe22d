"""Programs compiled once for all tests of a module, and with little effort."""

import jax
import pytest

from natgrad import stepping
from tests.helpers import FAST


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
