"""Where the files of runs come from: a folder and all below it, or an archive of one.

An archive is a `.tar.xz` of plain files, sorted, without clocks and owners: the same files always make the same bytes,
and `tar xf` unpacks them. What reads a folder of runs reads its archive as well.
"""

import gzip
import io
import lzma
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from natgrad.storage.files import write

SUFFIX = ".tar.xz"


def is_archive(path: Path) -> bool:
    return path.name.endswith(SUFFIX) and path.is_file()


def content(source: Path, *patterns: str) -> dict[Path, bytes]:
    """The files with names of the given patterns in a folder, in all below it, or in an archive, sorted by path.

    A file that was compressed (`gzip history.jsonl`) is read as if it had not been. The paths begin with the source.
    """
    wanted = [name for pattern in patterns for name in (pattern, f"{pattern}.gz")]
    if is_archive(source):
        found = {source / name: data for name, data in _members(source, wanted).items()}
    elif source.is_dir():
        paths = {path for name in wanted for path in source.rglob(name) if path.is_file()}
        found = {path: path.read_bytes() for path in paths}
    else:
        raise ValueError(f"there is no folder {source}, nor an archive ({SUFFIX}) of that name")
    return dict(sorted(_plain(path, data) for path, data in found.items()))


def _members(archive: Path, wanted: Sequence[str]) -> dict[str, bytes]:
    found = {}
    try:
        with tarfile.open(archive, "r:xz") as tar:
            for member in tar:
                file = tar.extractfile(member) if any(Path(member.name).match(name) for name in wanted) else None
                if file is not None:
                    found[member.name] = file.read()
    except (tarfile.TarError, lzma.LZMAError, EOFError):
        raise ValueError(f"cannot read {archive}: it is not a whole archive of runs") from None
    return found


def _plain(path: Path, data: bytes) -> tuple[Path, bytes]:
    if path.suffix != ".gz":
        return path, data
    try:
        return path.with_suffix(""), gzip.decompress(data)
    except (OSError, EOFError):
        raise ValueError(f"cannot read {path}: it is not a whole compressed file") from None


def pack(archive: Path, files: Mapping[str, bytes]) -> None:
    """Writes an archive of files by their names in it."""
    if not archive.name.endswith(SUFFIX):
        raise ValueError(f"{archive} is not the name of an archive: it must end with {SUFFIX}")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(name)  # no clock, no owner
            member.size = len(files[name])
            tar.addfile(member, io.BytesIO(files[name]))
    write(archive, lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME))
