"""Counts of runs for trends: the runs of a store, and those of its sweeps by their rows.

A sweep keeps only its red runs, so its runs are counted by their rows, and the kept ones are left out. Left out as well
are runs with a planted bug, of a given plan or given operations (shrunk or repeated ones), and of hunts: the seed did
not draw them, so they are no sample of the system.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from harness.campaign.document import SWEEPS
from harness.campaign.ledger.attempts import ATTEMPT_FILE
from harness.campaign.ledger.rows import ATTEMPTS, ROWS_FILE
from harness.core.errors import HistoryError
from harness.core.verdict import Verdict
from harness.record.documents import decoded, whole_lines
from harness.report.shrunk import SHRUNK_FILE
from harness.scenario.sut import release
from harness.serve.index import COUNT_MAX, STATES, Row, Seen, Stamp, short, stamp
from harness.serve.places import plain_folders

ROWS_BYTES_MAX: Final = 256 << 20  # A longer file of rows is not read: some 25,000 rows.
KINDS_MAX: Final = 2_000  # The most days, anomalies or releases that have counts of their own.
TESTED: Final = (Verdict.VALID.value, Verdict.INVALID.value, Verdict.UNKNOWN.value)
PLANTED: Final = "with a planted bug"
GIVEN: Final = "of a given plan or given operations, such as shrunk and repeated ones"


class _Judged(msgspec.Struct, frozen=True):
    """The fields of a row's report that trends need."""

    verdict: str
    cluster: str = ""
    bugs: tuple[str, ...] = ()
    sut: dict[str, str] = {}
    findings: tuple[Seen, ...] = ()


class _Attempt(msgspec.Struct, frozen=True):
    attempt: int
    report: _Judged
    finished_utc: str = ""


class _Line(msgspec.Struct, frozen=True):
    row: _Attempt


class Kind(NamedTuple):
    """What runs have in common: the cluster, and the release of the system under test; empty if none is declared."""

    cluster: str
    release: str


@dataclass(slots=True)
class Shown:
    """The runs that show an anomaly: their number, the broken promises, and the first and last time (UTC)."""

    runs: int = 0
    promises: set[str] = field(default_factory=set)
    first: str = ""
    last: str = ""

    def add(self, runs: int, promises: Iterable[str], first: str, last: str) -> None:
        """Add runs between those times; a time may be empty."""
        self.runs += runs
        self.promises |= set(promises)
        self.first = min(filter(None, (self.first, first)), default="")
        self.last = max(self.last, last)


@dataclass(slots=True)
class Tally:
    """The counts of some runs. `left_out` has the reasons why others are not counted, each with their number."""

    days: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)  # By cluster and date: runs by state.
    tested: Counter[Kind] = field(default_factory=Counter)  # Runs that were not vacuous.
    shown: dict[tuple[Kind, str], Shown] = field(default_factory=dict)  # By kind and anomaly.
    left_out: Counter[str] = field(default_factory=Counter)
    unread: list[str] = field(default_factory=list)  # Why some sweeps are not counted.

    def count(self, kind: Kind, began: str, state: str, findings: Iterable[Seen]) -> None:
        """Count a run."""
        self._day(kind.cluster, began[:10])[state] += 1
        if state in TESTED:
            self.tested[kind] += 1
        found: dict[str, list[str]] = {}
        for each in findings:
            found.setdefault(short(each.anomaly), []).extend(filter(None, (each.promise,)))
        for anomaly, promises in found.items():
            self._shown(kind, anomaly).add(1, promises, began, began)

    def add(self, other: "Tally") -> None:
        """Add the counts of other runs."""
        for (cluster, date), states in other.days.items():
            self._day(cluster, date).update(states)
        for (kind, anomaly), each in other.shown.items():
            self._shown(kind, anomaly).add(each.runs, each.promises, each.first, each.last)
        self.tested.update(other.tested)
        self.left_out.update(other.left_out)
        self.unread += other.unread

    def _day(self, cluster: str, date: str) -> Counter[str]:
        key = (cluster, date)
        return self.days.setdefault(key, Counter()) if key in self.days or len(self.days) < KINDS_MAX else Counter()

    def _shown(self, kind: Kind, anomaly: str) -> Shown:
        key = (kind, anomaly)
        return self.shown.setdefault(key, Shown()) if key in self.shown or len(self.shown) < KINDS_MAX else Shown()


class Tallies:
    """The counts of a store. Each version of a file of rows is read once."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._known: dict[str, tuple[Stamp, Tally]] = {}

    def of(self, rows: Iterable[Row]) -> Tally:
        """The counts of all runs: those of sweeps, and of `rows`, the runs that have a folder."""
        found = Tally()
        for row in rows:
            run = f"{self._store}/{row.place}"
            if row.bugs:
                found.left_out[PLANTED] += 1
            elif row.is_given or stamp(f"{run}/{SHRUNK_FILE}") is not None:
                found.left_out[GIVEN] += 1
            elif row.began and stamp(f"{run}/{ATTEMPT_FILE}") is None:  # Else it is of a sweep, which has a row for it.
                found.count(Kind(row.cluster, row.release), row.began, row.state, row.findings)
        for sweep in plain_folders(self._store / SWEEPS):
            for night in plain_folders(sweep.path):
                found.add(self._of_sweep(f"{night.path}/{ROWS_FILE}"))
        return found

    def _of_sweep(self, path: str) -> Tally:
        version = stamp(path)
        known = self._known.get(path)
        if known is None or known[0] != version:
            known = self._known[path] = version, _counted(Path(path), version)
        return known[1]


def _counted(path: Path, version: Stamp) -> Tally:
    """The counts of a file of rows; those before the damage if it is damaged."""
    found = Tally()
    if version is None:
        return found
    place = "/".join(path.parts[-3:])
    if version.size > ROWS_BYTES_MAX:
        found.unread.append(f"{place} has {version.size:,} bytes, and up to {ROWS_BYTES_MAX:,} are read")
        return found
    number = 0
    try:
        for line in whole_lines(path):
            number += 1
            _count(found, decoded(line, _Line).row)
    except HistoryError as error:
        found.unread.append(f"{place}{str(error).removeprefix(str(path))}")
    except ValueError as error:
        found.unread.append(f"{place}:{number}: is no row ({short(str(error))})")
    return found


def _count(found: Tally, row: _Attempt) -> None:
    """Count a row, unless its run was tried again."""
    report = row.report
    if report.verdict not in STATES or (report.verdict == Verdict.ERROR.value and row.attempt < ATTEMPTS):
        return
    if report.bugs:
        found.left_out[PLANTED] += 1
    elif row.finished_utc:
        kind = Kind(short(report.cluster), short(release(report.sut)))
        found.count(kind, short(row.finished_utc), report.verdict, report.findings[:COUNT_MAX])
