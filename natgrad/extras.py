"""Libraries that only some uses need, each an extra of the installation: `pip install 'natgrad[fem]'`.

with needs("Pictures", "plots"):
    import matplotlib.pyplot as plt
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

# {extra: the modules it brings}, as in pyproject.toml; `all` brings all of them.
EXTRAS = {
    "cli": ("typer", "rich"),
    "plots": ("matplotlib",),
    "fem": ("skfem",),
    "mesh": ("meshio",),
    "optax": ("optax",),
    "optimistix": ("optimistix",),
    "lineax": ("lineax",),
    "tensorboard": ("tensorboardX",),
    "wandb": ("wandb",),
    "mlflow": ("mlflow", "sqlalchemy", "alembic"),
}


class MissingExtra(ModuleNotFoundError):
    """A library that a use needs is not installed."""


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Says in one line which extra is missing, where an import within finds it missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS[extra]:
            raise
        raise MissingExtra(f"{what} needs {missing}: pip install 'natgrad[{extra}]'", name=missing) from None


@contextmanager
def hushed() -> Iterator[None]:
    """What a library prints while it works goes nowhere: meshio's empty lines, say."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield
