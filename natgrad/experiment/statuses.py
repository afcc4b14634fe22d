"""How a run ended: the status in result.json, the exit code of the command line, and whether it can go on."""

import signal

from natgrad.stopping import STOPPED

EXIT_CODES = {"not finite": 1, "no descent": 1, "interrupted": 130, "terminated": 143}  # of every other status: 0
BROKEN = tuple(status for status, code in EXIT_CODES.items() if code == 1)
FINAL = (*BROKEN, "converged")  # more steps would change nothing
PAUSED = ("steps", *STOPPED)  # not ended by a limit that was reached
SIGNALS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


def exit_code(status: str) -> int:
    """1 for a breakdown, 130 for an interruption (Ctrl-C), 143 where the system asked for the end, else 0."""
    return EXIT_CODES.get(status, 0)
