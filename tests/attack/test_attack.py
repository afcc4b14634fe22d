"""The whole attack, which takes minutes: `make attack`."""

import pytest

from tests.attack.counts import Counts, report, table
from tests.attack.kills import PLANS
from tests.attack.shards import attack

CASES = {"kills": len(PLANS), "damages": 320, "lines": 2000, "misuse": None}
LEAST = {"kills": 60, "damages": 100, "lines": 2000, "misuse": 200}


@pytest.fixture(scope="module")
def board():
    """What was counted, printed at the end."""
    rows: list[Counts] = []
    yield rows
    print("\n\n" + table(rows))


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.parametrize("suite", CASES)
def test_attack(suite, board):
    cases = CASES[suite]
    if cases is None:
        from tests.attack.misuse_cases import CASES as calls

        cases = len(calls)
    counts = attack(suite, cases)
    board.append(counts)
    assert not counts.violations, "\n" + report(counts)
    assert counts.tried >= LEAST[suite]
