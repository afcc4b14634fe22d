"""Many cases of a benchmark, one process each, some at a time; what is done is kept, and not done again."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from natgrad.storage.files import write_json

Case = dict[str, Any]


def in_process(module: str, case: Case, surroundings: Mapping[str, str]) -> Case:
    """What `python -m module --case CASE` prints in its last line; a case that fails says why in `status`."""
    command = [sys.executable, "-m", module, "--case", json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **surroundings})
    if done.returncode:
        return {**case, "status": "failed: " + (done.stderr.strip().splitlines() or ["?"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_all(
    module: str, cases: Sequence[Case], jobs: int, out: Path | None, surroundings: Mapping[str, str]
) -> list[Case]:
    """The results of all cases in their order; those in `out` already, with an `error`, are taken from there."""
    known = json.loads(out.read_text()) if out is not None and out.exists() else []
    same = lambda case, result: "error" in result and all(result.get(key) == value for key, value in case.items())
    found = {json.dumps(case): next((r for r in known if same(case, r)), None) for case in cases}
    left = [case for case in cases if found[json.dumps(case)] is None]
    with ThreadPoolExecutor(jobs) as pool:
        for case, result in zip(left, pool.map(lambda case: in_process(module, case, surroundings), left), strict=True):
            found[json.dumps(case)] = result
            known.append(result)
            print(json.dumps(result), file=sys.stderr, flush=True)
            if out is not None:
                write_json(out, known)
    return [result for result in found.values() if result is not None]
