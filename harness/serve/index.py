"""The list of a store's runs, from their report.json, which is read once for each version of the file.

A refresh looks at every folder, and reads only files that are new or have changed. A run that was written in part is a
row like any other, which says what is wrong with it.
"""

import os
import time
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Final, Generic, NamedTuple, TypeVar, cast

import msgspec

from harness.campaign.calibration.document import CALIBRATION
from harness.campaign.document import SWEEPS
from harness.core.errors import HistoryError
from harness.core.verdict import Verdict
from harness.hunt.search import HUNTS
from harness.record.documents import decoded, read_plain
from harness.record.store import JOURNAL, RUN_FILE, began_utc
from harness.report.model import REPORT_FILE
from harness.run.batch import BATCHES
from harness.scenario.sut import release
from harness.serve.places import plain_folders

RUNNING, UNJUDGED, UNREADABLE = "running", "not-judged", "unreadable"
STATES: Final = {each.value: each.word for each in Verdict} | {
    RUNNING: "RUNNING",
    UNJUDGED: "NOT JUDGED",
    UNREADABLE: "UNREADABLE",
}
NO_RUNS: Final = (BATCHES, SWEEPS, CALIBRATION, HUNTS)  # Folders of a store that hold no runs.
STALE_S: Final = 15.0  # A journal that has not grown for this long belongs to a run that died.
TEXT_MAX: Final = 400  # The most characters kept of a text: the list shows a reason on one line.
COUNT_MAX: Final = 50  # The most values kept of a list or an object, such as the findings of one run.
DOCUMENT_MAX: Final = 8 << 20  # The most bytes of a document.
T = TypeVar("T", bound=msgspec.Struct)
V = TypeVar("V")


class Version(NamedTuple):
    """The version of a file."""

    inode: int
    size: int  # In bytes.
    changed_ns: int


Stamp = Version | None  # None: there is no such file.


class Seen(msgspec.Struct, frozen=True):
    """A finding of a run, without the report's other fields."""

    fingerprint: str
    anomaly: str
    promise: str | None = None


class _Judged(msgspec.Struct, frozen=True):
    """The fields of report.json that the list needs."""

    verdict: str
    reason: str
    started_utc: str | None = None
    cluster: str | None = None
    workload: str | None = None
    runtime: str | None = None
    seed: int | None = None
    bugs: tuple[str, ...] = ()
    sut: dict[str, str] = {}
    is_given: bool = False
    findings: tuple[Seen, ...] = ()
    operations: dict[str, int] = {}


class _Planned(msgspec.Struct, frozen=True):
    """The fields of run.json that the list needs."""

    cluster: str
    workload: str
    runtime: str
    seed: int
    bugs: tuple[str, ...] = ()


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the list. `state` is a key of STATES; `began` is UTC, or None if the folder was renamed."""

    test: str
    name: str
    state: str
    reason: str
    began: str | None
    cluster: str
    workload: str = ""
    runtime: str = ""
    seed: int | None = None
    bugs: tuple[str, ...] = ()
    release: str = ""  # The declared release of the system under test, in words; may be empty.
    is_given: bool = False  # Its plan or its operations were given.
    findings: tuple[Seen, ...] = ()
    ok: int = 0

    @property
    def place(self) -> str:
        """The path of the run in its store, `TEST/FOLDER`."""
        return f"{self.test}/{self.name}"

    @property
    def anomalies(self) -> tuple[str, ...]:
        """The distinct anomalies, those that break a promise first."""
        ordered = sorted(self.findings, key=lambda each: each.promise is None)
        return tuple(dict.fromkeys(each.anomaly for each in ordered))


class Index:
    """The rows of a store, the latest first. Safe to call from several threads."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.read_count = 0  # The number of documents read since the start.
        self.is_read = False  # True once all documents have been read.
        self._lock = Lock()
        self._known: dict[tuple[str, str], tuple[tuple[Stamp, Stamp], Row]] = {}
        self._rows: list[Row] = []

    def rows(self) -> list[Row]:
        """All runs that the store has now."""
        with self._lock:
            found = {(test, name): self._looked_at(test, name) for test, name in self._folders()}
            if found != self._known:
                self._known = found
                self._rows = [found[place][1] for place in sorted(found, key=_age, reverse=True)]
            self.is_read = True
            return [self._alive(row) for row in self._rows]

    def glance(self, count: int) -> tuple[list[Row], int]:
        """The latest `count` runs, and the number of all. Reads only these reports, and waits for no other thread."""
        places = sorted(self._folders(), key=_age, reverse=True)
        rows = [self._looked_at(test, name)[1] for test, name in places[:count]]
        return [self._alive(row) for row in rows], len(places)

    def row(self, test: str, name: str) -> Row:
        """The row of one run, whose folder must exist."""
        return self._alive(self._looked_at(test, name)[1])

    def _folders(self) -> Iterator[tuple[str, str]]:
        for test in plain_folders(self.store):
            if test.name not in NO_RUNS:
                for run in plain_folders(test.path):
                    if _began(run.name) is not None or os.path.lexists(f"{run.path}/{RUN_FILE}"):
                        yield test.name, run.name

    def _looked_at(self, test: str, name: str) -> tuple[tuple[Stamp, Stamp], Row]:
        run = f"{self.store}/{test}/{name}"
        report = stamp(f"{run}/{REPORT_FILE}")
        stamps = (report, None if report else stamp(f"{run}/{RUN_FILE}"))  # A judged run needs no further look.
        known = self._known.get((test, name))
        if known is not None and known[0] == stamps:
            return known
        return stamps, self._read(run, test, name, is_judged=report is not None)

    def _read(self, run: str, test: str, name: str, *, is_judged: bool) -> Row:
        self.read_count += 1
        unknown = Row(test=test, name=name, state=UNREADABLE, reason="", began=_began(name), cluster=test)
        try:
            if is_judged:
                return _judged(unknown, f"{run}/{REPORT_FILE}")
            planned = msgspec.structs.asdict(_document(f"{run}/{RUN_FILE}", _Planned))
        except HistoryError as error:
            return msgspec.structs.replace(unknown, reason=short(str(error)))
        return msgspec.structs.replace(unknown, state=RUNNING, **planned)

    def _alive(self, row: Row) -> Row:
        """The row; if it has no report, marked as running if its journal grows or it has just begun."""
        if row.state != RUNNING:
            return row
        newest = max(_changed_s(f"{self.store}/{row.place}/{name}") for name in (JOURNAL, RUN_FILE))
        return row if time.time() - newest <= STALE_S else msgspec.structs.replace(row, state=UNJUDGED)


class Known(Generic[T]):
    """A cache of documents of one kind. Each version of a document is read once, a damaged one as well."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._found: dict[str, tuple[Stamp, T | str]] = {}

    def read(self, path: str) -> T:
        """The document. Raises HistoryError, in one line, if it cannot be read."""
        version = stamp(path)
        known = self._found.get(path)
        if known is None or known[0] != version or version is None:
            known = self._found[path] = version, self._read(path)
        if isinstance(known[1], str):
            raise HistoryError(known[1])
        return known[1]

    def _read(self, path: str) -> T | str:
        """The document, or the reason why it cannot be read."""
        try:
            return _document(path, self._kind)
        except HistoryError as error:
            return short(str(error))


def _judged(unknown: Row, path: str) -> Row:
    report = _document(path, _Judged)
    if report.verdict not in STATES:
        raise HistoryError(f"{REPORT_FILE}: {report.verdict[:40]!r} is not a verdict; judge the run again")
    return msgspec.structs.replace(
        unknown,
        state=report.verdict,
        reason=report.reason,
        cluster=report.cluster or unknown.test,
        workload=report.workload or "",
        runtime=report.runtime or "",
        seed=report.seed,
        bugs=report.bugs,
        release=short(release(report.sut)),
        is_given=report.is_given,
        findings=report.findings,
        ok=report.operations.get("ok", 0),
    )


def short(text: str) -> str:
    """A text, cut to the length that lists keep."""
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]} … ({len(text):,} characters)"


def _document(path: str, kind: type[T]) -> T:
    """The JSON document in that file, without all that lists do not keep.

    Raises HistoryError, in one line, if it cannot be read or decoded.
    """
    name = path.rpartition("/")[2]
    try:
        return _kept(decoded(read_plain(Path(path), most=DOCUMENT_MAX), kind))
    except HistoryError as error:  # A page names no path of this machine.
        raise HistoryError(f"{name}{str(error).removeprefix(path)}") from None
    except ValueError as error:
        raise HistoryError(f"{name} is damaged or written in part ({error})") from None


def _kept(value: V) -> V:
    """The value, with its texts and collections cut to the lengths that lists keep."""
    kept: object = value
    match value:
        case str():
            kept = short(value)
        case tuple():
            kept = tuple(_kept(each) for each in value[:COUNT_MAX])
        case dict():
            kept = {short(name): _kept(each) for name, each in islice(value.items(), COUNT_MAX)}
        case msgspec.Struct():
            kept = msgspec.structs.replace(
                value, **{name: _kept(getattr(value, name)) for name in value.__struct_fields__}
            )
    return cast("V", kept)


def _changed_s(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def stamp(path: str) -> Stamp:
    """The version of a file, without following a link."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return Version(found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=200_000)
def _began(name: str) -> str | None:
    return began_utc(Path(name))


def _age(place: tuple[str, str]) -> tuple[str, str, str]:
    test, name = place
    return name.partition("-")[0] if _began(name) else "", name, test
