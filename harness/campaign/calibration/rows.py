"""The rows of a calibration in Parquet. Their key is a hash of the relevant code: unchanged cells are not rerun.

A run that has ended becomes a file of its own at once; the files of a complete cell become one.
"""

import ast
import io
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

import checkers
import harness.core
import harness.interpreter
import harness.judging
import harness.runtimes
import harness.scenario
import nemesis
from checkers.catalogue import MODULES
from harness.campaign.ledger.rows import Row
from harness.core.errors import HistoryError
from harness.core.verdict import Verdict
from harness.record.documents import opened
from harness.record.formats.parquet.limits import stream_batches
from harness.record.store import write_atomically
from harness.report.model import FindingRow, Report
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan

COMPLETE: Final = "rows.parquet"
DECODED_MAX: Final = 8 << 20  # The most bytes of the rows of a file in memory; a row of text takes some hundred.
PART: Final = re.compile(r"part-(-?\d+)\.parquet")
SCRIPTED: Final = -1  # Stands for a seed: the run with the bug's schedule.
KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {"transactions": "client", "linearizability": "client", "invariants": "client"}
    | {"watermarks": "graph", "streams": "rules", "lineage": "rules", "state": "state", "replication": "state"}
)
KIND_OF: Final[Mapping[str, str]] = MappingProxyType(
    {check: KINDS[module.partition(".")[0]] for module, checks in MODULES.items() for check in checks}
)
MATTER: Final = (
    *(checkers, nemesis, harness.core, harness.interpreter, harness.judging),
    *(harness.runtimes, harness.scenario),
)
DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_SCHEMA: Final = pa.schema(
    [
        ("seed", pa.int64()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("promise", pa.string()),
        ("anomaly", pa.string()),
        ("checker", pa.string()),
        ("kinds", pa.list_(pa.string())),
        ("history_sha256", pa.string()),
    ]
)


class CalibrationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    It names the first finding that breaks a promise; `kinds` are those of all checks with such a finding.
    """

    seed: int
    verdict: str
    reason: str
    promise: str | None = None
    anomaly: str | None = None
    checker: str | None = None
    kinds: tuple[str, ...] = ()
    history_sha256: str | None = None

    @property
    def is_hit(self) -> bool:
        """True if the run broke a promise."""
        return self.verdict == Verdict.INVALID.value

    @property
    def is_error(self) -> bool:
        """True if the harness failed."""
        return self.verdict == Verdict.ERROR.value


def calibration_row(row: Row, seed: int) -> CalibrationRow:
    """The row of a run."""
    broken = [finding for finding in row.report.findings if finding.promise]
    first = broken[0] if broken else None
    return CalibrationRow(
        seed=seed,
        verdict=row.report.verdict,
        reason=row.report.reason,
        promise=first.promise if first else None,
        anomaly=first.anomaly if first else None,
        checker=first.checker if first else None,
        kinds=tuple(sorted(filter(None, {_kind(row.report, finding) for finding in broken}))),
        history_sha256=row.report.history_sha256,
    )


def _kind(report: Report, finding: FindingRow) -> str | None:
    """The kind of the check with that finding. What a system brings judges its own state; the harness has no kind."""
    return KIND_OF.get(finding.checker, KINDS["state"] if finding.anomaly in report.declared else None)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A run of its own for a bug that no seed shows."""

    scenario: Scenario
    plan: Plan


def code_key(package: Path, scenario: Scenario, schedule: Schedule | None) -> str:
    """The hash of everything but the seed that decides the outcomes of a bug's runs; `schedule` is its own run."""
    options = msgspec.json.encode((msgspec.structs.replace(scenario, seed=0), schedule))
    return sha256(options + _code_digest(package)).hexdigest()[:16]


@cache
def _code_digest(package: Path) -> bytes:
    """The hash of a cluster's code, and of all code that carries out and judges its runs, as this process loaded it."""
    digest = sha256()
    for folder in (*(Path(module.__file__ or "").parent for module in MATTER), package):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder.parent).as_posix().encode() + b"\0" + syntax(path.read_bytes()))
    return digest.digest()


def syntax(source: bytes) -> bytes:
    """The syntax tree of a file, without comments and docstrings: other words alone need no new run."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree).encode()


class CellRows:
    """The rows of one cell under one key, in a folder. A later call repeats runs in which the harness failed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.rows: dict[int, CalibrationRow] = {}
        if folder.is_dir():
            for path in sorted(folder.iterdir()):
                if path.name == COMPLETE or PART.fullmatch(path.name):
                    self.rows |= {row.seed: row for row in _read(path) if not row.is_error}

    def add(self, row: CalibrationRow) -> None:
        """Store a row, durably. Raises OSError if the disk is full."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._folder / f"part-{row.seed}.parquet", _written([row]))
        self.rows[row.seed] = row

    def complete(self) -> None:
        """Combine all rows into one file."""
        parts = [path for path in self._folder.iterdir() if PART.fullmatch(path.name)]
        if parts:
            write_atomically(self._folder / COMPLETE, _written([self.rows[seed] for seed in sorted(self.rows)]))
            for path in parts:
                path.unlink()


def _written(rows: list[CalibrationRow]) -> bytes:
    table = pa.Table.from_pylist([msgspec.to_builtins(row) for row in rows], schema=_SCHEMA)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _read(path: Path) -> list[CalibrationRow]:
    """The rows in a file. Few bytes of Parquet can be many in memory, so they are decoded in batches, and counted."""
    rows, size = list[CalibrationRow](), 0
    try:
        opened(path).close()
        for batch in stream_batches(path):
            size += batch.nbytes
            if size > DECODED_MAX:
                raise HistoryError(f"in memory they take more than {DECODED_MAX >> 20} MiB, the limit")
            rows += msgspec.convert(batch.to_pylist(), list[CalibrationRow])
    except (HistoryError, msgspec.ValidationError) as error:
        why = str(error).removeprefix(f"{path}: ")
        raise HistoryError(f"{path}: not rows of a calibration ({why}); remove it to repeat its runs") from None
    return rows
