"""Rows are durable, and findings of one kind have one name in every run."""

import errno
import os
from pathlib import Path

import pytest

from harness.campaign.rows import Row, RowsFile, class_of, read_rows, row_of
from harness.core.errors import HistoryError, ScenarioError
from tests.unit.campaign.reports import finding, report


def test_what_a_kill_left_of_a_line_is_cut_off_and_the_rest_is_read(tmp_path: Path) -> None:
    with RowsFile(tmp_path, Row) as rows:
        rows.append(row_of(report(), cell=0, seed=1, attempt=1))
    whole = (tmp_path / "rows.jsonl").read_bytes()
    (tmp_path / "rows.jsonl").write_bytes(whole + whole[:100])
    assert [row.seed for row in read_rows(tmp_path)] == [1]
    with RowsFile(tmp_path, Row) as rows:
        assert [row.seed for row in rows.recovered()] == [1]
        rows.append(row_of(report(), cell=0, seed=2, attempt=1))
    assert [row.seed for row in read_rows(tmp_path)] == [1, 2]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'{"cell": 0}\n')
    with pytest.raises(HistoryError, match=r"rows\.jsonl:1: not a row"):
        read_rows(tmp_path)


def test_a_full_disk_keeps_every_whole_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, calls = os.write, list[int]()

    def refused(descriptor: int, content: bytes) -> int:
        calls.append(len(content))
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left")
        return write(descriptor, content[:50])

    with RowsFile(tmp_path, Row) as rows:
        rows.append(row_of(report(), cell=0, seed=1, attempt=1))
        monkeypatch.setattr(os, "write", refused)
        with pytest.raises(OSError, match="No space left"):
            rows.append(row_of(report(), cell=0, seed=2, attempt=1))
        monkeypatch.undo()
        rows.append(row_of(report(), cell=0, seed=3, attempt=1))
    assert [row.seed for row in read_rows(tmp_path)] == [1, 3]


def test_two_processes_cannot_carry_out_one_sweep(tmp_path: Path) -> None:
    with RowsFile(tmp_path, Row), pytest.raises(ScenarioError, match="another process carries out this sweep"):
        RowsFile(tmp_path, Row).__enter__()


def test_a_class_knows_the_shape_of_a_cycle_and_not_where_it_begins() -> None:
    one = class_of("ndb", finding("G1c", "ww", "wr", "rw"))
    assert (
        one
        == class_of("ndb", finding("G1c", "rw", "ww", "wr"))
        == class_of("ndb", finding("G1c", "ww", "ww", "wr", "rw"))
    )
    others = [
        class_of("ndb", finding("G1c", "ww", "rw", "wr")),
        class_of("tutorial", finding("G1c", "ww", "wr", "rw")),
        class_of("ndb", finding("G0", "ww", "wr", "rw")),
        class_of("ndb", finding("G1c", "ww", "wr", "rw", promise=None)),
        class_of("ndb", finding("G1c", "ww")),
        class_of("ndb", finding("G1c")),
    ]
    assert len({one, *others}) == 7


def test_a_row_is_slim_and_keeps_what_the_page_needs() -> None:
    row = row_of(report(findings=(finding("G1c", "ww"),), facts={"streams": {"events": 3}}), cell=1, seed=9, attempt=2)
    assert (row.key, row.report.seed, row.report.facts, row.report.findings[0].cycle) == ((1, 9), 9, {}, ())
    assert row.report.promises
    assert row.classes == (class_of("tutorial", finding("G1c", "ww")),)
