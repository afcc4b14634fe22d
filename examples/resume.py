"""Stop and go on: in one process by `ng.solve(resume=…)`, from one process to the next by a run folder.

    python examples/resume.py --out out/resume                  # called again, it goes on where it was
    natgrad run nonlinear_poisson --steps 40 --resume --out …    # the same from the command line

A run that goes on is the run that never stopped, bit for bit: the state holds the damping, the preconditioner and the
randomness.
"""

import argparse
import json
from pathlib import Path

import jax
import numpy as np

import natgrad as ng
from natgrad import zoo
from natgrad.experiment.config import Config
from natgrad.experiment.run import run

jax.config.update("jax_enable_x64", True)
PROBLEM, WIDTH = "nonlinear_poisson", 12


def in_one_process(steps: int) -> None:
    problem = zoo.get(PROBLEM).problem(jax.random.key(0), width=WIDTH)
    solver = ng.NystromNGD(max_rank=100)
    first = ng.solve(problem, solver, steps, progress=False)
    longer = ng.solve(problem, solver, steps, resume=first, progress=False)
    whole = ng.solve(problem, solver, 2 * steps, progress=False)
    same = np.array_equal(longer.history.loss, whole.history.loss)
    print(f"{steps} + {steps} steps and {2 * steps} steps: the losses are {'the same' if same else 'different'}")
    assert same


def in_a_folder(steps: int, folder: Path) -> int:
    there = (folder / "config.json").exists()
    done = json.loads((folder / "result.json").read_text())["steps"] if (folder / "result.json").exists() else 0
    config = Config(PROBLEM, steps=done + steps, settings=(f"width={WIDTH}",))
    result = run(config, folder, resume=there, quiet=True)
    print(f"{folder}: {result['steps']} steps, relative H¹ error {result['errors']['h1']:.2e}")
    return result["steps"]


def main(steps: int, folder: Path) -> None:
    in_one_process(steps)
    assert in_a_folder(steps, folder) + steps == in_a_folder(steps, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("out/resume"))
    options = parser.parse_args()
    main(options.steps, options.out)
