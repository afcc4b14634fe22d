"""config.json and result.json read back: a file that was damaged or edited is told in one line, and never trusted.

A config.json holds the fingerprint of all that shapes the run, so that an edit is noticed. Every checkpoint has a copy
of it, which a run goes on by where the file is lost.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from natgrad.experiment import checkpoint
from natgrad.experiment.config import FORMAT, fingerprint
from natgrad.experiment.journal import matches
from natgrad.storage.files import read_json

NUMBER = (int, float)
NEEDED: dict[str, Any] = {
    "problem": str, "optimizer": str, "recipe": str, "preset": str, "seed": int, "steps": int, "evaluate_every": int,
    "options": dict, "set": list, "fingerprint": str,
}  # fmt: skip
NEEDED_MORE: dict[str, Any] = {
    "plan": dict,
    "target_error": (*NUMBER, NoneType), "time_limit": (*NUMBER, NoneType), "dtype": str, "norm": str, "devices": int,
    "processes": int, "together": int, "windows": (int, str, list), "via": dict, "memory": (str, NoneType),
    "command": list, "versions": dict,
}  # fmt: skip
RESULT: dict[str, Any] = {
    "status": str, "steps": int, "time": NUMBER, "loss": (*NUMBER, NoneType), "errors": dict, "parameters": int,
    "device": str, "dtype": str,
}  # fmt: skip
RESULT_MORE: dict[str, Any] = {"diagnosis": list, "plateau": dict, "compile_time": NUMBER, "weights": dict}


def config_of(folder: Path) -> dict[str, Any]:
    """The config.json of a run folder; ValueError where it is not one, in one line."""
    path = Path(folder) / "config.json"
    return check(read_json(path), path, NEEDED, NEEDED_MORE)


def result_of(folder: Path) -> dict[str, Any]:
    """The result.json of a run folder, {} where the run has none yet."""
    path = Path(folder) / "result.json"
    return check(read_json(path), path, RESULT, RESULT_MORE) if path.exists() else {}


def check(record: dict[str, Any], path: Path, needed: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The record itself, if it has what it needs, and all of its kind."""
    if record.get("format", FORMAT) != FORMAT:
        raise ValueError(f"{path} is of format {record['format']!r}, this natgrad reads format {FORMAT}")
    if missing := sorted(set(needed) - set(record)):
        raise ValueError(f"{path} is not a run's: it lacks {', '.join(missing)}")
    for name, kind in {**needed, **more}.items():
        if name in record and (not isinstance(record[name], kind) or (isinstance(record[name], bool))):
            raise ValueError(f"{path} is not a run's: {name} is {record[name]!r}")
    if "options" in record and not all(isinstance(record["options"].get(k), dict) for k in ("problem", "solver")):
        raise ValueError(f"{path} is not a run's: its options lack those of the problem or of the solver")
    for name in ("set", "command", "diagnosis"):
        if not all(isinstance(word, str) for word in record.get(name, [])):
            raise ValueError(f"{path} is not a run's: {name} is {record[name]!r}")
    if not all(value is None or isinstance(value, NUMBER) for value in record.get("errors", {}).values()):
        raise ValueError(f"{path} is not a run's: errors is {record['errors']!r}")
    return record


def recover(folder: Path, warn: Callable[[str], None]) -> dict[str, Any]:
    """The config of a run to go on with: config.json, or the copy in a checkpoint where that is lost or was changed."""
    known, wrong = None, "config.json is another run's"
    try:
        known = config_of(folder)
        if fingerprint(known) != known["fingerprint"]:
            known, wrong = None, f"{folder / 'config.json'} was changed: its fingerprint is not that of its content"
    except ValueError as error:
        wrong = str(error)
    for path, header in readable(folder):
        if "config" in header and matches(folder / "history.jsonl", header["history"]):
            if known is not None and known["fingerprint"] == header["fingerprint"]:
                break
            warn(f"{wrong}; the copy in {path.name} takes its place")
            return check(header["config"], path, NEEDED, NEEDED_MORE)
    if known is None:
        raise ValueError(f"{wrong}, and no checkpoint has a copy: choose another --out")
    return known


def proven(folder: Path) -> list[str]:
    """The files of a run whose marker is lost, as far as its checkpoints prove that they are natgrad's."""
    names: set[str] = set()
    for path, header in readable(folder):
        names.add(f"{checkpoint.HOME}/{path.name}")
        if matches(folder / "history.jsonl", header["history"]):
            names.add("history.jsonl")
        for name in ("config.json", "result.json"):
            try:
                if read_json(folder / name).get("fingerprint") == header["fingerprint"]:
                    names.add(name)
            except ValueError:
                continue
    return sorted(names)


def readable(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """The checkpoints of a folder that are whole, with their headers, the latest first."""
    found = []
    for path in checkpoint.files(folder / checkpoint.HOME):
        try:
            found.append((path, checkpoint.read(path)[0]))
        except ValueError:
            continue
    return found
