"""What a run came to: result.json, and the same in a line."""

import os
import platform
from pathlib import Path
from typing import Any

import jax

from natgrad.experiment.checkpoint import Writer
from natgrad.experiment.config import Prepared
from natgrad.experiment.plateau import plateau
from natgrad.experiment.staged import STAGES, staged
from natgrad.solve import Solution
from natgrad.stopping import STOPPED


def summary(prepared: Prepared, solution: Solution, writer: Writer) -> dict[str, Any]:
    """result.json."""
    record, problem = prepared.record, prepared.problem
    history = solution.history
    errors = history.errors if len(history) else {}
    norm = record["norm"]
    where = plateau(history.step, history.time, errors[norm]) if norm in errors else plateau([], [], [])
    if staged(record):  # the history has the errors of each stage, the solution those of all, or of the last value
        where = {"step": solution.steps, "time": solution.time, "error": solution.errors.get(norm)}
    return {
        **{name: record[name] for name in ("problem", "optimizer", "recipe", "preset", "seed")},
        "status": solution.status,
        "steps": solution.steps,
        "parameters": problem.num_parameters,
        "rows": prepared.rows,
        "loss": solution.loss,
        "validation": solution.validation,
        "weights": {name: float(values[-1]) for name, values in history.weights.items()},
        "errors": solution.errors,
        "diagnosis": list(solution.diagnosis),
        "plateau": where,
        "norm": norm,
        "time": solution.time,
        "compile_time": solution.compile_time,
        "checkpoints": {"count": writer.count, "time": writer.spent},
        "plan": record["plan"],
        "device": device_name(),
        "devices": record["devices"],
        "processes": record["processes"],
        **{name: record[name] for name in ("together", *STAGES) if name in record},
        "dtype": record["dtype"],
        "versions": record["versions"],
        "command": record["command"],
        "fingerprint": record["fingerprint"],
    }


def device_name() -> str:
    """The default device in words; of a processor its model and the cores this process may use."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return f"{device.platform}: {device.device_kind}"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"cpu: {model}, {cores} {'core' if cores == 1 else 'cores'}"


def sentence(result: dict[str, Any]) -> str:
    """A result in a line."""
    if result["status"] in STOPPED and not result["steps"]:
        return f"{result['status']} before its first step"
    errors = "".join(f"  {name} {value:.2e}" for name, value in result["errors"].items())
    where = result["plateau"]
    plateau = f"  plateau {where['error']:.2e} at {where['time']:.1f} s" if where["error"] is not None else ""
    loss = "loss not finite" if result["loss"] is None else f"loss {result['loss']:.2e}"
    status = "finished" if result["status"] == "steps" else result["status"]
    steps = f"{result['steps']} {'step' if result['steps'] == 1 else 'steps'}"
    wrong = "".join(f"  ({sentence.partition(':')[0]})" for sentence in result.get("diagnosis", ()))
    return f"{status} after {steps}, {result['time']:.1f} s: {loss}{errors}{plateau}{wrong}"
