"""Run folders made by hand, so that tables, pictures and pages are tested without training."""

import json
from pathlib import Path

import numpy as np

from natgrad.experiment.config import fingerprint
from natgrad.experiment.folder import Folder

TINY = {"width": 8, "depth": 1, "interior": 60, "boundary": 30}


def made_up(
    folder: Path, optimizer="nystrom-gaussian", seed=0, problem="poisson3d", steps=100, rate=0.1, floor=1e-4,
    second=0.01, preset="small", recipe="default", status="steps", solver=None, every=5, gap=None, diagnosis=(),
    late=None, more=(), devices=1, memory=None, together=None,
):  # fmt: skip
    """A run whose error falls like exp(−rate k) to its floor, `second` seconds a step, and whose validation loss is
    `gap` times its loss; the folder. In its last quarter the error is `late`, and `more` was set by hand."""
    folder.mkdir(parents=True)
    natural = optimizer not in ("adam", "bfgs", "lbfgs", "ssbroyden")
    records = []
    for k in range(1, steps + 1):
        error = floor + np.exp(-rate * k)
        error = late if late and k > 0.75 * steps else error
        errors = {"h1": error, "l2": error / 3} if k % every == 0 else {}
        record = {"step": k, "time": second * k, "loss": error**2, "errors": errors, "step_size": 1.0}
        record["validation"] = gap * error**2 if gap and errors else None
        inner = {"mu": error**4, "rank": 10 + k // 10, "inner_iterations": 5 + k % 3, "inner_residual": 1e-9}
        records.append({**record, **(inner if natural else dict.fromkeys(inner))})
    config = {
        "problem": problem, "optimizer": optimizer, "recipe": recipe, "preset": preset, "seed": seed, "steps": steps,
        "evaluate_every": every, "target_error": None, "time_limit": None, "plan": {}, "dtype": "float64",
        "options": {"problem": TINY, "solver": {"damping.gamma": 10.0, **(solver or {})}},
        "set": [f"{key}={value}" for key, value in TINY.items()] + list(more),
        "command": ["natgrad", "run", problem, "--optimizer", optimizer, "--seed", str(seed)],
        "versions": {"natgrad": "0.1.0"}, "devices": devices, "memory": memory,
    }  # fmt: skip
    result = {
        **{name: config[name] for name in ("problem", "optimizer", "recipe", "preset", "seed", "dtype", "versions")},
        "status": status, "steps": steps, "parameters": 41, "loss": records[-1]["loss"], "time": records[-1]["time"],
        "errors": records[-1]["errors"], "compile_time": 1.0, "device": "cpu: none",
        "diagnosis": list(diagnosis),
    }  # fmt: skip
    config |= {} if together is None else {"together": together}
    config["fingerprint"] = fingerprint(config)
    Folder(folder, "run").claim("config.json", "result.json", "history.jsonl")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "result.json").write_text(json.dumps(result))
    (folder / "history.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder
