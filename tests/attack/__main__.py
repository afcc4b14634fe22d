"""`python -m tests.attack SUITE START STOP [--file F]`: some cases of a suite, in this process."""

import argparse
import contextlib
import os
import resource
import sys
import tempfile
from pathlib import Path

from tests.attack import shards

SUITES = ("kills", "damages", "lines", "misuse")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("start", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--file", default=os.devnull, help="where the outcomes go, a line each")
    asked = parser.parse_args()
    os.environ |= shards.environment()  # before JAX is imported
    resource.setrlimit(resource.RLIMIT_AS, (shards.MEMORY, shards.MEMORY))
    module = __import__(f"tests.attack.{asked.suite}", fromlist=["Suite"])
    with tempfile.TemporaryDirectory() as home, open(asked.file, "a") as file, contextlib.redirect_stdout(sys.stderr):
        for outcome in shards.run(module.Suite(Path(home)), asked.start, asked.stop):
            file.write(shards.line(outcome))
            file.flush()
            if asked.file == os.devnull:
                print(f"{outcome.verdict:9} {outcome.case}: {outcome.detail}", file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    main()
