"""Run folders that were damaged: refused in one line with everything left as it is, or gone on with, bit for bit.

Every file of a run × what may happen to it, with files of somebody else's beside them. A damaged run is asked for a
table, run again without a word, resumed, and sometimes started over; somebody else's files must outlive all of it.
"""

import contextlib
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from natgrad.experiment import checkpoint
from tests.attack import folders
from tests.attack.counts import Outcome
from tests.attack.lines import execute
from tests.experiment.small_runs import SETTINGS, timeless

STRANGERS = ("thesis.tex", "plots/thesis.png", "checkpoint/x", "checkpoint/step-999999999.ckpt")
STEPS, MORE = 8, 12
RUN = ("run", "poisson3d", "--optimizer", "ngd-full", *(word for s in SETTINGS for word in ("--set", s)))


def truncate(path: Path, other: Path, chance: random.Random) -> None:
    """The end is gone."""
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(1, max(2, len(data)))])


def empty(path: Path, other: Path, chance: random.Random) -> None:
    """All is gone."""
    path.write_bytes(b"")


def flip(path: Path, other: Path, chance: random.Random) -> None:
    """A bit is another one."""
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(data))


def swap(path: Path, other: Path, chance: random.Random) -> None:
    """It is that of another run."""
    path.write_bytes(other.read_bytes())


def mix(path: Path, other: Path, chance: random.Random) -> None:
    """It is another file of the run."""
    siblings = [p for p in sorted(path.parent.iterdir()) if p.is_file() and p != path]
    path.write_bytes(chance.choice(siblings).read_bytes() if siblings else b"{}")


def remove(path: Path, other: Path, chance: random.Random) -> None:
    """It is not there."""
    path.unlink()


def strangers(path: Path, other: Path, chance: random.Random) -> None:
    """It is a text of somebody else's."""
    path.write_text("my only copy\n")


def link(path: Path, other: Path, chance: random.Random) -> None:
    """It points to a file of somebody else's."""
    target = path.parent / "diary.txt"
    target.write_text("my only copy\n")
    path.unlink()
    path.symlink_to("diary.txt")


def directory(path: Path, other: Path, chance: random.Random) -> None:
    """It is a folder of somebody else's."""
    path.unlink()
    folders.strangers(path, ("thesis.tex",))


def whole_folder(path: Path, other: Path, chance: random.Random) -> None:
    """The folder it lies in is a file of somebody else's; for one at the top, it is gone with all that is not below."""
    if path.parent.name in ("checkpoint", "plots"):
        shutil.rmtree(path.parent)
        path.parent.write_text("my only copy\n")
    else:
        path.unlink()


DAMAGES: tuple[Callable[[Path, Path, random.Random], None], ...] = (
    truncate, empty, flip, swap, mix, remove, strangers, link, directory, whole_folder,
)  # fmt: skip
LATER = (flip, truncate, flip, mix)  # what goes on being different when all have had their turn


class Suite:
    """Of damaged runs."""

    def __init__(self, home: Path, seed: int = 0):
        self.home, self.seed = home, seed
        home.mkdir(parents=True, exist_ok=True)
        os.chdir(home)
        os.environ["NATGRAD_CACHE"] = str(home / "cache")
        for name, steps, more in (
            ("whole", MORE, ("--no-plots",)), ("done", STEPS, ()), ("other", STEPS, ("--seed", "1")),
        ):  # fmt: skip
            code, _, err = execute((*RUN, "--steps", str(steps), "--out", name, "--quiet", *more), train=True)
            if code != 0:
                raise RuntimeError(f"the run to be damaged ended with {code}: {err}")
        shutil.copytree("done", "begun")
        (home / "begun" / "result.json").unlink()
        shutil.rmtree(home / "begun" / "plots")
        self.cases = [
            (name, path, damage)
            for name in ("begun", "done")
            for path in sorted(p.relative_to(home / name) for p in (home / name).rglob("*") if p.is_file())
            for damage in DAMAGES
        ]
        random.Random(seed).shuffle(self.cases)

    def case(self, index: int) -> Outcome:
        """One damage."""
        chance = random.Random(f"{self.seed}-{index}")
        name, file, damage = self.cases[index % len(self.cases)]
        if index >= len(self.cases):
            damage = chance.choice(LATER)
        os.chdir(self.home)
        shutil.rmtree("run", ignore_errors=True)
        shutil.copytree(name, "run")
        folder = self.home / "run"
        known = set(folders.contents(folder))
        damage(folder / file, self.home / "other" / file, chance)
        if chance.random() < 0.5:
            for stranger in STRANGERS:
                if not (folder / stranger).parent.is_file():
                    folders.strangers(folder, (stranger,))
        title = f"{index}: {name}, {file}: {damage.__name__}"
        others = {n: v for n, v in folders.contents(folder).items() if n not in known and v != "folder"}
        outcome = attack(folder, self.home / "whole", chance)
        if lost := folders.changed(others, folders.contents(folder)):
            outcome = outcome[0], "violation", f"files of somebody else's have changed: {lost}; {outcome[2]}"
        return Outcome(title, *outcome[1:])


def attack(folder: Path, whole: Path, chance: random.Random) -> tuple[str, str, str]:
    """What becomes of a damaged folder: ("", verdict, detail)."""
    before = folders.contents(folder)
    for words in (("table", "run"), (*RUN, "--steps", str(MORE), "--out", "run", "--no-plots", "--quiet")):
        code, _, err = execute(words, train=True)
        if wrong := answer(code, err, (0, 2) if words[0] == "table" else (2,)):
            return "", "violation", f"{words[0]}: {wrong}"
        if folders.contents(folder) != before:
            changed = folders.changed(before, folders.contents(folder))
            return "", "violation", f"{words[0]} has changed {changed}, and ended with {code}: {err.strip()[-200:]}"
    asked = chance.choice((STEPS, MORE, MORE, MORE))
    code, out, err = execute((*RUN, "--steps", str(asked), "--out", "run", "--resume", "--no-plots"), train=True)
    if wrong := answer(code, err, (0, 2)):
        return "", "violation", f"--resume: {wrong}"
    after = folders.contents(folder)
    if code == 2:
        if after != before:
            return (
                "",
                "violation",
                f"--resume was refused after it had changed {sorted(set(after.items()) ^ set(before.items()))[:4]}",
            )
        return forced(folder, chance, "refused", err)
    if asked == MORE:
        try:
            same = timeless(folder) == timeless(whole) and last(folder) == last(whole)
        except (ValueError, OSError) as error:
            same, out = False, repr(error)
        if not same:
            return (
                "",
                "violation",
                f"--resume ended otherwise than a run that was never damaged: {(out + err).strip()[-300:]}",
            )
    return forced(folder, chance, "worked", err)


def last(folder: Path) -> bytes:
    """The bytes of the last whole checkpoint's arrays; ValueError where there is none."""
    for path in checkpoint.files(folder / "checkpoint"):
        with contextlib.suppress(ValueError, OSError):
            return checkpoint.read(path)[1]
    raise ValueError(f"no checkpoint in {folder}")


def forced(folder: Path, chance: random.Random, verdict: str, said: str) -> tuple[str, str, str]:
    """What `--force` does, in a quarter of the cases: refused, or a whole new run."""
    if chance.random() < 0.25:
        code, _, err = execute((*RUN, "--steps", "2", "--out", "run", "--force", "--no-plots", "--quiet"), train=True)
        if wrong := answer(code, err, (0, 2)):
            return "", "violation", f"--force: {wrong}"
        if code == 0 and [record["step"] for record in timeless(folder)] != [1, 2]:
            return "", "violation", "--force has made no whole run"
    return "", verdict, " | ".join(line for line in said.splitlines() if line.startswith("natgrad: "))


def answer(code: object, err: str, allowed: tuple[int, ...]) -> str | None:
    """What is wrong with how a command ended."""
    if code not in allowed:
        return f"it ended with {code}: {err.strip()[-300:]}"
    told = [line for line in err.splitlines() if line.startswith("natgrad: ")]
    if "Traceback" in err or (code == 2 and not told):
        return f"it was not refused in one line: {err[:300]!r}"
    if "leave --resume out" in err:
        return f"it advises what destroys: {err.strip()}"
    return None
