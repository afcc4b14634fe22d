"""Wrong uses of the Python API, each answered by a ValueError or TypeError of one line that names what is wrong.

`misuse_cases.py` has them in tables; beside the wrong ones a few that look wrong and are right.
"""

import contextlib
import io
import os
import re
import traceback
import warnings
from pathlib import Path

import jax

from tests.attack.counts import Outcome
from tests.attack.limits import Late, limit

PATIENCE = 60  # seconds a case may take


class Suite:
    """Of wrong calls, and some right ones."""

    def __init__(self, home: Path):
        os.environ["NATGRAD_CACHE"] = str(home / "cache")
        jax.config.update("jax_enable_x64", True)
        from tests.attack.misuse_cases import CASES

        self.cases = CASES

    def case(self, index: int) -> Outcome:
        """One call."""
        case = self.cases[index]
        name, told = f"{index}: {case.name}", f"/{case.told}/"
        try:
            with quiet(), limit(PATIENCE):
                result = case.call()
        except Late:
            return Outcome(name, "violation", f"it took more than {PATIENCE} s")
        except (ValueError, TypeError) as error:
            text = str(error)
            if case.told is None:
                return Outcome(name, "violation", f"it is right and was refused: {text[:300]}")
            if "\n" in text.strip():
                return Outcome(
                    name, "violation", f"{type(error).__name__} of {text.count(chr(10)) + 1} lines: {text[:200]!r}"
                )
            if "unexpected keyword" in text and "max_rnk" not in text:
                return Outcome(name, "violation", f"the table of cases is out of date: {text}")
            if not re.search(case.told, text, re.IGNORECASE):
                where = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{Path(where.filename).name}:{where.lineno}"
                return Outcome(
                    name, "violation", f"{type(error).__name__} does not say {told}, at {place}: {text[:300]}"
                )
            return Outcome(name, "refused", text)
        except Exception as error:
            return Outcome(name, "violation", f"raw {type(error).__name__}: {str(error)[:200]!r}")
        if case.told is not None:
            return Outcome(name, "violation", f"it cannot work and was accepted, with {str(result)[:100]!r}")
        if result is not True:
            return Outcome(name, "violation", f"its result makes no sense: {str(result)[:300]!r}")
        return Outcome(name, "worked")


@contextlib.contextmanager
def quiet():
    """Nothing on the terminal."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
