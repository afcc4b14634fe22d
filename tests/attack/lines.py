"""Command lines that are right, wrong or odd: answered in one line, or at work, and nobody's files touched.

Lines are executed in this process, up to where the step would be compiled; every `TRAINED`-th of those that come so far
trains for its step or two.
"""

import contextlib
import io
import json
import os
import random
import shutil
import traceback
import warnings
from pathlib import Path
from unittest.mock import patch

from natgrad import stepping
from natgrad.cli import main
from tests.attack import folders
from tests.attack.counts import Outcome
from tests.attack.grammar import TINY, Line, line
from tests.attack.limits import Late, limit
from tests.experiment.made_up import made_up

TRAINED = 8
PATIENCE = 120  # seconds a line may take
MINE = ("plots/thesis.png", "checkpoint/x", "checkpoint/step-000000003.ckpt", "history.jsonl", "result.json",
        "table.md", "spectrum.npz")  # fmt: skip


class Reached(BaseException):
    """A line has come to where its step would be compiled."""


class Suite:
    """Of command lines, each in a folder with runs, whole and damaged, and files of somebody else's."""

    def __init__(self, home: Path, seed: int = 0):
        self.template, self.home, self.seed = home / "template", home / "home", seed
        self.cache = str(home / "cache")
        self.mine = furnish(self.template, self.cache)
        self.fresh()

    def fresh(self) -> None:
        """The folder as it was."""
        os.chdir(self.template)
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self.template, self.home, symlinks=True)
        self.before = folders.contents(self.home)

    def case(self, index: int) -> Outcome:
        """One line."""
        asked = line(random.Random(f"{self.seed}-{index}"))
        name = f"{index}: natgrad " + " ".join(
            repr(w) if not w or not w.isprintable() or " " in w else w for w in asked.words
        )
        outcome = self.judge(name, asked, train=False)
        if outcome.verdict == "worked" and outcome.detail == "reached" and index % TRAINED == 0:
            outcome = self.judge(name, asked, train=True)
        return outcome

    def judge(self, name: str, asked: Line, train: bool) -> Outcome:
        """What becomes of a line."""
        os.chdir(self.home)
        os.environ["NATGRAD_CACHE"] = self.cache
        code, out, err = execute(asked.words, train)
        after = folders.contents(self.home)
        begun = out if series(asked.words) else ""  # the runs before the one that is refused
        wrong = complaint(asked, code, out.removeprefix(begun), err) or self.touched(asked, code, after, begun)
        if after != self.before:
            self.fresh()
        if wrong:
            return Outcome(name, "violation", wrong)
        return Outcome(name, "refused" if code == 2 else "worked", "reached" if code == "reached" else "")

    def touched(self, asked: Line, code: object, after: dict[str, str], begun: str) -> str | None:
        """Whether something was changed that had to stay."""
        changed = folders.changed(self.before, after)
        if code == 2 and after != self.before and not begun:
            written = sorted(set(after.items()) ^ set(self.before.items()))[:3]
            return f"it was refused after something was written: {written}"
        if theirs := [name for name in changed if name in self.mine]:
            return f"files of somebody else's have changed: {theirs}"
        kept = [name for name in changed if name.startswith(("run/", "real/", "done/")) and "/plots" not in name]
        if kept and not {"--force", "--resume"} & set(asked.words):
            return f"a run has changed: {kept}"
        return None


def series(words: tuple[str, ...]) -> bool:
    """Whether there are several runs, each announced on stdout and built when its turn comes."""
    return words[:1] in (("compare",), ("sweep",)) or any(word.startswith("--seeds") for word in words)


def shown(word: str) -> str:
    """A word as a shell would need it, more or less."""
    return word if word.isprintable() and word and " " not in word else repr(word)


def complaint(asked: Line, code: object, out: str, err: str) -> str | None:
    """What is wrong with an answer."""
    said = " | ".join(err.strip().splitlines()[-2:])[-300:]
    if isinstance(code, str) and code != "reached":
        return code
    if code not in (0, 1, 2, 130, 143, "reached"):
        return f"it ended with {code}: {said}"
    if "Traceback" in err:
        return f"a traceback: {said}"
    usage = asked.words == () or "Usage: natgrad" in err + out
    if code == 2 and not usage and (out or err.count("\n") != 1 or not err.startswith("natgrad: ")):
        return f"it was not refused in one line: {out[:100]!r} {err[:400]!r}"
    if asked.good is False and code in (0, 1, "reached"):
        return "it cannot work and was accepted"
    if asked.good is True and code == 2:
        return f"it can work and was refused: {said}"
    if code == 1 and "not finite" in out:
        return f"it was accepted and broke down at once: {out.strip()[-200:]}"
    return None


def execute(words: tuple[str, ...], train: bool) -> tuple[object, str, str]:
    """The exit code (or "reached", or what else happened), stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    halt = contextlib.nullcontext() if train else patch.object(stepping.Stepper, "__init__", _reached)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            halt,
            limit(PATIENCE),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("default")
            main(list(words))
    except SystemExit as stop:
        return stop.code, out.getvalue(), err.getvalue()
    except Reached:
        return "reached", out.getvalue(), err.getvalue()
    except Late:
        return f"it took more than {PATIENCE} s", out.getvalue(), err.getvalue()
    except BaseException as error:
        frames = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)[-3:]]
        return (
            f"raw {type(error).__name__}: {str(error)[:200]!r} at {', '.join(frames)}",
            out.getvalue(),
            err.getvalue(),
        )
    return "no exit", out.getvalue(), err.getvalue()


def _reached(*args: object, **kwargs: object) -> None:
    raise Reached


def furnish(home: Path, cache: str) -> set[str]:
    """Fills a folder; the names of what is somebody else's."""
    home.mkdir(parents=True)
    os.chdir(home)
    folders.strangers(home / "mine", MINE)
    folders.strangers(home / "notes", ("thesis.tex", "plots/convergence.png"))
    folders.strangers(home / "half", ("plots/thesis.png",))
    folders.strangers(home, ("a-file",))
    (home / "theirs").mkdir()
    (home / "theirs" / "config.json").write_text(json.dumps({"name": "somebody's", "version": 1}))
    folders.strangers(home / "theirs", ("history.jsonl",))
    (home / "link").symlink_to("mine")
    (home / "empty").mkdir()
    mine = set(folders.contents(home))
    for name, file, content in (
        ("no-json", "config.json", "{"), ("a-list", "config.json", "[1]"), ("no-keys", "config.json", "{}"),
        ("bad-history", "history.jsonl", "nonsense\n"), ("bad-result", "result.json", "nonsense"),
    ):  # fmt: skip
        (made_up(home / name, steps=10) / file).write_text(content)
    made_up(home / "run", steps=10)
    os.environ["NATGRAD_CACHE"] = cache
    settings = [
        word for name in ("width", "depth", "interior", "boundary") for word in ("--set", f"{name}={TINY[name]}")
    ]
    words = ("run", "poisson3d", "--optimizer", "adam", "--steps", "4", *settings, "--no-plots", "--quiet")
    for name in ("real", "done"):
        code, _, err = execute((*words, "--out", name), train=True)
        if code != 0:
            raise RuntimeError(f"the run to be attacked ended with {code}: {err}")
    (home / "real" / "result.json").unlink()
    return mine
