"""`python -m tests.attack.slow_writes run …`: natgrad on a slow disk, with a checkpoint after every step.

Files are a long time half written here, so that a process can be killed while one is.
"""

import os
import time
from collections.abc import Callable
from typing import Any

from natgrad.cli import main
from natgrad.experiment import checkpoint

SECONDS = 0.03


def slow(fn: Callable) -> Callable:
    """The same, later."""

    def later(*args: Any, **kwargs: Any) -> Any:
        time.sleep(SECONDS)
        return fn(*args, **kwargs)

    return later


if __name__ == "__main__":
    os.fsync, os.replace = slow(os.fsync), slow(os.replace)
    checkpoint.SHARE = float("inf")
    main()
