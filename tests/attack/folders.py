"""What is in folders, before and after: nothing of anybody else's may change."""

import hashlib
import os
from pathlib import Path


def contents(folder: Path) -> dict[str, str]:
    """{path below the folder: what is there}: of files the checksum, of links where they point."""
    found = {}
    for home, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(home) / name
            found[str(path.relative_to(folder))] = _look(path)
    return found


def _look(path: Path) -> str:
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    return "folder" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()


def strangers(folder: Path, names: tuple[str, ...]) -> None:
    """Files of somebody else's, whatever they are called."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"the only copy of {name}\n")


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What was there and has gone, or is another one now."""
    return [name for name, value in before.items() if after.get(name) != value]
