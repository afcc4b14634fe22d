"""A few cases of each attack, and that the attacks see what they look for."""

import random
import sys

import pytest

from tests.attack import damages, folders, lines, misuse
from tests.attack.counts import Outcome, count, report, table
from tests.attack.grammar import Line
from tests.attack.kills import Plan, survive
from tests.attack.lines import complaint


@pytest.fixture
def home(tmp_path, monkeypatch, quick_compilation):
    """An empty folder to attack in; the process is where it was and what it was afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NATGRAD_CACHE", "0")
    return tmp_path / "attack"


def check(suite, cases):
    counts = count("sample", [suite.case(index) for index in cases])
    assert not counts.violations, "\n" + report(counts)
    return counts


def test_kills(tmp_path):
    outcome = survive(tmp_path / "home", tmp_path / "cache", Plan("adam", 1, 2), random.Random(1))
    assert outcome.verdict == "worked", outcome.detail
    assert outcome.tried == 2


def test_damages(home):
    check(damages.Suite(home), range(5))


def test_lines(home):
    suite = lines.Suite(home)
    counts = check(suite, [i for i in range(40) if i % lines.TRAINED])
    assert counts.refused > 10
    assert counts.worked > 5


def test_misuse(home):
    suite = misuse.Suite(home)
    counts = check(suite, range(0, len(suite.cases), 20))
    assert counts.refused > 20


@pytest.mark.parametrize(
    ("good", "code", "out", "err", "wrong"),
    [
        (None, 2, "", "natgrad: no\n", None),
        (None, 2, "", "natgrad: no\nreally not\n", "not refused in one line"),
        (None, 2, "written\n", "natgrad: no\n", "not refused in one line"),
        (None, 2, "", "oh no\n", "not refused in one line"),
        (None, 1, "", "Traceback (most recent call last)\n", "a traceback"),
        (None, 3, "", "", "ended with 3"),
        (False, 0, "", "", "cannot work and was accepted"),
        (False, "reached", "", "", "cannot work and was accepted"),
        (True, 2, "", "natgrad: no\n", "can work and was refused"),
        (None, "raw KeyError", "", "", "raw KeyError"),
        (True, "reached", "", "", None),
    ],
)
def test_answers_are_judged(good, code, out, err, wrong):
    found = complaint(Line(("run",), good), code, out, err)
    assert found is None if wrong is None else wrong in found


def test_files_that_change_are_seen(tmp_path):
    folders.strangers(tmp_path, ("a", "deep/b", "c"))
    before = folders.contents(tmp_path)
    (tmp_path / "a").write_text("other")
    (tmp_path / "c").unlink()
    (tmp_path / "new").write_text("more")
    assert sorted(folders.changed(before, folders.contents(tmp_path))) == ["a", "c"]


def test_counts():
    found = count("some", [Outcome("a", "worked", tried=3), Outcome("b", "refused"), Outcome("c", "violation", "oh")])
    assert (found.tried, found.refused, found.worked, len(found.violations)) == (5, 1, 3, 1)
    assert table([found]).splitlines()[-1] == "| some | 5 | 1 | 3 | 1 |"
    assert report(found) == "c\n    oh"


def test_a_process_that_dies_is_a_violation(tmp_path, monkeypatch):
    """And the cases after the one it died in have their turn."""
    from tests.attack import shards

    code = "import sys, os\nfrom tests.attack.shards import line\nfrom tests.attack.counts import Outcome\n"
    code += "for i in range(int(sys.argv[2]), int(sys.argv[3])):\n"
    code += "    if i == 1: os.abort()\n    open(sys.argv[5], 'a').write(line(Outcome(str(i), 'worked')))\n"
    script = tmp_path / "dying.py"
    script.write_text(code)
    monkeypatch.setattr(shards, "command", lambda *words: [sys.executable, str(script), *words])
    found = shards.attack("any", 3, processes=1)
    assert (found.tried, found.worked) == (3, 2)
    assert "died with -6" in found.violations[0].detail
