"""The list of a store: runs of every state, half-written ones among them, each file read once."""

import os
from pathlib import Path

import pytest

from harness.report.model import FindingRow, to_json
from harness.serve.index import COUNT_MAX, TEXT_MAX, Index
from harness.serve.listing import PAGE_ROWS, Choice, first_sight, listed
from tests.unit.serve.stores import TORN, aged, journal, judged, planned, report


def states(store: Path) -> dict[str, str]:
    return {row.name.rpartition("-")[2]: row.state for row in Index(store).rows()}


def test_half_written_runs_are_rows_like_any_other(tmp_path: Path) -> None:
    judged(tmp_path, report(TORN), "20261123T010201Z-1")
    running = planned(tmp_path, "20261123T010202Z-2")
    journal(running, is_whole=False)
    dead = planned(tmp_path, "20261123T010203Z-3")
    journal(dead, is_whole=False)
    aged(dead)
    (tmp_path / "tutorial" / "20261123T010204Z-4").mkdir()  # It died before its run.json.
    for number, text in (
        (5, '{"verdict": "val'),
        (6, ""),
        (7, '{"verdict": "splendid", "reason": ""}'),
        (8, "[" * 100_000),
    ):
        (judged(tmp_path, report(), f"2026112{number}T010205Z-{number}") / "report.json").write_text(text)
    linked = judged(tmp_path, report(), "20261123T010209Z-9") / "report.json"
    linked.rename(tmp_path / "elsewhere.json")
    linked.symlink_to(tmp_path / "elsewhere.json")
    (judged(tmp_path, report(), "20261123T010210Z-10") / "report.json").unlink()
    (tmp_path / "tutorial" / "20261123T010210Z-10" / "report.json").mkdir()
    assert states(tmp_path) == {
        "1": "invalid", "2": "running", "3": "not-judged", "4": "unreadable", "5": "unreadable", "6": "unreadable",
        "7": "unreadable", "8": "unreadable", "9": "unreadable", "10": "unreadable",
    }  # fmt: skip
    rows = Index(tmp_path).rows()
    assert all("\n" not in row.reason for row in rows)
    assert [row.name for row in rows] == sorted((row.name for row in rows), reverse=True)


def test_what_is_no_run_is_not_listed(tmp_path: Path) -> None:
    for place in (
        "batches/20261123T010203Z-1",
        "sweeps/nightly",
        "sweeps/nightly/20261123T010203Z-1",
        "tutorial/notes",
    ):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    judged(tmp_path / "elsewhere", report())
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere" / "tutorial")
    assert states(tmp_path) == {}
    assert states(tmp_path / "nowhere") == {}


def test_a_thousand_runs_are_read_once_and_shown_page_by_page(tmp_path: Path) -> None:
    first = judged(tmp_path, report(TORN), "20261123T000000Z-0") / "report.json"
    for number in range(1, 1000):
        run = first.parent.parent / f"20261123T000000Z-{number}"
        run.mkdir()
        (run / "report.json").hardlink_to(first)
    index = Index(tmp_path)
    assert (len(first_sight(index).rows), first_sight(Index(tmp_path)).count) == (PAGE_ROWS, 1000)
    assert index.read_count == PAGE_ROWS, "the first page waits for no other"
    index = Index(tmp_path)
    found = listed(index.rows(), Choice(), 3)
    assert index.read_count == 1000
    assert (len(found.rows), found.first, found.page_count, found.all_count) == (PAGE_ROWS, 101, 20, 1000)
    assert len({row.name for page in (1, 2, 3) for row in listed(index.rows(), Choice(), page).rows}) == 150
    assert index.read_count == 1000, "nothing changed, so nothing is read"
    judged(tmp_path, report(verdict="vacuous"), "20261124T000000Z-1")
    changed = first.parent.with_name("20261123T000000Z-5") / "report.json"
    changed.unlink()
    changed.write_bytes(to_json(report()))
    assert listed(index.rows(), Choice(verdict="invalid"), 1).count == 999
    assert index.read_count == 1002


def test_a_run_that_is_judged_again_is_read_again(tmp_path: Path) -> None:
    run = judged(tmp_path, report(TORN))
    index = Index(tmp_path)
    assert [row.state for row in index.rows()] == ["invalid"]
    (run / "report.json").write_bytes(to_json(report(reason="another")))
    assert [(row.state, row.reason) for row in index.rows()] == [("valid", "another")]
    (run / "report.json").unlink()
    run.rename(run.with_name("renamed"))
    assert index.rows() == []


OTHER = FindingRow(fingerprint="beef", anomaly="lost-update", checker="c", sentence="s")


@pytest.mark.parametrize(
    ("choice", "seeds"),
    [
        (Choice(), [4, 3, 2, 1]),
        (Choice(cluster="ndb"), [4]),
        (Choice(verdict="invalid"), [3, 2]),
        (Choice(finding="f00d"), [3, 2]),
        (Choice(finding="lost-update"), [3]),
        (Choice(finding="torn"), []),
        (Choice(cluster="tutorial", verdict="valid"), [1]),
        (Choice(verdict="'; drop"), []),
    ],
)
def test_runs_are_chosen_by_cluster_verdict_and_fingerprint(tmp_path: Path, choice: Choice, seeds: list[int]) -> None:
    contents = (report(seed=1), report(TORN, seed=2), report(TORN, OTHER, seed=3), report(cluster="ndb", seed=4))
    for number, content in enumerate(contents):
        judged(tmp_path, content, f"2026112{number}T000000Z-{content.seed}")
    assert [row.seed for row in listed(Index(tmp_path).rows(), choice, 1).rows] == seeds


@pytest.mark.parametrize("page", [-5, 0, 1, 2, 10**30])
def test_a_page_that_is_not_there_is_the_nearest(tmp_path: Path, page: int) -> None:
    judged(tmp_path, report())
    assert listed(Index(tmp_path).rows(), Choice(), page).page == 1
    assert listed([], Choice(), page).rows == []


def test_a_long_reason_is_cut_and_says_so(tmp_path: Path) -> None:
    judged(tmp_path, report(reason="k" * 1_000_000))
    (row,) = Index(tmp_path).rows()
    assert len(row.reason) < 500
    assert "1,000,000 characters" in row.reason


def test_what_the_list_keeps_of_a_report_is_bounded(tmp_path: Path) -> None:
    long = "k" * 10_000
    findings = [FindingRow(fingerprint=long, anomaly=long, checker="c", sentence="s", promise=long)] * 3 * COUNT_MAX
    judged(tmp_path, report(*findings, reason=long, cluster=long, bugs=(long,) * 3 * COUNT_MAX))
    (row,) = Index(tmp_path).rows()
    assert (len(row.findings), len(row.bugs)) == (COUNT_MAX, COUNT_MAX)
    assert len(repr(row)) < COUNT_MAX * 5 * TEXT_MAX
    assert row.reason.endswith("… (10,000 characters)")


def test_a_report_that_is_too_large_is_a_row_that_says_so(tmp_path: Path) -> None:
    run = judged(tmp_path, report())
    os.truncate(run / "report.json", 1 << 40)
    (row,) = Index(tmp_path).rows()
    assert (row.state, "has 1,099,511,627,776 bytes, the limit is 8,388,608" in row.reason) == ("unreadable", True)
