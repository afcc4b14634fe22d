import os

import jax
import pytest

os.environ["NATGRAD_CACHE"] = "0"  # tests leave nothing in the user's folders; those of the cache say otherwise
jax.config.update("jax_enable_x64", True)


@pytest.fixture
def quick_compilation(monkeypatch):
    """For programs that run a few times: the compiler of `ng.solve` need not try hard."""
    from natgrad import stepping
    from tests.helpers import FAST

    monkeypatch.setattr(stepping, "compiler_options", lambda: FAST)
