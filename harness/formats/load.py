"""From whatever a person points at to a history directory: one table of formats, and `load`.

A new format is a function from a path to records, and a row in FORMATS.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.core.errors import HistoryError, ScenarioError
from harness.core.record import Record
from harness.formats.exchange import read_edn_history
from harness.formats.jsonl import read_jsonl
from harness.formats.parquet import is_history, write_history
from harness.journal import MAGIC, read_journal
from harness.store import HISTORY, JOURNAL

_HEAD_BYTES: Final = 4096
_EDN: Final = re.compile(rb"\s*(?:;|[\[(]?\s*(?:;|\{\s*:|#))")
_JSON: Final = re.compile(rb'\s*\[?\s*\{\s*"')


@dataclass(frozen=True, slots=True)
class Format:
    """A format of histories: how its files begin and are called, and how they are read."""

    name: str
    begins: re.Pattern[bytes]
    suffixes: tuple[str, ...]
    read: Callable[[Path], Iterator[Record]]


FORMATS: Final = (
    Format("journal", re.compile(re.escape(MAGIC)), (".log",), read_journal),
    Format("JSON", _JSON, (".jsonl", ".json", ".ndjson"), read_jsonl),
    Format("EDN", _EDN, (".edn",), read_edn_history),
)


def load(path: Path, folder: Path) -> Path:
    """The history directory of `path`: a run in the store, a history directory or a file of one, a journal, EDN, JSON.

    A foreign file, and a journal outside of the store, becomes a history directory in `folder`, which is made. A run
    that left its journal only gets its history directory where the run is.
    Raises ScenarioError if there is nothing at `path`, HistoryError if it is damaged or nothing that Seamark reads.
    """
    if not path.exists():
        raise ScenarioError(f"{path}: there is no such file or directory")
    if path.is_dir():
        return _directory(path)
    if path.suffix == ".parquet":
        return _directory(path.parent)
    found = format_of(path)
    write_history(found.read(path), folder)
    return folder


def format_of(path: Path) -> Format:
    """The format of a file: by how it begins, else by its name. Raises HistoryError if it is none of ours."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
    for each in FORMATS:
        if each.begins.match(head):
            return each
    for each in FORMATS:
        if path.suffix in each.suffixes:
            return each
    known = ", ".join(each.name for each in FORMATS)
    raise HistoryError(f"{path}: neither its beginning nor its name is that of a history ({known}, Parquet)")


def _directory(path: Path) -> Path:
    for each in (path / HISTORY, path):
        if is_history(each):
            return each
    if (path / JOURNAL).is_file():
        write_history(read_journal(path / JOURNAL), path / HISTORY)
        return path / HISTORY
    raise HistoryError(f"{path}: holds no history: neither {JOURNAL} nor the Parquet files of one")
