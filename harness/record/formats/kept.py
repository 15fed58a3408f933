"""A cache of imported histories in the user's cache folder, so that a large file is imported once.

An entry is a folder with the Parquet files of a history and a manifest. Its name, which the manifest repeats, is a
digest of the content of the imported file, of its format and of our code that imports. It appears whole, by a rename.
It is used if its files are those that the manifest names, by their hashes; a damaged one is removed. The files are
linked or copied first, so that no other process can remove them meanwhile. A cache that cannot be read or written
counts as empty.

A history that does not record its own hash has an entry of another name: only imports that need no hash use it.
"""

import hashlib
import os
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

import harness.core
import harness.record
from harness.core.errors import HistoryError
from harness.record.documents import decoded, opened, read_plain
from harness.record.formats.parquet.parquet import hash_of, is_history
from harness.record.ownership import temporary_folder

ENTRIES_MAX: Final = 8  # The most entries,
BYTES_MAX: Final = 4 << 30  # and the most bytes of all: the least recently used entries are removed.
_MANIFEST: Final = "import.json"
_UNHASHED: Final = "-unhashed"  # Ends the name of an entry whose history does not record its hash.


class _Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of an entry: its name, the notes of the import, and the hash of each file by name."""

    key: str
    notes: tuple[str, ...]
    files: dict[str, str]


def key_of(path: Path, name: str) -> str | None:
    """The key of the import of that file, read in the format `name`; None if the file cannot be read."""
    try:
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        return hashlib.sha256(f"{content} {name} {_code()}".encode()).hexdigest()
    except OSError:
        return None


def found(key: str, history: Path, *, is_hashed: bool) -> tuple[str, ...] | None:
    """Put the files of that import into the folder `history`; returns the notes of the import.

    None if there is no whole entry; with `is_hashed`, also if the history does not record its hash.
    """
    names = [key] if is_hashed else [key, key + _UNHASHED]
    return next((notes for name in names if (notes := _entry(name, history)) is not None), None)


def _entry(name: str, history: Path) -> tuple[str, ...] | None:
    folder = place() / name
    with suppress(OSError, HistoryError, ValueError):
        manifest = decoded(read_plain(folder / _MANIFEST), _Manifest)
        if manifest.key == name and _size(folder) <= BYTES_MAX:
            history.mkdir(parents=True)
            for path in folder.glob("*.parquet"):
                _link(path, history / path.name)
            if is_history(history) and _hashes(history) == manifest.files:
                os.utime(folder)
                return manifest.notes
    for damaged in (folder, history):
        shutil.rmtree(damaged, ignore_errors=True)
    return None


def keep(key: str, history: Path, notes: tuple[str, ...]) -> None:
    """Store that imported history, and remove the least recently used ones. Has no effect if that is impossible."""
    entries = place()
    with suppress(OSError, HistoryError):
        entries.mkdir(mode=0o700, parents=True, exist_ok=True)
        with temporary_folder("import", beside=entries) as folder:
            name = key if hash_of(history) is not None else key + _UNHASHED
            entry = folder / name
            entry.mkdir()
            for path in history.iterdir():
                _link(path, entry / path.name)
            manifest = _Manifest(key=name, notes=notes, files=_hashes(entry))
            (entry / _MANIFEST).write_bytes(msgspec.json.encode(manifest))
            entry.rename(entries / name)
        _make_room(entries)


def place() -> Path:
    """The folder of all entries: ~/.cache/seamark/imports, or below XDG_CACHE_HOME."""
    above = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(above, "seamark", "imports")


def _make_room(entries: Path) -> None:
    """Remove the entries beyond the limits; one without a manifest counts as the oldest."""
    folders = [path for path in entries.iterdir() if not path.name.startswith(".")]  # Others are being written.
    total = 0
    for number, entry in enumerate(sorted(folders, key=_used_ns, reverse=True), 1):
        total += _size(entry)
        if number > ENTRIES_MAX or total > BYTES_MAX:
            shutil.rmtree(entry, ignore_errors=True)


def _used_ns(entry: Path) -> int:
    return entry.stat().st_mtime_ns if (entry / _MANIFEST).is_file() else 0


def _size(entry: Path) -> int:
    """The number of bytes in an entry."""
    return sum(path.lstat().st_size for path in entry.iterdir())


def _hashes(folder: Path) -> dict[str, str]:
    return {path.name: _hash_of(path) for path in folder.iterdir()}


def _hash_of(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def _code() -> str:
    """The digest of the code that decides the content of an imported history."""
    digest = hashlib.sha256(pa.__version__.encode())
    for package in (harness.core, harness.record):
        for path in sorted(Path(package.__file__ or "").parent.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _link(source: Path, target: Path) -> None:
    """Link the file, or copy it if it is on another disk. Raises HistoryError unless it is a plain file."""
    with opened(source):
        try:
            target.hardlink_to(source)
        except OSError:
            shutil.copyfile(source, target)
