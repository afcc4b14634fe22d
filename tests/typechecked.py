"""Shapes and dtypes of arrays, checked at run time while the tests run: jaxtyping's hook, with beartype.

Only in rooms that others call: the doors of the library answer wrong input themselves, in a line of their own.
"""

from beartype import BeartypeConf, beartype
from jaxtyping import install_import_hook

ROOMS = [
    "natgrad.linalg",
    "natgrad.gramian",
    "natgrad.backend.chunks",
    "natgrad.backend.products",
]
check = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int is a float, too


def install() -> None:
    """From here on; what is imported already stays as it is."""
    install_import_hook(ROOMS, "tests.typechecked.check")
