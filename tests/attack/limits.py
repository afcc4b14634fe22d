"""How long something may take: seconds of the processor, so that a busy machine is no offence."""

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

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
