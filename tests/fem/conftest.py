"""Compiling is most of these tests' time: they compile with little optimization."""

import functools

import jax
import pytest

from tests.helpers import FAST


@pytest.fixture(autouse=True)
def _compile_fast(monkeypatch):
    monkeypatch.setattr(jax, "jit", functools.partial(jax.jit, compiler_options=FAST))
