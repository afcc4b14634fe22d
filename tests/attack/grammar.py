"""Command lines, right and wrong, drawn from a grammar.

A line is a right one, of a problem so small that it trains in a moment, with some pieces put in or taken out. Each
piece says whether a line may have it: True, False (such a line cannot work, and must be refused) or None (either will
do, as long as what is accepted then works).
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from natgrad import zoo
from natgrad.experiment import optimizers

TINY = {
    "width": "4", "depth": "1", "interior": "20", "boundary": "12", "initial": "8", "cells": "2", "degree": "2",
    "uniform": "1", "graded": "1", "sensors": "9", "dim": "2",
}  # fmt: skip
JUNK = ("", " ", "x", "-1", "0", "nan", "inf", "-inf", "1e400", "1.5", "None", "null", "[]", "{}", "ü", "\u0663",
        "a" * 300, "a\nb", "../..", "-", "--", "=", "$HOME", "%s", "0x10", "1_0", "+3", "1e1", "9" * 40)  # fmt: skip
ENERGIES = ("gross_pitaevskii", "nonlinear_poisson")  # by points
WRONG_INTEGER = ("abc", "2.5", "nan", "inf", "-3", "1,2", "0x10", "1e400", "none such")
HUGE = ("1000000000000", "1e18", "9" * 40)
WRONG_NUMBER = ("abc", "nan", "1,2", "two", "1e", "--", "1/0")
ODD_NUMBER = ("0", "-1", "1e6", "1e-6", "1e300", "1e-300", "-1e300", "inf", "-inf", "5e-324", "1_0")

# What every option of a solver must refuse, by the last part of its name.
REFUSED = {
    "gamma": ("0", "-1", "inf", "nan", "-inf"), "shrink": ("0", "1", "1.5", "-0.5", "nan", "inf"),
    "decrease": ("1", "2", "-1", "nan", "inf"), "points": ("0", "-1", "1.5"), "max_trials": ("0", "-1", "1.5", "nan"),
    "tol": ("-1", "nan", "inf"), "min_decrease": ("-1", "nan", "inf"), "tolerance": ("-1", "nan", "inf"),
    "scaling": ("0", "2", "-1", "nan", "inf"), "power_iterations": ("0", "-1", "1.5"), "maxiter": ("0", "-1", "1.5"),
    "max_rank": ("0", "-1", "2.5", "nan"), "increase": ("0", "-1"), "levels": ("0", "-1"), "block": ("0", "-1"),
    "ratio": ("-1", "nan", "inf"), "short": ("0", "-1", "2", "nan"), "up": ("1", "0", "-1", "nan"),
    "down": ("1", "0", "-1", "nan"), "start": ("-1", "nan", "inf"), "decay": ("0", "-1", "2", "nan"),
    "acceleration": ("-1", "nan", "inf"), "momentum": ("1", "-0.5", "nan", "2"), "batch": ("0", "-1", "1.5"),
    "memory": ("0", "-1", "nan"), "curvature": ("0", "1", "2", "-1", "nan"), "max_evaluations": ("0", "-1", "1.5"),
    "history": ("0", "-1", "1.5"), "total": ("0", "-1", "1.5"), "warmup": ("-1", "1.5", "nan"),
    "peak": ("0", "-1", "nan", "inf"), "end": ("-1", "nan", "inf"), "gramian": ("dense", "", "Jacobian"),
    "test": ("cauchy", ""), "method": ("qr", ""), "search": ("Newton", "armijo"),
    "rule": ("Spectrum", "3"), "damping": ("Spectrum", "relative"), "direction": ("Direct", "x"),
    "preconditioner": ("Identity", "x"), "warm_start": ("maybe", "2"), "reuse": ("maybe", "-1"),
    "by_loss": ("maybe", "0.5"), "scaled": ("maybe", "x"), "solver": ("Direct", "x"),
}  # fmt: skip


@dataclass(frozen=True)
class Piece:
    """Some words of a line."""

    words: tuple[str, ...]
    good: bool | None


@dataclass(frozen=True)
class Line:
    """The words after `natgrad`, and whether they may work."""

    words: tuple[str, ...]
    good: bool | None


OPTIONS: dict[str, tuple[Sequence[str], Sequence[str], Sequence[str]]] = {  # right, wrong, either
    "--optimizer": (optimizers.NAMES, ("sgd", "", "ADAM", "nystrom-gausian", "adam,bfgs", "ngd full"), ()),
    "--preset": (("small",), ("huge", "", "SMALL", "small "), ("paper", "100d")),
    "--recipe": (("default", "published"), ("fancy", "", "Default"), ()),
    "--steps": (("1", "2", "3"), ("0", "-5", "ten", "2.5", "", "nan", "inf", "1e3"), ("9" * 40, "+1")),
    "--seed": (("0", "1", "12345"), ("-1", "x", "1.5", "9" * 20, ""), ("4294967296", "9223372036854775807")),
    "--seeds": (("0:2", "3,1", "7"), ("a:b", "3:3", "5:2", "0,0", "0,,1", "-2:0", "", ":", "0:1000000000000"), ()),
    "--target-error": (("0.1", "1e-9"), ("0", "-1", "nan", "inf", "abc", ""), ("1e-300", "1e300")),
    "--time-limit": (("60", "1e6"), ("0", "-1", "nan", "inf", "abc", ""), ("1e-300",)),
    "--evaluate-every": (("1", "2", "1000"), ("0", "-1", "x", "1.5", ""), ("9" * 40,)),
    "--devices": (("1", "2"), ("0", "-1", "99999", "x", "1.5", "3"), ()),
    "--memory": (
        ("8GB", "500 MB", "1e9", "2GiB"),
        ("x", "-1GB", "0", "", "GB", "1e400GB", "8XB", "nan", "inf", "1GB2", "1.2.3GB"),
        ("1kB", "10B", "1e300GB", "0.1B"),
    ),
    "--coordinator": ((), ("127.0.0.1:1", "x", ""), ()),
    "--process-id": ((), ("0", "-1", "x"), ()),
    "--num-processes": ((), ("1", "0", "-2", "x"), ()),
    "--at": (("0", "0,1"), ("x", "-1", "77", "0,,1", "", "1e3", "nan", "0:1"), ()),
    "--format": (("markdown", "csv", "latex"), ("html", "", "MARKDOWN"), ()),
    "--optimizers": (("adam", "adam,ngd-full"), ("adam,adam", "adamm", "", ",", "adam,,bfgs"), ()),
    "--out": (
        ("new", "deep/er/new", "empty", "ü b"),
        ("mine", "notes", "a-file", "a-file/x", "theirs", "half", "a" * 300, "/proc/none"),
        ("run", "real", ".", "link", "", "mine/new", "real/checkpoint", "-", "$HOME", "a\nb", "%s"),
    ),
}  # fmt: skip
FLAGS = ("--force", "--resume", "--quiet", "-q", "--no-plots", "--plots", "--no-cache", "--cache", "--no-fields")
FOLDERS = (
    ("run", "real", "done"),
    ("nowhere", "a-file", "empty", "mine", "notes", "no-json", "a-list", "no-keys", "bad-history", "bad-result"),
    ("theirs", "half", ".", "", "link", "mine/plots", "real/checkpoint", "run run"),
)  # fmt: skip


def line(chance: random.Random) -> Line:
    """One line."""
    command = chance.choices((*COMMANDS, "junk"), (50, 8, 8, 3, 8, 4, 4, 3, 1, 4))[0]
    if command == "junk":
        return junk(chance)
    pieces = COMMANDS[command](chance)
    words = [command, *(word for piece in pieces for word in piece.words)]
    good = together(words, [piece.good for piece in pieces])
    if chance.random() < 0.05:  # mishaps of typing
        words, good = mishap(chance, words), None
    return Line(tuple(words), good)


def together(words: list[str], verdicts: list[bool | None]) -> bool | None:
    """What the pieces say, and what they say of each other."""
    if False in verdicts:
        return False
    clash = sum(word in ("--resume", "--force", "--seed", "--seeds", "--preset", "--help") for word in words) > 1
    settled = "published" in words and not {*optimizers.ONE_RECIPE}.isdisjoint(words)
    return None if None in verdicts or clash or settled or "--resume" in words else True


def training(chance: random.Random, more: Sequence[str] = (), most: int = 3) -> list[Piece]:
    """A problem, sizes that train in a moment, and some pieces."""
    problem = chance.choice(["poisson3d"] * 5 + list(zoo.names()))
    optimizer = chance.choice(optimizers.NAMES)
    pieces = [Piece((problem,), True), Piece(("--steps", "1"), True)]
    pieces += [Piece(("--set", f"{name}={TINY[name]}"), True) for name in zoo.get(problem).options if name in TINY]
    if "--optimizer" in more:
        pieces.append(Piece(("--optimizer", optimizer), optimizer not in unsuited(problem)))
    if chance.random() < 0.04:
        wrong = chance.choice(
            ("", "poison3d", "POISSON3D", "registry", "_reference", "../poisson3d", "poisson3d ", "0")
        )
        pieces[0] = Piece((wrong,), False)
        problem = "poisson3d"
    for _ in range(chance.randint(0, most)):
        kind = chance.random()
        if kind < 0.5:
            piece = setting(chance, problem, optimizer if "--optimizer" in more else "auto")
            again = chance.random() < 0.1  # a key that is given twice
            pieces = [p for p in pieces if again or key(p) is None or key(p) != key(piece)] + [piece]
        elif kind < 0.85:
            name = chance.choice([name for name in more if name != "--optimizer"])
            piece = option(chance, name)  # of several the last counts
            pieces = [p for p in pieces if p.words[:1] == ("--set",) or named(p) != named(piece)] + [piece]
        else:
            pieces.append(Piece((chance.choice(FLAGS),), None))
    return pieces


def unsuited(problem: str) -> tuple[str, ...]:
    """The optimizers that have no step for a problem."""
    if "degree" in zoo.get(problem).options:  # finite elements: their metric couples the rows
        return ("kernel", "polish")
    return ("polish",) if problem in ENERGIES else ()


def named(piece: Piece) -> str:
    """The option of a piece."""
    return piece.words[0].partition("=")[0] if piece.words else ""


def key(piece: Piece) -> str | None:
    """What a `--set` sets, by its last name."""
    return piece.words[1].partition("=")[0].rpartition(".")[2] if piece.words[:1] == ("--set",) else None


def option(chance: random.Random, name: str) -> Piece:
    """An option with a value."""
    right, wrong, either = OPTIONS[name]
    good = chance.choice([True] * bool(right) + [False] * bool(wrong) + [None] * bool(either))
    value = chance.choice({True: right, False: wrong, None: either}[good])
    if chance.random() < 0.1:
        value, good = chance.choice(JUNK), None
    words = (f"{name}={value}",) if chance.random() < 0.2 else (name, value)
    return Piece(words, good)


def setting(chance: random.Random, problem: str, optimizer: str) -> Piece:
    """`--set key=value` with a key that exists, mostly."""
    known = zoo.get(problem).options
    if chance.random() < 0.1:
        text = chance.choice(("width", "=3", "width=", "wdth=8", "problem.=3", ".=1", "solver.=2", "=", "", "a=b=c",
                              "problem.gamma=8", "solver.width=8", "network.wdth=1", "solver=3", "problem=2",
                              "solver.direction.=3", "__class__=3", "options=3"))  # fmt: skip
        return Piece(("--set", text), False)
    if chance.random() < 0.4:
        name = chance.choice(sorted(known))
        where = chance.choice(("", "problem.", "network.")) + name
        value, good = of_problem(chance, name, known[name].annotation)
    else:
        paths = optimizers.options(optimizers.build(optimizer, "default", {}, 3))
        path = chance.choice(sorted(paths))
        name = path.rpartition(".")[2]
        where = chance.choice((f"solver.{path}", path, name))
        value, good = of_solver(chance, name, paths[path])
        if good and where == name:  # the name may be that of two options
            good = None
    return Piece(("--set", f"{where}={value}"), good)


def of_problem(chance: random.Random, name: str, kind: object) -> tuple[str, bool | None]:
    """A value for an option of a problem."""
    if kind is int:
        wrong = chance.random() < 0.7
        return (chance.choice((*WRONG_INTEGER, *HUGE)), False) if wrong else (chance.choice(("0", "1", "2")), None)
    if kind is float:
        wrong = chance.random() < 0.4
        return (chance.choice(WRONG_NUMBER), False) if wrong else (chance.choice(ODD_NUMBER), None)
    return chance.choice((*JUNK, "h1", "newton", "gauss", "sobol")), None


def of_solver(chance: random.Random, name: str, value: object) -> tuple[str, bool | None]:
    """A value for an option of a solver."""
    if name in REFUSED and chance.random() < 0.6:
        return chance.choice(REFUSED[name]), False
    if isinstance(value, bool):
        return chance.choice((("true", True), ("no", True), ("2", False), ("maybe", False)))
    if isinstance(value, int | float):
        wrong = chance.random() < 0.3
        return (chance.choice(WRONG_NUMBER), False) if wrong else (chance.choice((*ODD_NUMBER, "1", "2", "5")), None)
    return chance.choice(JUNK), None


def runs(chance: random.Random) -> list[Piece]:
    """Folders of runs."""
    good = chance.choice((True, True, False, None))
    names = {True: FOLDERS[0], False: FOLDERS[1], None: FOLDERS[2]}[good]
    pieces = [Piece((chance.choice(names),), good)]
    if chance.random() < 0.3:
        pieces.append(Piece((chance.choice(FOLDERS[0]),), True))
    return pieces


RUN = ("--optimizer", "--preset", "--recipe", "--steps", "--seed", "--seeds", "--target-error", "--time-limit",
       "--evaluate-every", "--devices", "--memory", "--coordinator", "--process-id", "--num-processes", "--out",
       "--out", "--out")  # fmt: skip


def _run(chance: random.Random) -> list[Piece]:
    return training(chance, RUN)


def _compare(chance: random.Random) -> list[Piece]:
    return [*training(chance, ("--seeds", "--preset", "--recipe", "--out"), 1), option(chance, "--optimizers")]


def _sweep(chance: random.Random) -> list[Piece]:
    key, values, good = chance.choice((
        ("gamma", "1,2", True), ("gamma", "0.5", True), ("gamma", "1,,2", False), ("gamma", "big", False),
        ("gama", "1", False), ("", "1", False), ("gamma", "", False), ("gamma", "1,1", False),
        ("max_rank", "2,3", True),
        ("a=b", "1", False), ("problem.width", "2,3", None), ("width", "0", False), ("search", "GridSearch", None),
        ("gamma", "1,-1", False), ("problem.interior", "9,1e12", None), ("maxiter", "1.0,1", None),
    ))  # fmt: skip
    return [*training(chance, ("--seeds", "--preset", "--recipe", "--out"), 1),
            Piece(("--optimizer", "nystrom", "--param", key, "--values", values), good)]  # fmt: skip


def _spectrum(chance: random.Random) -> list[Piece]:
    return [*training(chance, ("--optimizer", "--at", "--at", "--out", "--preset", "--recipe"), 2)]


def _table(chance: random.Random) -> list[Piece]:
    pieces = runs(chance)
    if chance.random() < 0.5:
        pieces.append(option(chance, "--format"))
    if chance.random() < 0.4:
        output = chance.choice(
            (("t.md", True), ("empty", False), ("no/where.md", False), ("", None), ("a" * 300, False))
        )
        pieces.append(Piece(("-o", output[0]), output[1]))
    return pieces


def _plot(chance: random.Random) -> list[Piece]:
    out = chance.choice((("pictures", True), ("a-file", False), ("empty", True), ("a-file/x", False), ("mine", None)))
    fields = () if chance.random() < 0.2 else ("--no-fields",)
    return [*runs(chance), Piece(("--out", out[0]), out[1]), Piece(fields, True if fields else None)]


def _report(chance: random.Random) -> list[Piece]:
    out = chance.choice((("page.html", True), ("empty", False), ("no/where.html", False), ("a-file/x", False)))
    fields = () if chance.random() < 0.2 else ("--no-fields",)
    return [*runs(chance), Piece(("-o", out[0]), out[1]), Piece(fields, True if fields else None)]


def _export(chance: random.Random) -> list[Piece]:
    out = chance.choice((
        ("u.npz", True), ("u.csv", True), ("u.pvd", False), ("u.txt", False), ("empty", False), ("a-file", False),
        ("no/where.npz", False), ("a" * 300 + ".npz", False), ("", False),
    ))  # fmt: skip
    how = chance.choice((
        (("--resolution", "2"), True), (("--resolution", "0"), False), (("--resolution", "9" * 400), False),
        (("--resolution", chance.choice(WRONG_INTEGER)), False), (("--times", "3"), False), (("--times", "x"), False),
        (("--mesh", "none.msh"), False), (("--mesh", "a-file"), False), (("--force", "--resolution", "1"), True),
    ))  # fmt: skip
    return [Piece(("real",), True), Piece(("-o", out[0]), out[1] if "--force" not in how[0] else None), Piece(*how)]


def _list(chance: random.Random) -> list[Piece]:
    words = ((), True), (("poisson3d",), True), (("poisson",), False), (("--steps", "3"), False)
    return [Piece(*chance.choice(words))]


COMMANDS: dict[str, Callable[[random.Random], list[Piece]]] = {
    "run": _run, "compare": _compare, "sweep": _sweep, "spectrum": _spectrum, "table": _table, "plot": _plot,
    "report": _report, "export": _export, "list": _list,
}  # fmt: skip


def junk(chance: random.Random) -> Line:
    """Words that no grammar has."""
    words = [chance.choice((*JUNK, *FLAGS, *COMMANDS, "--version", "--help")) for _ in range(chance.randint(0, 4))]
    return Line(tuple(words), None)


def mishap(chance: random.Random, words: list[str]) -> list[str]:
    """A word is lost, doubled, cut short, or two change places."""
    words = list(words)
    i = chance.randrange(len(words))
    kind = chance.randrange(4)
    if kind == 0:
        del words[i]
    elif kind == 1:
        words.insert(i, words[i])
    elif kind == 2:
        words[i] = words[i][: len(words[i]) // 2]
    else:
        j = chance.randrange(len(words))
        words[i], words[j] = words[j], words[i]
    return words
