"""One row for each attempt at a run, appended durably as it ends, so that a killed campaign loses none.

A line holds a row and the hash of it with the line before; the first follows from the order of the campaign. So a row
that is changed, added, left out or moved is noticed, unless somebody computes the hashes of all lines after it anew.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final, Generic, NamedTuple, Self, TypeVar

import msgspec

from harness.core.errors import HistoryError, ScenarioError
from harness.core.verdict import FAILED, Relation, Step, Verdict
from harness.record.bounded import Amount, Count, Id, Seed, Sha256
from harness.record.documents import NOT_PLAIN, decoded, whole_lines
from harness.record.store import sync_folder
from harness.report.model import FindingRow, Report

R = TypeVar("R")

ROWS_FILE: Final = "rows.jsonl"
ATTEMPTS: Final = 2  # The most attempts at one run.
KEPT: Final = (*FAILED, Verdict.UNKNOWN.value)  # The verdicts of runs whose folders are kept by default.
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at the run of `seed` in a cell, by its number. `report` is slim: findings without their evidence.

    `id` is drawn, and no other row has it. `elapsed_s` is the real time since the sweep began, sessions added up;
    `finished_utc` when the attempt ended.
    """

    id: Id
    cell: Count
    seed: Seed
    attempt: Annotated[int, msgspec.Meta(ge=1, le=ATTEMPTS)]
    report: Report
    finished_utc: str = ""
    elapsed_s: Amount = 0.0

    @property
    def key(self) -> tuple[int, int]:
        """The cell and the seed: the run that this is an attempt at."""
        return self.cell, self.seed

    @property
    def classes(self) -> tuple[str, ...]:
        """The fingerprints of its findings' classes."""
        return classes_of(self.report)

    @property
    def is_trouble(self) -> bool:
        """True if the harness failed."""
        return self.report.verdict == Verdict.ERROR.value

    @property
    def is_final(self) -> bool:
        """True if this is the last attempt at its run."""
        return not self.is_trouble or self.attempt >= ATTEMPTS


def row_of(report: Report, *, cell: int, seed: int, attempt: int) -> Row:
    """The row of a report."""
    slim = msgspec.structs.replace(slimmed(report), seed=seed)
    return Row(id=secrets.token_hex(8), cell=cell, seed=seed, attempt=attempt, report=slim)


def slimmed(report: Report) -> Report:
    """The report without evidence, which stays in the run's folder, and without commands and the place of code.

    Findings keep the shape of their cycle, on which their class depends.
    """
    findings = tuple(
        msgspec.structs.replace(each, ops=(), events=(), cycle=tuple(map(_step, each.shape)))
        for each in report.findings
    )
    return msgspec.structs.replace(report, facts={}, code=None, anywhere=None, way_out=None, findings=findings)


def _step(relation: Relation) -> Step:
    return Step(source="", target="", relation=relation, sentence="")


def classes_of(report: Report) -> tuple[str, ...]:
    """The fingerprints of the classes of a report's findings, in their order."""
    return tuple(class_of(report.cluster or "", finding) for finding in report.findings)


def class_of(cluster: str, finding: FindingRow) -> str:
    """The fingerprint of a finding's class: the same in every run, as it has no operation, no key and no time."""
    parts = (cluster, finding.symptom, finding.checker)
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


class _Line(msgspec.Struct, frozen=True):
    """A line of the file: a row, and the hash of it with the chain of the line before."""

    chain: Sha256
    row: msgspec.Raw


class Kept(NamedTuple, Generic[R]):
    """The rows in a folder, the chain at its start and after each row, and the bytes that all whole lines have."""

    rows: list[R]
    chain: list[str]
    size: int


def _linked(before: str, row: bytes) -> str:
    return sha256(before.encode() + row).hexdigest()


class RowsFile(Generic[R]):
    """The rows in a folder, written by one process at a time. The context manager holds the lock of the file.

    `start` is that of the chain. Raises HistoryError if what is there is no file of rows.
    """

    def __init__(self, folder: Path, form: type[R], start: str, what: str = "sweep") -> None:
        self._path = folder / ROWS_FILE
        self._form, self._start, self._what = form, start, what
        self._folder = folder
        self._descriptor = -1
        self.chain = start  # The hash of all rows so far.

    def __enter__(self) -> Self:
        try:
            self._descriptor = os.open(self._path, _OPEN, 0o666)
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                raise HistoryError(f"{self._path}: {NOT_PLAIN}")
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.__exit__()
            raise ScenarioError(
                f"{self._folder}: another process carries out this {self._what}; wait for its end"
            ) from None
        except OSError as error:
            why = NOT_PLAIN if self._path.is_symlink() else f"cannot be written ({error.strerror})"
            raise HistoryError(f"{self._path}: {why}") from None
        sync_folder(self._folder)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        os.close(self._descriptor)

    def append(self, row: R) -> None:
        """Append a row, durably. Raises OSError if the disk is full; the rows before stay."""
        content = msgspec.json.encode(row)
        chain = _linked(self.chain, content)
        line, size = msgspec.json.encode(_Line(chain, msgspec.Raw(content))) + b"\n", os.fstat(self._descriptor).st_size
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, size)
            raise
        self.chain = chain

    def recovered(self) -> Kept[R]:
        """All rows so far. An unfinished last line, which a killed process leaves, is cut off."""
        kept = read_rows(self._folder, self._form, self._start)
        os.ftruncate(self._descriptor, kept.size)
        self.chain = kept.chain[-1]
        return kept


def read_rows(folder: Path, form: type[R], start: str) -> Kept[R]:
    """The complete rows in a campaign's folder, and their chain, which begins with `start`.

    Raises HistoryError that names the line and the field, if one is damaged, or does not follow from the one before.
    """
    rows, chain, size = list[R](), [start], 0
    path = folder / ROWS_FILE
    for number, text in enumerate(whole_lines(path), 1):
        try:
            line = decoded(text, _Line)
            row = decoded(line.row, form)
        except ValueError as error:
            raise HistoryError(f"{path}:{number}: not a row of this Seamark ({error})") from None
        if line.chain != _linked(chain[-1], bytes(line.row)):
            after = f"line {number - 1}" if number > 1 else "the order of this folder"
            raise HistoryError(
                f"{path}:{number}: does not follow from {after}: a row was changed, added, moved or left out; "
                "restore the file from a copy"
            )
        rows.append(row)
        chain.append(line.chain)
        size += len(text)
    return Kept(rows, chain, size)


def final_rows(rows: Sequence[Row]) -> list[Row]:
    """The last attempt at each run that needs no other attempt, by cell and seed."""
    last = {row.key: row for row in rows if row.is_final}
    return [last[key] for key in sorted(last)]
