"""Rows are durable, and findings of one kind have one name in every run."""

import errno
import os
from pathlib import Path

import pytest

from harness.campaign.ledger.rows import Row, RowsFile, class_of, read_rows, row_of
from harness.core.errors import HistoryError, ScenarioError
from tests.unit.campaign.reports import finding, report

START = "0" * 64


def test_what_a_kill_left_of_a_line_is_cut_off_and_the_rest_is_read(tmp_path: Path) -> None:
    with RowsFile(tmp_path, Row, START) as rows:
        rows.append(row_of(report(), cell=0, seed=1, attempt=1))
    whole = (tmp_path / "rows.jsonl").read_bytes()
    (tmp_path / "rows.jsonl").write_bytes(whole + whole[:100])
    assert [row.seed for row in read_rows(tmp_path, Row, START).rows] == [1]
    with RowsFile(tmp_path, Row, START) as rows:
        assert [row.seed for row in rows.recovered().rows] == [1]
        rows.append(row_of(report(), cell=0, seed=2, attempt=1))
    assert [row.seed for row in read_rows(tmp_path, Row, START).rows] == [1, 2]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(b'{"cell": 0}\n')
    with pytest.raises(HistoryError, match=r"rows\.jsonl:1: not a row"):
        read_rows(tmp_path, Row, START)


def test_a_full_disk_keeps_every_whole_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, calls = os.write, list[int]()

    def refused(descriptor: int, content: bytes) -> int:
        calls.append(len(content))
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left")
        return write(descriptor, content[:50])

    with RowsFile(tmp_path, Row, START) as rows:
        rows.append(row_of(report(), cell=0, seed=1, attempt=1))
        monkeypatch.setattr(os, "write", refused)
        with pytest.raises(OSError, match="No space left"):
            rows.append(row_of(report(), cell=0, seed=2, attempt=1))
        monkeypatch.undo()
        rows.append(row_of(report(), cell=0, seed=3, attempt=1))
    assert [row.seed for row in read_rows(tmp_path, Row, START).rows] == [1, 3]


def test_two_processes_cannot_carry_out_one_sweep(tmp_path: Path) -> None:
    with RowsFile(tmp_path, Row, START), pytest.raises(ScenarioError, match="another process carries out this sweep"):
        RowsFile(tmp_path, Row, START).__enter__()


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
    run = report(findings=(finding("G1c", "ww"),), facts={"streams": {"events": 3}}, code="/home/x/cluster.py:Cluster")
    row = row_of(run, cell=1, seed=9, attempt=2)
    assert (row.key, row.report.seed, row.report.facts, row.report.code) == ((1, 9), 9, {}, None)
    assert row.report.promises
    assert row.classes == (class_of("tutorial", finding("G1c", "ww")),)


@pytest.mark.parametrize("relations", [(), ("ww",), ("ww", "ww"), ("wr", "rw", "rw", "ww"), ("rw", "wr", "rw", "wr")])
def test_a_slim_finding_is_of_the_same_class(relations: tuple[str, ...]) -> None:
    whole = finding("G1c", *relations)
    (slim,) = row_of(report(findings=(whole,)), cell=0, seed=0, attempt=1).report.findings
    assert (slim.symptom, class_of("ndb", slim)) == (whole.symptom, class_of("ndb", whole))
    assert len(slim.cycle) <= len(relations)
    assert not any(step.sentence or step.source for step in slim.cycle)


def changed(lines: list[bytes]) -> dict[str, list[bytes]]:
    """What careless hands make of a file of three rows, by name."""
    return {
        "a changed row": [lines[0].replace(b'"seed":1', b'"seed":7'), *lines[1:]],
        "a row left out": [lines[0], lines[2]],
        "the first row left out": lines[1:],
        "rows in another order": [lines[1], lines[0], lines[2]],
        "a row twice": [lines[0], lines[0], *lines[1:]],
        "a row of another sweep": [*lines, lines[2]],
    }


@pytest.mark.parametrize("what", changed([b"", b"", b""]))
def test_a_row_that_does_not_follow_from_the_one_before_is_named(tmp_path: Path, what: str) -> None:
    with RowsFile(tmp_path, Row, START) as rows:
        for seed in (1, 2, 3):
            rows.append(row_of(report(), cell=0, seed=seed, attempt=1))
    path = tmp_path / "rows.jsonl"
    spoiled = changed(path.read_bytes().splitlines(keepends=True))[what]
    path.write_bytes(b"".join(spoiled))
    with pytest.raises(HistoryError, match=r"rows\.jsonl:[1-4]: does not follow from (line [123]|the order)"):
        read_rows(tmp_path, Row, START)
    with pytest.raises(HistoryError, match="does not follow"), RowsFile(tmp_path, Row, START) as rows:
        rows.recovered()


def test_rows_through_a_link_or_a_pipe_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").symlink_to("elsewhere")
    with pytest.raises(HistoryError, match="is a link or no file"):
        RowsFile(tmp_path, Row, START).__enter__()
    (tmp_path / "rows.jsonl").unlink()
    os.mkfifo(tmp_path / "rows.jsonl")
    with pytest.raises(HistoryError, match="is a link or no file"):
        RowsFile(tmp_path, Row, START).__enter__()
