"""kill -9, for real: runs that are killed at random moments and resumed end like one that never was, bit for bit.

A case is a run of an optimizer, by one process or two, that is killed several times: before its first step, after a
random number of steps, or while a file of it is being written (by a process that writes slowly, see `slow_writes.py`).
"""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from natgrad.experiment.optimizers import NAMES
from tests.attack.counts import Outcome
from tests.experiment.small_runs import NYSTROM, SETTINGS, assert_same_run, history

PATIENCE = 300  # seconds for a process to get somewhere
FLAGS = "--xla_backend_optimization_level=0"
STEPS = {"adam": 2000, "bfgs": 600, "lbfgs": 600, "ssbroyden": 600}  # 300 of the others
ENDED = "natgrad: another process of this run has ended: start all of them again with --resume"


@dataclass(frozen=True)
class Plan:
    """Which run is killed how often."""

    optimizer: str
    processes: int
    kills: int


PLANS = (
    *(Plan(name, 1, 5) for name in NAMES),
    *(Plan(name, 2, 3) for name in ("ngd-full", "nystrom", "kernel", "adam")),
)


class Failure(Exception):
    """What was promised did not hold."""


class Suite:
    """Of runs that are killed."""

    def __init__(self, home: Path, seed: int = 0):
        self.home, self.seed = home, seed

    def case(self, index: int) -> Outcome:
        """One run, all its kills."""
        plan = PLANS[index]
        return survive(self.home / str(index), self.home / "cache", plan, random.Random(f"{self.seed}-{index}"))


def survive(home: Path, cache: Path, plan: Plan, chance: random.Random) -> Outcome:
    """A whole run, and one that is killed."""
    name = f"{plan.optimizer}, {plan.processes} process{'es' if plan.processes > 1 else ''}"
    attack, count = Attack(home, cache, plan), 0
    try:
        attack.finish("whole", resume=False)
        taken = len(history(home / "whole"))  # a run may end before its last step
        for _ in range(plan.kills):
            if (home / "run" / "result.json").exists():
                break
            attack.kill(chance, taken)
            count += 1
        attack.finish("run", resume=started(home / "run"))
        assert_same_run(home / "whole", home / "run")
    except (Failure, AssertionError, subprocess.TimeoutExpired) as error:
        return Outcome(name, "violation", f"after {count} kills: {error!s:.300}", max(count, 1))
    return Outcome(name, "worked", tried=count)


class Attack:
    """The processes of one case."""

    def __init__(self, home: Path, cache: Path, plan: Plan):
        self.home, self.plan = home, plan
        self.environment = {**os.environ, "XLA_FLAGS": FLAGS, "JAX_PLATFORMS": "cpu", "NATGRAD_CACHE": str(cache)}
        home.mkdir(parents=True)

    def start(self, folder: str, resume: bool, slow: bool = False) -> list[subprocess.Popen]:
        """The processes of a run."""
        plan = self.plan
        settings = (*SETTINGS, *(NYSTROM if plan.optimizer.startswith("nystrom") else ()))
        module = "tests.attack.slow_writes" if slow else "natgrad"
        words = [sys.executable, "-m", module, "run", "poisson3d", "--optimizer", plan.optimizer]
        words += ["--steps", str(STEPS.get(plan.optimizer, 300)), "--out", str(self.home / folder)]
        words += [word for setting in settings for word in ("--set", setting)]
        words += ["--quiet", "--no-plots", *(["--resume"] if resume else [])]
        where = ["--coordinator", f"127.0.0.1:{free_port()}", "--num-processes", str(plan.processes)]
        several = [[*where, "--process-id", str(i)] for i in range(plan.processes)] if plan.processes > 1 else [[]]
        return [
            subprocess.Popen([*words, *more], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for more in several
        ]

    def finish(self, folder: str, resume: bool) -> None:
        """A run up to its end."""
        processes = self.start(folder, resume)
        for process in processes:
            _, errors = process.communicate(timeout=PATIENCE)
            if process.returncode not in (0, 1) or b"Traceback" in errors:
                raise Failure(f"it ended with {process.returncode}: {errors.decode()[-300:]}")

    def kill(self, chance: random.Random, steps: int) -> None:
        """Starts a run, or goes on with it, and kills it; of several processes one or all."""
        folder, slow = self.home / "run", chance.random() < 0.4
        before = lines(folder)
        goal = 0 if chance.random() < 0.15 else before + chance.randrange(1, max(2, (steps - before) // 2))
        if slow:
            goal = before + chance.randrange(1, 20)
        delay = chance.uniform(0, 0.02) if goal else chance.uniform(0, 6)
        processes = self.start("run", started(folder), slow)
        victims = processes if chance.random() < 0.3 else [chance.choice(processes)]
        since = time.monotonic()
        while any(p.poll() is None for p in processes) and time.monotonic() - since < PATIENCE:
            if lines(folder) >= goal and (not slow or writing(folder)):
                break
            time.sleep(0.001)
        time.sleep(0 if slow else delay)
        for victim in victims:
            victim.send_signal(signal.SIGKILL)
        for process in processes:
            check(process, process in victims)


def check(process: subprocess.Popen, killed: bool) -> None:
    """What a process says at its end: nothing where it was killed, a line where another one was."""
    try:
        _, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    said = [line for line in errors.decode().splitlines() if line.startswith("natgrad:")]
    if b"Traceback" in errors:
        raise Failure(f"a traceback: {errors.decode()[-300:]}")
    if not killed and process.returncode not in (0, -signal.SIGABRT) and said[-1:] != [ENDED]:
        raise Failure(f"the other process ended with {process.returncode}: {errors.decode()[-300:]}")


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def lines(folder: Path) -> int:
    """How many steps the history has."""
    try:
        return (folder / "history.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def writing(folder: Path) -> bool:
    """Whether a file is being written."""
    return any(folder.glob(".*.part")) or any(folder.glob("checkpoint/.*.part"))


def started(folder: Path) -> bool:
    """Whether there is a run to go on with."""
    return (folder / "config.json").exists()
