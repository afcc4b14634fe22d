"""How long something may take."""

import contextlib
import signal
from collections.abc import Iterator


class Late(BaseException):
    """It takes too long."""


@contextlib.contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Late after so many seconds, in the main thread."""

    def late(*_: object) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
