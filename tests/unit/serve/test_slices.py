"""Slices of a history: whole operations, and nothing that was not asked for."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Invoke, Record
from harness.record.formats.edn.exchange import read_edn_history
from harness.record.formats.jsonl import read_jsonl
from harness.record.formats.parquet.parquet import write_history
from harness.record.journal import read_journal
from harness.serve.decoding import slices
from harness.serve.decoding.requests import Format, Part, Span
from harness.serve.decoding.slices import sliced, write_slice
from tests.unit.serve.stores import SECOND, TORN, aged, evidence, journal, planned
from tests.worlds import bombs


def kinds(records: list[Evidence]) -> list[str]:
    return [f"{type(each).__name__} {getattr(each, 'index', '')}".strip() for each in records]


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (0.0, 0.5, ["Mark"]),
        (3.0, 3.0, ["Invoke 1", "Complete 1"]),
        (4.5, 9.0, ["Invoke 1", "Invoke 2", "Complete 1", "StreamEvent"]),
        (5.0, 5.0, ["Invoke 1", "Invoke 2", "Complete 1"]),
        (100.0, 200.0, ["Invoke 2"]),
        (9.0, 3.0, ["Invoke 2"]),
    ],
)
def test_a_span_has_every_operation_that_was_open_in_it(begin: float, end: float, expected: list[str]) -> None:
    span = Span(int(begin * SECOND), int(end * SECOND))
    if begin > end:
        expected = []
    assert kinds(list(sliced(lambda: iter(evidence()), span))) == expected


def test_a_finding_has_its_operations_and_its_events() -> None:
    assert kinds(list(sliced(lambda: iter(evidence()), Part.of(TORN)))) == ["Invoke 1", "Complete 1", "StreamEvent"]


def test_a_slice_can_be_read_back(tmp_path: Path) -> None:
    run = planned(tmp_path)
    journal(run)
    forms: dict[Format, Callable[[Path], Iterable[Record]]] = {"jsonl": read_jsonl, "edn": read_edn_history}
    for form, read in forms.items():
        path = tmp_path / f"slice.{form}"
        write_slice(run, form, None, path)
        operations = [each for each in read(path) if isinstance(each, Invoke | Complete)]
        assert len(operations) == 5
    assert list(read_jsonl(tmp_path / "slice.jsonl")) == evidence()


def test_a_run_without_its_journal_is_read_from_its_columns(tmp_path: Path) -> None:
    run = planned(tmp_path)
    journal(run)
    write_history(read_journal(run / "journal.log"), run / "history")
    (run / "journal.log").unlink()
    write_slice(run, "jsonl", None, tmp_path / "whole.jsonl")
    assert list(read_jsonl(tmp_path / "whole.jsonl")) == evidence()


def test_a_run_that_has_no_history_says_so(tmp_path: Path) -> None:
    run = planned(tmp_path)
    aged(run)
    with pytest.raises(HistoryError, match="has no history yet"):
        write_slice(run, "edn", None, tmp_path / "x")


def test_records_and_open_operations_that_take_too_much_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = planned(tmp_path)
    journal(run)
    monkeypatch.setattr(slices, "OPEN_MAX", 1)
    with pytest.raises(HistoryError, match="more than 1 operations are open at once"):
        write_slice(run, "jsonl", Span(0, 9 * SECOND), tmp_path / "x")
    monkeypatch.setattr(slices, "RECORD_MAX", 10)
    with pytest.raises(
        HistoryError, match=r"record 0 at byte 18 has .* bytes, and 10 are read here; use seamark export"
    ):
        write_slice(run, "jsonl", None, tmp_path / "x")


def test_columns_that_take_too_much_memory_are_refused_before_they_are_decoded(tmp_path: Path) -> None:
    run = planned(tmp_path)
    bombs.rows(run / "history", "probes", 1_000_000)
    with pytest.raises(HistoryError, match=r"take more than .* bytes when they are read; .* use seamark export"):
        write_slice(run, "jsonl", None, tmp_path / "x")
    bombs.texts(run / "history", count=2, mib=15)
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        with pytest.raises(HistoryError, match="a page of column 'json' declares 15 MiB"):
            write_slice(run, "jsonl", None, tmp_path / "x")
    finally:
        pa.set_memory_pool(usual)
    assert counted.max_memory() < slices.COLUMNS_MAX


def test_no_link_is_followed(tmp_path: Path) -> None:
    run = planned(tmp_path)
    (run / "journal.log").symlink_to("/etc/passwd")
    with pytest.raises(HistoryError, match="is a link"):
        write_slice(run, "jsonl", None, tmp_path / "x")
