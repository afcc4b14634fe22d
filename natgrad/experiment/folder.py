"""A folder that natgrad made, and which of its files are natgrad's: the marker natgrad.json says both.

    {"natgrad": "0.1.0", "format": 1, "kind": "run", "files": ["config.json", "history.jsonl", …]}

natgrad writes into a folder that has its marker, or that was empty. It overwrites and removes the files in the marker's
list, and nothing else. A name enters the list before its file is written, so that no crash leaves a file of natgrad's
which the list does not have; a name that is taken by a file outside the list is refused.

    with held(path, "run") as folder:      # locked first, then looked at
        folder.claim("config.json")
        folder.write("config.json", text)
"""

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from natgrad import __version__
from natgrad.storage.files import read_json, write, write_json

MARKER = "natgrad.json"
LOCK = ".natgrad.lock"
FORMAT = 1
KINDS = {"run": "a run", "series": "a comparison or a sweep", "spectrum": "spectra", "pictures": "pictures"}


class Folder:
    """A folder of natgrad's of some kind, or an empty one that becomes one by its first `claim`."""

    def __init__(self, path: Path, kind: str, files: Iterable[str] = (), *, marked: bool = False):
        self.path, self.kind, self.files, self.marked = Path(path), kind, set(files), marked

    @classmethod
    def open(cls, path: Path, kind: str, proven: Callable[[Path], list[str]] | None = None) -> "Folder":
        """What is there, or an empty one; ValueError where natgrad did not make it, or made it for something else.

        `proven` finds the files that are natgrad's by themselves, where the marker is lost.
        """
        path = Path(path)
        if not path.is_dir():
            if path.exists() or path.is_symlink():
                raise ValueError(f"{path} is a file: --out takes the name of a folder")
            return cls(path, kind)
        entries = [entry for entry in path.iterdir() if not _passing(entry.name)]
        if kind == "series":  # the runs of a series may lie in its folder
            entries = [entry for entry in entries if not _of_natgrad(entry)]
        try:
            if path / MARKER in entries:
                return cls(path, kind, _listed(path / MARKER, kind), marked=True)
            if entries:
                raise ValueError(f"{path} has other things in it, and natgrad did not make it: choose another --out")
        except ValueError:
            if proven is None or not (files := proven(path)):
                raise
            return cls(path, kind, files)
        return cls(path, kind)

    def has(self, name: str) -> bool:
        """Whether a file is there and natgrad's."""
        return name in self.files and (self.path / name).is_file()

    def check(self, names: Iterable[str]) -> None:
        """ValueError where natgrad must not write one of these files."""
        for name in names:
            path = self.path / name
            for above in path.relative_to(self.path).parents[:-1]:
                if (self.path / above).exists() and not (self.path / above).is_dir():
                    raise ValueError(f"{self.path / above} is a file, and natgrad needs a folder there: move it away")
            if path.is_dir():
                raise ValueError(f"{path} is a folder, and natgrad needs a file there: move it away")
            if path.is_symlink():
                raise ValueError(f"{path} is a link, and natgrad did not make it: move it away")
            if name not in self.files and path.exists():
                raise ValueError(f"{path} is there already, and natgrad did not make it: move it away")

    def claim(self, *names: str, instead_of: Iterable[str] = ()) -> None:
        """Lists files as natgrad's, before they are written; names of files that are gone may leave the list."""
        self.check(names)
        gone = {name for name in instead_of if name not in names and not (self.path / name).exists()}
        if self.marked and not gone and self.files >= set(names):
            return
        self.files = (self.files | set(names)) - gone
        self.path.mkdir(parents=True, exist_ok=True)
        marker = {"natgrad": __version__, "format": FORMAT, "kind": self.kind, "files": sorted(self.files)}
        write_json(self.path / MARKER, marker)
        self.marked = True

    def write(self, name: str, *data: bytes | memoryview | str) -> Path:
        """Writes a file, whole or not at all."""
        self.claim(name)
        (self.path / name).parent.mkdir(exist_ok=True)
        write(self.path / name, *data)
        return self.path / name

    def draw(self, make: Callable[[Path], Sequence[Path]]) -> list[Path]:
        """The files that `make` writes into an empty folder; none is put here where one of them must not be."""
        with TemporaryDirectory() as workshop:
            made = make(Path(workshop))
            self.claim(*(path.name for path in made))
            return [self.write(path.name, path.read_bytes()) for path in made]

    def remove(self, names: Iterable[str]) -> None:
        """Removes files of the list, and folders that are empty then; a folder in the place of a file is not ours."""
        for name in sorted(self.files & set(names)):
            path = self.path / name
            if path.is_dir():
                continue
            path.unlink(missing_ok=True)
            if path.parent != self.path:
                with suppress(OSError):
                    path.parent.rmdir()

    def tidy(self) -> None:
        """Removes what a crash left of files that were being written."""
        for path in (self.path / name for name in (MARKER, *self.files)):
            for part in path.parent.glob(f".{path.name}.*.part"):
                part.unlink(missing_ok=True)

    def dissolve(self) -> None:
        """Removes all of natgrad's in it, the marker last, and the folder where it is empty then."""
        self.remove(set(self.files))
        self.files = set()
        if self.marked:
            (self.path / MARKER).unlink(missing_ok=True)
            self.marked = False
        with suppress(OSError):
            self.path.rmdir()


@contextmanager
def held(path: Path, kind: str, proven: Callable[[Path], list[str]] | None = None) -> Iterator[Folder]:
    """A folder that no other process of natgrad writes meanwhile: locked first, then looked at.

    A folder that is made for it and left empty is removed.
    """
    path = Path(path)
    Folder.open(path, kind, proven)  # a stranger's folder is left without so much as a lock in it
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    lock = None
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = _lock(path)
        folder = Folder.open(path, kind, proven)
        folder.tidy()
        yield folder
    finally:
        if lock is not None:
            (path / LOCK).unlink(missing_ok=True)
            os.close(lock)
        for empty in made:
            with suppress(OSError):
                empty.rmdir()


def _lock(path: Path) -> int | None:
    """An open file that is locked as long as it is open; a process that is killed lets go of it."""
    try:
        import fcntl
    except ImportError:  # not on this system: nothing to lock with
        return None
    while True:
        path.mkdir(parents=True, exist_ok=True)  # another process may have removed it again
        try:
            file = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise ValueError(f"another process is writing into {path}: wait for it or choose --out") from None
        with suppress(OSError):
            if os.path.samestat(os.fstat(file), os.stat(path / LOCK)):
                os.truncate(file, 0)
                os.write(file, f"{socket.gethostname()} {os.getpid()}\n".encode())  # whoever looks on knows whose it is
                return file
        os.close(file)  # whoever held it has removed it since


def _passing(name: str) -> bool:
    """What comes and goes: the lock, and a marker that a crash left unfinished."""
    return name == LOCK or (name.startswith(f".{MARKER}.") and name.endswith(".part"))


def _of_natgrad(entry: Path) -> bool:
    """Whether it is a folder that natgrad made, or an empty one."""
    return entry.is_dir() and ((entry / MARKER).is_file() or all(_passing(inner.name) for inner in entry.iterdir()))


def _listed(marker: Path, kind: str) -> list[str]:
    """The files a marker lists, if it is one of this kind of folder and this format."""
    content = read_json(marker)
    files, found = content.get("files"), content.get("kind")
    if content.get("format") != FORMAT:
        raise ValueError(f"{marker} is of format {content.get('format')!r}, this natgrad reads format {FORMAT}")
    if found not in KINDS or not isinstance(files, list) or not all(isinstance(name, str) for name in files):
        raise ValueError(f"cannot read {marker}: it lacks the kind of the folder or the list of its files")
    if found != kind:
        raise ValueError(f"{marker.parent} holds {KINDS[found]}, not {KINDS[kind]}: choose another --out")
    for name in files:
        path = Path(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or len(path.parts) > 2:
            raise ValueError(f"cannot read {marker}: {name!r} is not a file of this folder")
    return files
