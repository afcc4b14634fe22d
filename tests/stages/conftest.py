import pytest

from natgrad import stepping
from tests.helpers import FAST


@pytest.fixture(scope="package", autouse=True)
def quick():
    """One compiler for all solutions that are compared bit for bit, which does not try hard."""
    plain = stepping.compiler_options
    stepping.compiler_options = lambda: FAST
    yield
    stepping.compiler_options = plain
