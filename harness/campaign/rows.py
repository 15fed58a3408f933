"""One row for each attempt at a run, appended durably as it ends, so that a killed sweep loses none."""

import fcntl
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

import msgspec

from harness.core.errors import HistoryError, ScenarioError
from harness.core.verdict import Verdict
from harness.record.store import sync_folder
from harness.report.model import FindingRow, Report

R = TypeVar("R")

ROWS_FILE: Final = "rows.jsonl"
ATTEMPTS: Final = 2  # The most attempts at one run.
RED: Final = (Verdict.INVALID.value, Verdict.ERROR.value, Verdict.UNKNOWN.value)  # The verdicts of runs that are kept.


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at the run of `seed` in a cell, by its number. `report` is slim: findings without their evidence.

    `classes` are the fingerprints of its findings' classes. `elapsed_s` is the real time since the sweep began,
    sessions added up; `finished_utc` when the attempt ended.
    """

    cell: int
    seed: int
    attempt: int
    report: Report
    classes: tuple[str, ...] = ()
    finished_utc: str = ""
    elapsed_s: float = 0.0

    @property
    def key(self) -> tuple[int, int]:
        """The cell and the seed: the run that this is an attempt at."""
        return self.cell, self.seed

    @property
    def is_trouble(self) -> bool:
        """True if the harness failed."""
        return self.report.verdict == Verdict.ERROR.value

    @property
    def is_final(self) -> bool:
        """True if this is the last attempt at its run."""
        return not self.is_trouble or self.attempt >= ATTEMPTS


def row_of(report: Report, *, cell: int, seed: int, attempt: int) -> Row:
    """The row of a report. The evidence stays in the run's folder."""
    slim = msgspec.structs.replace(
        report,
        seed=seed,
        facts={},
        findings=tuple(msgspec.structs.replace(each, ops=(), events=(), cycle=()) for each in report.findings),
    )
    classes = tuple(class_of(report.cluster or "", finding) for finding in report.findings)
    return Row(cell=cell, seed=seed, attempt=attempt, report=slim, classes=classes)


def class_of(cluster: str, finding: FindingRow) -> str:
    """The fingerprint of a finding's class: the same in every run, as it has no operation, no key and no time."""
    parts = (cluster, finding.symptom, finding.checker)
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


class RowsFile(Generic[R]):
    """The rows in a folder, written by one process at a time. The context manager holds the lock of the file."""

    def __init__(self, folder: Path, form: type[R], what: str = "sweep") -> None:
        self._path = folder / ROWS_FILE
        self._form, self._what = form, what
        self._folder = folder
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise ScenarioError(
                f"{self._folder}: another process carries out this {self._what}; wait for its end"
            ) from None
        sync_folder(self._folder)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        os.close(self._descriptor)

    def append(self, row: R) -> None:
        """Append a row, durably. Raises OSError if the disk is full; the rows before stay."""
        line, size = msgspec.json.encode(row) + b"\n", os.fstat(self._descriptor).st_size
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, size)
            raise

    def recovered(self) -> list[R]:
        """All rows so far. An unfinished last line, which a killed process leaves, is cut off."""
        rows = _rows(self._folder, self._form)
        content = self._path.read_bytes()
        if not content.endswith(b"\n"):
            os.ftruncate(self._descriptor, content.rfind(b"\n") + 1)
        return rows


def read_rows(folder: Path) -> list[Row]:
    """The complete rows in a sweep's folder. Raises HistoryError that names the line, if one is damaged."""
    return _rows(folder, Row)


def _rows(folder: Path, form: type[R]) -> list[R]:
    path = folder / ROWS_FILE
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
    rows = []
    for number, line in enumerate(lines[:-1], 1):  # Text after the last line end is no whole line.
        try:
            rows.append(msgspec.json.decode(line, type=form))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HistoryError(f"{path}:{number}: not a row ({error}); remove that line to repeat its run") from None
    return rows


def final_rows(rows: Sequence[Row]) -> list[Row]:
    """The last attempt at each run that needs no other attempt, by cell and seed."""
    last = {row.key: row for row in rows if row.is_final}
    return [last[key] for key in sorted(last)]
