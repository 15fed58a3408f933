"""Converts the file or folder at a path to a history folder: the only module that knows all formats.

A further format is a row in FORMATS: how its files begin, their suffixes, and a reader that returns records.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from checkers.columns.sessions import in_file_order, write_sessions
from harness.core.errors import HistoryError, ScenarioError, SeamarkError
from harness.core.record import Fault, Footer, Record
from harness.record.formats import kept
from harness.record.formats.edn.exchange import read_edn_history
from harness.record.formats.edn.jepsen_log import read_history_txt, read_jepsen_log
from harness.record.formats.edn.notation import NOTATIONS, NotationName
from harness.record.formats.edn.results import note_of_results
from harness.record.formats.edn.times import Times
from harness.record.formats.edn.whole import NotInParts, write_in_parts
from harness.record.formats.jsonl import read_jsonl
from harness.record.formats.packed import is_packed, unpack
from harness.record.formats.parquet.parquet import footer_of, is_history, write_history
from harness.record.formats.parquet.validation import validate
from harness.record.formats.sessions import OVERLAPPING
from harness.record.formats.spread import ProcessEnded, in_turn, spread
from harness.record.journal import MAGIC, read_journal
from harness.record.store import HISTORY, JOURNAL, RUN_FILE, is_run, one_writer, require_plain

KEPT_BYTES: Final = 4 << 20  # A smaller file is imported about as fast as what was kept of it is verified.
SPREAD_BYTES: Final = 64 << 20  # A smaller file is read sooner than further processes start.
_HEAD_BYTES: Final = 4096
_EDN: Final = re.compile(rb"(?:\xef\xbb\xbf)?[\s,]*+(?:;|[\[(]?[\s,]*+(?:;|\{\s*+[:}]|#[A-Za-z_{:]))")
_JSON: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*+\[?\s*+\{\s*+["}]')
_JEPSEN_LOG: Final = re.compile(rb"(?s).*?jepsen\.util[: -]+\S+\s+:")
_HISTORY_TXT: Final = re.compile(rb"\s*+\S+\s+:(?:invoke|ok|fail|info)\s+:\S+\s")
_STORED: Final = ("history.edn", "history.txt", "jepsen.log")  # In a folder of Jepsen's store, the best first.
_OF_STORE: Final = ("results.edn", "test.jepsen", "test.fressian", "jepsen.log")
# A field that only our records have: a time in nanoseconds, or the type of a header.
_OUR_JSON: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*+\{[^\n]*"(?:time_ns"\s*+:|type"\s*+:\s*+"header")')
# The documents about runs that Seamark writes beside runs, and how they begin: no line of a history is a brace alone.
_DOCUMENTS: Final = frozenset(
    {"report.json", "order.json", "rows.jsonl", "sweep.json", "hunt.json", "calibration.json", "rows.parquet"}
)
_DOCUMENT: Final = re.compile(rb'\{\n "|\{"chain":"[0-9a-f]{64}"')
_PACKED: Final = MappingProxyType(
    {
        b"PK\x03\x04": ("zip", "unzip"),
        b"\xfd7zXZ\x00": ("xz", "unxz"),
        b"BZh": ("bzip2", "bunzip2"),
    }
)  # How compressed files begin, their format, and the command that reads them.


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A history that checkers can read.

    `history` is the folder of its Parquet files. `is_foreign`: it was not recorded by Seamark. `is_complete`: its
    recording completed; a foreign history has no record of that, and counts as complete.
    """

    history: Path
    format: str
    is_foreign: bool
    is_complete: bool = True
    notes: tuple[str, ...] = ()
    source: str = "the history"  # Its name in sentences.


class Format(NamedTuple):
    """A file format.

    A file has it if its beginning matches, or, if no format's beginning matches, if its suffix does.
    """

    name: str
    is_foreign: bool
    begins: re.Pattern[bytes]
    suffixes: tuple[str, ...]
    read: Callable[[Path], Iterator[Record]]


FORMATS: Final = (
    Format("journal", False, re.compile(re.escape(MAGIC)), (), read_journal),
    Format("JSON Lines", False, _OUR_JSON, (), read_jsonl),
    Format("JSON", True, _JSON, (".json", ".jsonl", ".ndjson"), read_jsonl),
    Format("EDN", True, _EDN, (".edn",), read_edn_history),
    Format("Jepsen log", True, _JEPSEN_LOG, (), read_jepsen_log),
    Format("Jepsen history.txt", True, _HISTORY_TXT, (), read_history_txt),
)


class UnknownFormat(ScenarioError):
    """The file is no history in a known format. A history that is damaged is a HistoryError."""


# The formats whose maps have times of their recorder's own.
_TIMED: Final[Mapping[str, Callable[[Path, Times], Iterator[Record]]]] = MappingProxyType(
    {"JSON": read_jsonl, "EDN": read_edn_history}
)


def load(path: Path, into: Path, *, is_hashed: bool = True) -> Loaded:
    """The history that `path` names: a run, a history folder or one of its files, or a file in one of FORMATS.

    Anything else than a folder of Parquet files is converted to one: a run's, inside the run; any other, inside
    `into`. A large file is imported once, and of EDN and JSON by several processes, with the same result. Without
    `is_hashed`, a history from elsewhere may lack its hash, which saves a sixth of an import.
    Raises ScenarioError if `path` does not exist; HistoryError, with file and record, if the content is malformed.
    """
    require_present(path)
    if path.is_dir():
        stored = stored_in(path)
        return _folder(path, into) if stored is None else _stored(stored, into, is_hashed=is_hashed)
    require_file(path)
    if is_packed(path):
        return _unpacked(path, into, is_hashed=is_hashed)
    if path.suffix == ".parquet" and not is_history(path.parent):
        raise (UnknownFormat if path.name in _DOCUMENTS else HistoryError)(
            f"{path}: not a file of a history (ops.parquet, events.parquet, ...); name the folder that holds one"
        )
    if path.name == RUN_FILE or path.suffix == ".parquet":
        return _folder(path.parent, into)
    found = format_of(path)
    import_it = _kept if path.stat().st_size >= KEPT_BYTES else _imported
    return import_it(path, into / HISTORY, found, is_hashed=is_hashed)


def require_present(path: Path) -> None:
    """Raise ScenarioError if nothing is there, or it cannot be found out."""
    try:
        is_present = path.exists()
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read ({error.strerror})") from None
    if not is_present:
        raise ScenarioError(f"{path}: there is no such file or folder; seamark list shows the runs in the store")


def require_file(path: Path) -> None:
    """Raise HistoryError unless that is a plain file: a pipe can be read only once, and a history is read twice."""
    if not path.is_file():
        raise HistoryError(f"{path}: is a pipe or a device: write the history into a file, and give that")


def format_of(path: Path) -> Format:
    """The format of a file: by its beginning, else by its suffix.

    Raises UnknownFormat if none matches, ScenarioError if the file is compressed, HistoryError if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
    packed = next((found for begin, found in _PACKED.items() if head.startswith(begin)), None)
    if packed is not None:
        name, command = packed
        raise ScenarioError(f"{path}: is {name}-compressed: run {shlex.join((command, str(path)))} first")
    if path.name in _DOCUMENTS and _DOCUMENT.match(head):
        raise UnknownFormat(f"{path}: is what Seamark wrote about runs, and holds no history; seamark list shows runs")
    found = [each for each in FORMATS if each.begins.match(head)]
    found += [
        each for each in FORMATS if path.suffix in each.suffixes or (each.name, path.name) == ("journal", JOURNAL)
    ]
    if not found and not head:
        raise HistoryError(f"{path}: is empty: there is no history in it")
    if not found:
        known = ", ".join(("Parquet", *(each.name for each in FORMATS)))
        raise UnknownFormat(f"{path}: is in no format that I read ({known}). Convert it: docs/history-format.md")
    return found[0]


def stored_in(folder: Path) -> Path | None:
    """The history in a folder of Jepsen's store, such as store/test/latest; None if that is no such folder."""
    is_store = any((folder / name).is_file() for name in _OF_STORE)
    if is_history(folder) or is_run(folder) or not is_store:
        return None
    return next((folder / name for name in _STORED if (folder / name).is_file()), None)


def _stored(path: Path, into: Path, *, is_hashed: bool) -> Loaded:
    """The history of a run of Jepsen's, with a note of Jepsen's own results."""
    loaded, note = load(path, into, is_hashed=is_hashed), note_of_results(path.parent)
    return loaded if note is None else msgspec.structs.replace(loaded, notes=(*loaded.notes, note))


def _unpacked(path: Path, into: Path, *, is_hashed: bool) -> Loaded:
    plain = unpack(path, into / "unpacked")
    try:
        return load(plain, into, is_hashed=is_hashed)
    except SeamarkError as error:
        raise type(error)(str(error).replace(str(plain), str(path))) from None


def is_history_file(path: Path) -> bool:
    """True unless that file may be a change stream: JSON of others that has no operations, or in no known format."""
    try:
        found = format_of(path)
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except SeamarkError:
        return False
    return found.name != "JSON" or b'"process"' in head


def _folder(folder: Path, into: Path) -> Loaded:
    """A run's history, written from its journal if that was not yet done; or a folder of Parquet files."""
    journal, history = folder / JOURNAL, folder / HISTORY
    require_plain(folder)
    if is_history(folder):
        return _loaded(folder, "Parquet")
    if not (is_run(folder) or journal.is_file() or is_history(history)):
        raise HistoryError(f"{folder}: neither a run (no {RUN_FILE}, no {JOURNAL}) nor a folder of Parquet files")
    return _loaded(history if is_history(history) else _written(journal, history, into / HISTORY), "run")


def _loaded(history: Path, name: str) -> Loaded:
    """The history in an existing folder, validated even if Seamark wrote it."""
    validate(history)
    return Loaded(history=history, format=name, is_foreign=False, is_complete=footer_of(history) is not None)


def _written(journal: Path, history: Path, elsewhere: Path) -> Path:
    """The folder with the journal's history: in the run, or in `elsewhere` if the store cannot be written.

    A run that died before its journal began has an empty history.
    """
    with one_writer(history.parent):
        if is_history(history):
            return history  # Another process was faster.
        if not journal.is_file() and history.is_dir() and any(history.iterdir()):
            why = f"it lacks ops.parquet or mops.parquet, and there is no {JOURNAL} to write them again from"
            raise HistoryError(f"{history}: {why}: restore what is missing")
        return _written_anew(journal, history, elsewhere)


def _written_anew(journal: Path, history: Path, elsewhere: Path) -> Path:
    for folder in (history, elsewhere):
        try:
            _write(read_journal(journal) if journal.is_file() else iter(()), folder, journal)
        except _Unwritable as error:
            problem = error
        else:
            return folder
    raise problem


def _imported(path: Path, history: Path, found: Format, *, is_hashed: bool) -> Loaded:
    notation = next((name for name in NOTATIONS if name == found.name), None)
    in_parts = None if notation is None else _in_parts(path, history, notation, is_hashed=is_hashed)
    return in_parts or _in_one_pass(path, history, found)


def _in_one_pass(path: Path, history: Path, found: Format) -> Loaded:
    times = Times()
    skipped = _converted(path, history, found, times)
    notes: tuple[str, ...] = ()
    if times.fall:  # That is known only now: the file is read again, in another order.
        order = None if times.show_order else in_file_order(history, sorted(times.falling), OVERLAPPING)
        skipped = _converted(path, history, found, times)
        if order is not None:
            write_sessions(history, order)
        notes = (times.note(path.name, has_sessions=order is not None),)
    return _of(history, found, (*notes, *_skipped(skipped)))


def _of(history: Path, found: Format, notes: tuple[str, ...]) -> Loaded:
    is_complete = footer_of(history) is not None
    return Loaded(history=history, format=found.name, is_foreign=found.is_foreign, is_complete=is_complete, notes=notes)


def _converted(path: Path, history: Path, found: Format, times: Times) -> int:
    """Write the history in that file into the folder `history`; returns the number of nemesis maps left out."""
    skipped = [0]
    records = _TIMED[found.name](path, times) if found.name in _TIMED else found.read(path)
    if found.read is not read_journal:  # Only a journal records whether it is complete.
        records = chain(_without_faults(records, skipped) if found.is_foreign else records, [Footer(0, "imported")])
    _write(records, history, path)
    return skipped[0]


def _kept(path: Path, history: Path, found: Format, *, is_hashed: bool) -> Loaded:
    """The history of a large file: from the cache, or else imported and put there."""
    before, key = path.stat(), kept.key_of(path, found.name)
    notes = None if key is None else kept.found(key, history, is_hashed=is_hashed)
    if notes is not None:
        return _of(history, found, notes)
    loaded = _imported(path, history, found, is_hashed=is_hashed)
    after = path.stat()
    if key is not None and (before.st_ino, before.st_size, before.st_mtime_ns) == (
        after.st_ino,
        after.st_size,
        after.st_mtime_ns,
    ):
        kept.keep(key, history, loaded.notes)
    return loaded


def _in_parts(path: Path, history: Path, notation: NotationName, *, is_hashed: bool) -> Loaded | None:
    """A file converted in parts, a large one by several processes; None if it has to be read in one pass."""
    through = spread if path.stat().st_size >= SPREAD_BYTES else in_turn
    try:
        skipped = write_in_parts(path, history, through, notation=notation, is_hashed=is_hashed)
    except (NotInParts, ProcessEnded):  # One pass takes the memory of one process.
        return None
    except OSError as error:
        raise _unwritable(history, error) from None
    return Loaded(history=history, format=notation, is_foreign=True, notes=_skipped(skipped))


def _skipped(count: int) -> tuple[str, ...]:
    return (f"{count} nemesis operations skipped",) if count else ()


def _write(records: Iterator[Record], folder: Path, source: Path) -> None:
    """Write a history. Raises HistoryError that names its source, or the folder if that cannot be written."""
    try:
        write_history(records, folder)
    except HistoryError as error:
        raise error if str(error).startswith(str(source)) else HistoryError(f"{source}: {error}") from None
    except OSError as error:
        raise _unwritable(folder, error) from None


class _Unwritable(HistoryError):
    """The folder cannot be written."""


def _unwritable(folder: Path, error: OSError) -> _Unwritable:
    return _Unwritable(f"{folder}: cannot be written ({error.strerror}); make room, or use another folder")


def _without_faults(records: Iterator[Record], skipped: list[int]) -> Iterator[Record]:
    """The records without faults, which are counted in `skipped`: a foreign nemesis uses its own terms."""
    for record in records:
        if isinstance(record, Fault):
            skipped[0] += 1
        else:
            yield record
