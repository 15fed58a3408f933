"""A hunt is the same however many runs it makes at once and whether it was interrupted, and stops at what is new."""

import errno
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import pytest

from harness.campaign.ledger.orders import ORDER_FILE
from harness.campaign.ledger.rows import ROWS_FILE, RowsFile, class_of, read_rows
from harness.campaign.sweep import StoreFull
from harness.core.errors import HistoryError, ScenarioError, SeamarkError
from harness.core.verdict import Verdict
from harness.hunt import search
from harness.hunt.document import Trophy, hunt_of
from harness.hunt.page import hunt_page
from harness.hunt.points import at_points
from harness.hunt.rows import Row, Tried
from harness.hunt.search import Begun, Limits, Result, begin, carry_out, resumed
from harness.hunt.space import space_of
from harness.report.model import FindingRow, PromiseRow, Report
from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario
from harness.shrink.case import Case

CODE = installed("tutorial")


def finding(anomaly: str) -> FindingRow:
    return FindingRow(anomaly=anomaly, fingerprint="f", checker="c", count=1, sentence=f"{anomaly}.", promise="P")


def tried(case: Case) -> Tried:
    """A made-up run: what it reaches depends on its faults, and some of it is wrong."""
    features = {f"{step.fault} {step.at_ns // 500_000_000}": step.at_ns for step in case.plan.steps}
    together = {step.package for step in case.plan.steps}
    found: tuple[FindingRow, ...] = (finding("split-brain"),) if case.scenario.seed % 7 == 0 else ()
    found += (finding("stall"),) if len(together) > 2 and len(case.plan.steps) > 9 else ()
    verdict = Verdict.INVALID if found else Verdict.VACUOUS
    promises = (PromiseRow(id="P", verdict="violated", witnesses=1, text="", source=""),) if found else ()
    report = Report(
        verdict=verdict.value,
        exit_code=verdict.exit_code,
        reason="made up",
        cluster="tutorial",
        findings=found,
        promises=promises,
    )
    return Tried(report=report, features=features)


class Inline:
    """A pool that does the work at once."""

    slots = 1
    tried: list[str]

    def __init__(self, work: Callable[[Case], Tried], jobs: int) -> None:
        self.work = tried

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        pass

    def submitted(self, case: Case) -> "Future[Tried]":
        Inline.tried.append(case.key())
        done: Future[Tried] = Future()
        done.set_result(self.work(case))
        return done


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    Inline.tried = []
    monkeypatch.setattr(search, "LocalPool", Inline)


def begun(store: Path, *known: str, seed: int = 1, is_at_points: bool = False) -> Begun:
    scenario = Scenario(cluster="tutorial", time_s=6.0)
    return begin(scenario, CODE, store, seed=seed, jobs=2, known=known, is_at_points=is_at_points)


def hunted(hunt: Begun, runs: int) -> Result:
    order = msgspec.structs.replace(hunt.order, limits=Limits(runs=runs))
    return carry_out(msgspec.structs.replace(hunt, order=order), 2, lambda result: None)


def keys(rows: list[Row]) -> list[str]:
    return [row.key for row in rows]


def test_the_same_seed_makes_the_same_runs_and_another_seed_others(tmp_path: Path) -> None:
    one, same, other = (begun(tmp_path, "split-brain", "stall", seed=seed) for seed in (1, 1, 2))
    runs = [keys(hunted(each, 30).rows) for each in (one, same, other)]
    assert runs[0] == runs[1] != runs[2]
    assert len(set(runs[0])) > 25


def test_a_hunt_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    whole, cut = (begun(tmp_path, "split-brain", "stall") for _ in range(2))
    rows = hunted(whole, 40).rows
    hunted(cut, 17)
    with (cut.folder / ROWS_FILE).open("ab") as file:
        file.write(b'{"number": 17, "orig')  # What a kill in the middle of a line leaves.
    Inline.tried = []
    again = resumed(cut.folder, tmp_path, None)
    result = hunted(again, 40)
    assert keys(result.rows) == keys(rows)
    assert len(Inline.tried) == 40 - 17
    assert result.corpus.counts == hunted(resumed(whole.folder, tmp_path, None), 40).corpus.counts


def test_most_runs_come_from_those_that_reached_something_first(tmp_path: Path) -> None:
    rows = hunted(begun(tmp_path, "split-brain", "stall"), 80).rows
    first = {row.number for row in rows if row.new}
    changed = [row for row in rows if row.parents]
    assert len(changed) > 30
    assert all(parent in first and parent < row.number for row in changed for parent in row.parents)
    assert {row.origin for row in rows if not row.parents} == {"drawn"}


def test_the_first_runs_are_all_drawn(tmp_path: Path) -> None:
    rows = hunted(begun(tmp_path, "split-brain", "stall"), search.FIRST + 30).rows
    assert {row.origin for row in rows[: search.FIRST]} == {"drawn"}
    assert any(row.parents for row in rows)


def test_each_fault_at_each_failpoint_comes_before_what_is_drawn(tmp_path: Path) -> None:
    hunt = begun(tmp_path, "split-brain", "stall", is_at_points=True)
    fixed = at_points(space_of(hunt.order.scenario, load_cluster(CODE)), 1)
    assert len(fixed) > 10
    rows = hunted(hunt, len(fixed) + search.FIRST + 20).rows
    assert keys(rows[: len(fixed)]) == [case.key() for case in fixed]
    assert {row.origin for row in rows[: len(fixed)]} == {"at failpoint"}
    assert {row.origin for row in rows[len(fixed) : len(fixed) + search.FIRST]} == {"drawn"}
    assert keys(hunted(resumed(hunt.folder, tmp_path, None), len(rows)).rows) == keys(rows)


def test_a_cluster_whose_faults_reach_no_failpoint_is_refused(tmp_path: Path) -> None:
    scenario = Scenario(cluster="tutorial", time_s=6.0, nemesis=("partition",))
    with pytest.raises(ScenarioError, match="no failpoints, or no fault of --nemesis can strike at one"):
        begin(scenario, CODE, tmp_path, seed=1, jobs=2, known=(), is_at_points=True)


def test_it_stops_at_a_finding_that_is_not_known(tmp_path: Path) -> None:
    split_brain = class_of("tutorial", finding("split-brain"))
    result = hunted(begun(tmp_path, split_brain), 400)
    assert result.found is not None
    assert result.found == result.rows[-1]
    assert [each.anomaly for each in result.found.findings(frozenset({split_brain}))] == ["stall"]
    assert not any(row.findings(frozenset({"split-brain", "stall"})) for row in result.rows)


def test_a_known_finding_ends_nothing_and_is_named(tmp_path: Path) -> None:
    hunt = begun(tmp_path, "split-brain P", "stall")
    result = hunted(hunt, 40)
    assert result.found is None
    assert len(result.rows) == 40
    document = hunt_of(hunt, result, None)
    assert document.known["split-brain P"] == sum("split-brain" in str(row.report.findings) for row in result.rows)
    assert document.verdict == "vacuous"  # Made-up runs have no exposure, which is no pass.
    assert sum(document.new) == document.features == len(result.corpus.counts)
    page = hunt_page(document, result.rows, tmp_path)
    assert "split-brain P" in page
    assert "<script>alert" not in page


def test_the_page_links_the_run_of_the_finding_and_the_shrunk_one(tmp_path: Path) -> None:
    hunt = begun(tmp_path, "split-brain", "stall")
    result = hunted(hunt, 2)
    run, small = (str(tmp_path / "store" / name) for name in ("run", "small"))
    found = Trophy(
        symptom="stall",
        anomaly="stall",
        promise=None,
        sentence="",
        fingerprint="",
        number=0,
        run=run,
        command="",
        small=small,
    )
    page = hunt_page(hunt_of(hunt, result, found), result.rows, tmp_path / "hunt")
    assert [f'href="../store/{name}/report.html"' in page for name in ("run", "small")] == [True, True]


def test_a_run_whose_process_died_is_trouble_and_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hunt = begun(tmp_path, "split-brain", "stall")
    whole = Inline.submitted

    def dying(self: Inline, case: Case) -> "Future[Tried]":
        if len(Inline.tried) != 5:
            return whole(self, case)
        Inline.tried.append("")
        died: Future[Tried] = Future()
        died.set_exception(BrokenExecutor("gone"))
        return died

    monkeypatch.setattr(Inline, "submitted", dying)
    document = hunt_of(hunt, hunted(hunt, 10), None)
    assert (document.verdict, document.exit_code) == ("error", 4)
    assert "1 of 10 runs failed; its process died" in document.reason


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"key": "0" * 32}, "run 1 is not the one that this Seamark makes"),
        ({"number": 5}, "run 5 is not the one"),
        ({"reached": (10**6,)}, "first are not among those that it reached"),
        ({"new": {}, "reached": (10**6,)}, "it reached feature 1000000, and there are"),
        ({"new": {}, "reached": (0, 0)}, "or one is there twice"),
        ({"case": None}, "its case is missing"),
        ({"new": {}, "reached": ()}, "it has a case, and nothing for it to show"),
        ({"report": {"verdict": "valid", "exit_code": 0}}, "its verdict is valid, and by its own facts it is vacuous"),
        ({"report": {"exit_code": 0}}, "has exit code 3, not 0"),
    ],
)
def test_a_row_that_no_run_left_is_named(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    hunt = begun(tmp_path, "split-brain", "stall", seed=3)
    hunted(hunt, 3)
    rows = read_rows(hunt.folder, Row, hunt.order.start).rows
    assert rows[1].new
    assert not rows[1].report.findings
    if "report" in changes:
        changes = {"report": msgspec.structs.replace(rows[1].report, **changes["report"])}
    rows[1] = msgspec.structs.replace(rows[1], **changes)
    (hunt.folder / ROWS_FILE).unlink()
    with RowsFile(hunt.folder, Row, hunt.order.start) as file:  # As somebody would who can run Seamark.
        for row in rows:
            file.append(row)
    with pytest.raises(HistoryError, match=rf"rows\.jsonl:2: .*{problem}"):
        hunted(hunt, 3)


def test_a_resumed_hunt_keeps_its_limits_until_others_are_named(tmp_path: Path) -> None:
    scenario = Scenario(cluster="tutorial", time_s=6.0)
    hunt = begin(scenario, CODE, tmp_path, seed=1, jobs=2, known=(), limits=Limits(runs=12, seconds=60.0))
    assert resumed(hunt.folder, tmp_path, None).order.limits == Limits(runs=12, seconds=60.0)
    more = resumed(hunt.folder, tmp_path, None, runs=40)
    assert more.order.limits == Limits(runs=40, seconds=60.0)
    assert more.order.start == hunt.order.start
    assert resumed(hunt.folder, tmp_path, None).order == more.order


def test_a_full_disk_loses_nothing_that_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hunt = begun(tmp_path, "split-brain", "stall")
    append, left = RowsFile.append, iter(range(4))

    def filling(self: RowsFile[Row], row: Row) -> None:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(self, row)

    monkeypatch.setattr(RowsFile, "append", filling)
    with pytest.raises(StoreFull, match=r"No space left.*make room, and run seamark hunt --resume"):
        hunted(hunt, 10)
    monkeypatch.setattr(RowsFile, "append", append)
    Inline.tried = []
    assert len(hunted(hunt, 10).rows) == 10
    assert len(Inline.tried) == 6


@pytest.mark.parametrize("damage", ["no folder", "no order", "other code"])
def test_what_cannot_be_resumed_says_why(tmp_path: Path, damage: str) -> None:
    hunt = begun(tmp_path)
    order = hunt.folder / ORDER_FILE
    kind: type[SeamarkError]
    if damage == "other code":
        order.write_text(order.read_text().replace(hunt.order.code, "0" * 64))
        kind, message = ScenarioError, "the code of its clusters or of Seamark has changed"
    elif damage == "no order":
        order.write_text("[]")
        kind, message = HistoryError, "not the order of a hunt"
    else:
        hunt = msgspec.structs.replace(hunt, folder=tmp_path / "nowhere")
        kind, message = ScenarioError, "not a hunt's folder"
    with pytest.raises(kind, match=message):
        resumed(hunt.folder, tmp_path, None)
