"""What a case came to, and what a suite of them counts."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

VERDICTS = ("refused", "worked", "violation")


@dataclass(frozen=True)
class Outcome:
    """Of one case: refused in one line, worked as it should, or a violation, with what happened.

    `tried` is how many attacks the case was made of: the kills of one run, say.
    """

    case: str
    verdict: str
    detail: str = ""
    tried: int = 1

    def __post_init__(self):
        if self.verdict not in VERDICTS:
            raise ValueError(f"a verdict is one of {', '.join(VERDICTS)}, got {self.verdict!r}")


@dataclass(frozen=True)
class Counts:
    """Of a suite."""

    suite: str
    tried: int
    refused: int
    worked: int
    violations: tuple[Outcome, ...]


def count(suite: str, outcomes: Iterable[Outcome]) -> Counts:
    """The sums of a suite."""
    found = list(outcomes)
    tried = {verdict: sum(o.tried for o in found if o.verdict == verdict) for verdict in VERDICTS}
    violations = tuple(o for o in found if o.verdict == "violation")
    return Counts(suite, sum(tried.values()), tried["refused"], tried["worked"], violations)


def table(counts: Iterable[Counts]) -> str:
    """Markdown, a row a suite, and below it every violation."""
    rows = [asdict(c) | {"violations": len(c.violations)} for c in counts]
    names = ("suite", "tried", "refused", "worked", "violations")
    titles = ("attack", "tried", "refused in one line", "worked as it should", "violations")
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "\n".join(lines + ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows])


def report(counts: Counts) -> str:
    """The violations, a line each."""
    return "\n".join(f"{o.case}\n    {o.detail}" for o in counts.violations)
