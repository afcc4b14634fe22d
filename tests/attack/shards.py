"""A suite in processes of its own, some at a time: one that dies is a violation of the case it died in."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from tests.attack.counts import Counts, Outcome, count

ROOT = str(Path(__file__).parents[2])
MEMORY = 8 * 2**30  # bytes of addresses a process may have: what asks for more is not to take the machine down


def attack(suite: str, cases: int, processes: int = 2, patience: float = 7200.0) -> Counts:
    """All cases of a suite, and what they count."""
    ends = [cases * i // processes for i in range(processes + 1)]
    with ThreadPoolExecutor(processes) as pool:
        parts = pool.map(lambda ends: list(shard(suite, *ends, patience)), pairwise(ends))
        return count(suite, [outcome for part in parts for outcome in part])


def shard(suite: str, start: int, stop: int, patience: float) -> Iterator[Outcome]:
    """The cases from `start` to `stop`, in a process that is started again after the case it died in."""
    while start < stop:
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            words = command(suite, str(start), str(stop), "--file", file.name)
            code, err = ended(words, patience)
            found = [Outcome(**json.loads(line)) for line in Path(file.name).read_text().splitlines()]
        yield from found
        start += len(found)
        if start < stop:
            yield Outcome(f"{suite} {start}", "violation", f"the process died with {code}: {err}")
            start += 1


def ended(words: list[str], patience: float) -> tuple[object, str]:
    """How a process ended, and the last it said."""
    try:
        done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        return f"no end within {patience} s", ""
    return done.returncode, " | ".join(done.stderr.splitlines()[-3:])


def command(*words: str) -> list[str]:
    """How a process is started."""
    return [sys.executable, "-m", "tests.attack", *words]


def environment() -> dict[str, str]:
    """Of the processes: two devices, made of one processor, and little effort in compiling."""
    flags = "--xla_backend_optimization_level=0 --xla_force_host_platform_device_count=2"
    return {**os.environ, "PYTHONPATH": ROOT, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1"}


def run(suite: object, start: int, stop: int) -> Iterator[Outcome]:
    """The cases in this process."""
    for index in range(start, stop):
        yield suite.case(index)  # type: ignore[attr-defined]


def line(outcome: Outcome) -> str:
    """An outcome on its way to the process that counts."""
    return json.dumps(asdict(outcome)) + "\n"
