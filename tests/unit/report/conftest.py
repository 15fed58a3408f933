"""Small histories as folders of Parquet files, and reports about them."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from harness.core.record import Complete, Footer, Invoke, MicroOp, Outcome, Record, StreamEvent
from harness.core.verdict import Verdict
from harness.record.formats.parquet.parquet import write_history
from harness.report.model import PromiseRow, Report

MS = 1_000_000
Written = Callable[[Iterable[Record]], Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes records as a history; returns its folder."""

    def write(records: Iterable[Record]) -> Path:
        write_history([*records, Footer(0, "done")], tmp_path / "history")
        return tmp_path / "history"

    return write


def operation(
    index: int, begin_ms: int, end_ms: int | None, *, outcome: Outcome = "ok", position: int | None = None
) -> list[Record]:
    """One append by a process of its own; without an end it never completes."""
    mops = (MicroOp("append", index % 3, index),)
    invoke = Invoke(index, begin_ms * MS, begin_ms * MS, index % 5, "txn", None, mops)
    if end_ms is None:
        return [invoke]
    return [invoke, Complete(index, end_ms * MS, outcome, None, mops, None, "n1", index, None, None, position)]


def watermark(at_ms: int, position: int, number: int = 0, subscriber: str = "s1") -> StreamEvent:
    return StreamEvent(at_ms * MS, subscriber, 0, number, "watermark", position=position)


def row(at_ms: int, key: int, value: int, position: int, number: int = 0, subscriber: str = "s1") -> StreamEvent:
    return StreamEvent(at_ms * MS, subscriber, 0, number, "row", key=key, value=value, position=position)


def promise(name: str = "P-1", verdict: str = "holds") -> PromiseRow:
    return PromiseRow(id=name, verdict=verdict, witnesses=12, text="It keeps its word.", source="a page")


def report(verdict: Verdict, **fields: object) -> Report:
    known: dict[str, object] = {"verdict": verdict.value, "exit_code": verdict.exit_code, "reason": "because"}
    return Report(**(known | fields))  # type: ignore[arg-type]  # The fields of a report, by name.
