"""Runs that train for moments, and what two of them must have in common."""

import json

from natgrad.experiment import checkpoint
from natgrad.experiment.config import Config

SETTINGS = ("width=4", "depth=1", "interior=30", "boundary=12")
NYSTROM = ("levels=1", "max_rank=12")


def config(optimizer="ngd-full", steps=12, seed=0, more=(), **options):
    extra = NYSTROM if optimizer.startswith("nystrom") else ()
    return Config("poisson3d", optimizer, steps=steps, seed=seed, settings=(*SETTINGS, *extra, *more), **options)


def history(folder):
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def timeless(folder):
    """The history but for its clock."""
    return [{key: value for key, value in record.items() if key != "time"} for record in history(folder)]


def last_tree(folder):
    """The bytes of the last checkpoint's arrays: parameters and state."""
    _, payload = checkpoint.read(checkpoint.files(folder / "checkpoint")[0])
    return payload


def assert_same_run(one, other):
    """Bit for bit, the clock aside."""
    assert timeless(one) == timeless(other)
    assert last_tree(one) == last_tree(other)
    times = [record["time"] for record in history(other)]
    assert times == sorted(times)
    results = [json.loads((folder / "result.json").read_text()) for folder in (one, other)]
    for name in ("status", "steps", "loss", "errors"):
        assert results[0][name] == results[1][name]
