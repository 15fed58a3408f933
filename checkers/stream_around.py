"""What a history knows beside a stream and its source's writes: positions of operations that only read, and when it was
at rest."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from checkers.arrow import integers
from checkers.files import DAMAGE, damaged
from checkers.ragged import distinct
from checkers.stream_index import Places
from harness.core.columns import INFO, NEVER, Int64s, SourceWrites
from harness.core.promises import StreamContract

NOT_AT_REST: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """Operations and their positions, arrays (n,); NEVER where one has no position, or may still act."""

    invoke_seq: Int64s
    complete_seq: Int64s
    position: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What stands around a stream. Places of the journal, as `seq` of the events.

    `settled_seq`: all had come to rest at the end, and what was answered before this place had time to arrive;
    NOT_AT_REST where nobody knows that. `healed_seq`: no fault was in force from here on.
    """

    readers: Issued  # Operations that wrote nothing.
    settled_seq: int = NOT_AT_REST
    healed_seq: int = NOT_AT_REST


_NONE: Final = np.zeros(0, np.int64)
NOTHING_AROUND: Final = Around(readers=Issued(invoke_seq=_NONE, complete_seq=_NONE, position=_NONE))


def read_around(history: Path, writes: SourceWrites, contract: StreamContract) -> Around:
    """What the rules under that contract ask for. Raises HistoryError if a file is damaged."""
    readers = NOTHING_AROUND.readers
    if issues_by_writes(contract):
        readers = _readers(history, writes)
    marks = {row["phase"]: row for row in _rows(history / "marks.parquet", ["seq", "phase", "note"])}
    is_completed = "end" in marks and marks["end"]["note"] == "completed"
    ends = [row["seq"] for row in _rows(history / "faults.parquet", ["seq", "phase"]) if row["phase"] == "end"]
    return Around(
        readers=readers,
        settled_seq=marks["final"]["seq"] if is_completed and "final" in marks else NOT_AT_REST,
        healed_seq=max(ends, default=NOT_AT_REST),
    )


def issues_by_writes(contract: StreamContract) -> bool:
    """Do positions, and watermarks with them, rise by operations alone?"""
    return contract.wm_idle == "rests" and not contract.follows_clock and contract.is_position_global


def _rows(path: Path, columns: list[str]) -> list[dict[str, Any]]:
    """The rows of a small table by `seq`; none without a file. `pyarrow.parquet.read_table` would import pandas."""
    if not path.is_file():
        return []
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return sorted(file.read(columns=columns, use_threads=False).to_pylist(), key=lambda row: int(row["seq"]))
    except DAMAGE as problem:
        raise damaged(path, problem) from problem


def _readers(history: Path, writes: SourceWrites) -> Issued:
    """The operations without a write; none of them if such operations are given no positions."""
    names = ["index", "outcome", "invoke_seq", "complete_seq", "commit_ts"]
    try:
        with pq.ParquetFile(history / "ops.parquet", page_checksum_verification=True) as file:
            table = file.read(columns=names, use_threads=False)
    except DAMAGE as problem:
        raise damaged(history, problem) from problem
    index, outcome = integers(table["index"], 0), integers(table["outcome"], INFO)
    is_reader = Places(distinct(writes.op)).of(index) < 0
    position = integers(table["commit_ts"], NEVER)[is_reader]
    if not np.any(position != NEVER):
        return NOTHING_AROUND.readers
    ended = np.where(outcome == INFO, NEVER, integers(table["complete_seq"], NEVER))
    invoked = integers(table["invoke_seq"], 0)
    return Issued(invoke_seq=invoked[is_reader], complete_seq=ended[is_reader], position=position)
