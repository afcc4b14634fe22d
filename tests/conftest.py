import os
import signal

import jax
import pytest

from tests import typechecked

typechecked.install()
os.environ["NATGRAD_CACHE"] = "0"  # tests leave nothing in the user's folders; those of the cache say otherwise
jax.config.update("jax_enable_x64", True)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background, and processes of tests inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def quick_compilation(monkeypatch):
    """For programs that run a few times: the compiler of `ng.solve` need not try hard."""
    from natgrad import stepping
    from tests.helpers import FAST

    monkeypatch.setattr(stepping, "compiler_options", lambda: FAST)
