"""How often a bug is found is estimated without bias, in an exact interval, and compared with what was."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

from harness.campaign.calibration.cells import Cell, Limits, cells_of
from harness.campaign.calibration.document import (
    BugCell,
    Calibration,
    CorrectCell,
    Interval,
    Sampling,
    interval_of,
    median_seeds,
    merged,
    rate_of,
    read_calibration,
    worse,
)
from harness.campaign.calibration.pages import DESIGNS, PAGE, README, SOURCE, rewritten
from harness.campaign.calibration.rows import SCRIPTED, CalibrationRow, CellRows, calibration_row, syntax
from harness.campaign.calibration.shown import calibration_markdown, calibration_page, lines
from harness.campaign.ledger.rows import row_of
from harness.core.errors import HistoryError, ScenarioError
from harness.core.verdict import Verdict
from tests.unit.campaign.reports import finding, report

LIMITS = Limits(hits=2, runs=5, correct=3, time_s=20.0)
PLANS = Path(__file__).resolve().parents[2] / "planted"


def row(seed: int, *, is_hit: bool = False, kinds: tuple[str, ...] = ("rules",)) -> CalibrationRow:
    if not is_hit:
        return CalibrationRow(seed=seed, verdict="valid", reason="it held")
    return CalibrationRow(
        seed=seed, verdict="invalid", reason="it broke", promise="P1", anomaly="late-event", checker="x", kinds=kinds
    )


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    bug, _ = cells_of(["ndb"], ["no-arbitration"], LIMITS, tmp_path, PLANS)
    return bug


def test_a_schedule_has_the_scenario_that_it_was_written_for(cell: Cell) -> None:
    drawn_run, scripted = cell.scenario_of(3), cell.scenario_of(SCRIPTED)
    assert (drawn_run.seed, drawn_run.time_s) == (3, 20.0)
    assert (scripted.seed, scripted.time_s, scripted.clients) == (27, 3.0, 8)
    assert scripted.bugs == drawn_run.bugs == ("no-arbitration",)


def test_a_schedule_may_have_a_script_and_damage_is_named(tmp_path: Path) -> None:
    bug, _ = cells_of(["ticdc"], ["no-generation"], LIMITS, tmp_path, PLANS)
    scripted = bug.scenario_of(SCRIPTED)
    assert (scripted.workload, scripted.bugs) == ("region-churn", ("no-generation",))
    assert scripted.script is not None
    (tmp_path / "ndb").mkdir()
    (tmp_path / "ndb" / "no-arbitration.json").write_text('{"steps": []}')
    with pytest.raises(ScenarioError, match=r"no-arbitration.json: not a scenario and a plan: .*`scenario`"):
        cells_of(["ndb"], ["no-arbitration"], LIMITS, tmp_path, tmp_path)


def drawn(cell: Cell, hits: set[int]) -> list[int]:
    """The seeds that the cell draws, two at a time, if those are hits."""
    seeds = list[int]()
    while True:
        begun = list[int]()
        while len(begun) < 2 and (seed := cell.following()) is not None:
            cell.begun.add(seed)
            begun.append(seed)
        if not begun:
            return seeds
        for seed in reversed(begun):  # The later one ends first.
            cell.kept.add(row(seed, is_hit=seed in hits))
            cell.begun.discard(seed)
        seeds += begun


def test_seeds_are_drawn_until_enough_are_hits_and_what_was_drawn_beyond_does_not_count(cell: Cell) -> None:
    assert drawn(cell, {0, 2, 3}) == [0, 1, 2, 3]
    found = cell.outcome(0.0)
    assert (found.runs, found.hits, found.rate, found.scripted) == (3, 2, 0.5, None)
    assert (found.promise, found.anomaly, found.found_by) == ("P1", "late-event", "rules")


def test_a_bug_that_no_seed_shows_gets_its_schedule(cell: Cell) -> None:
    assert drawn(cell, set()) == [0, 1, 2, 3, 4, SCRIPTED]
    assert cell.outcome(0.0).scripted == "not found"
    cell.kept.add(row(SCRIPTED, is_hit=True))
    found = cell.outcome(0.0)
    assert (found.anomaly, found.promise, found.rules) == ("late-event", "P1", 1)
    assert (found.runs, found.hits, found.rate, found.median_seeds, found.scripted) == (5, 0, 0.0, None, "found")


def test_a_bug_that_is_shown_needs_no_schedule(cell: Cell) -> None:
    assert drawn(cell, {4}) == [0, 1, 2, 3, 4]
    assert (cell.outcome(0.0).rate, cell.outcome(0.0).scripted) == (0.2, None)


def test_rows_are_read_again_before_and_after_they_are_one_file(cell: Cell, tmp_path: Path) -> None:
    drawn(cell, {0, 2})
    again, _ = cells_of(["ndb"], ["no-arbitration"], LIMITS, tmp_path, PLANS)
    assert again.following() is None
    again.kept.complete()
    (file,) = (tmp_path / "ndb" / "no-arbitration" / cell.key).iterdir()
    assert file.name == "rows.parquet"
    assert CellRows(file.parent).rows == cell.kept.rows


def many_rows(path: Path, count: int) -> None:
    """A small file with many rows that are all the same."""
    cells: dict[str, object] = {"seed": 1, "verdict": "valid", "reason": "r"}
    pq.write_table(pa.table({name: pa.repeat(cell, count) for name, cell in cells.items()}), path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: many_rows(path, 500_000), "take more than 8 MiB"),
        (os.mkfifo, "is a link or no file"),
        (lambda path: path.symlink_to("/dev/zero"), "is a link or no file"),
        (lambda path: path.write_bytes(b"PAR1"), "cannot be read as Parquet"),
    ],
    ids=["rows", "pipe", "device", "damage"],
)
def test_rows_that_would_take_all_memory_or_time_are_refused(
    tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    make(tmp_path / "rows.parquet")
    with pytest.raises(HistoryError, match=f"rows.parquet: not rows of a calibration .*{message}"):
        CellRows(tmp_path)


def test_a_run_in_which_the_harness_failed_is_made_again_by_the_next_call(cell: Cell, tmp_path: Path) -> None:
    cell.kept.add(CalibrationRow(seed=0, verdict="error", reason="its process died"))
    assert cell.following() == 1
    again, _ = cells_of(["ndb"], ["no-arbitration"], LIMITS, tmp_path, PLANS)
    assert again.following() == 0


def test_other_words_are_the_same_key_and_other_code_is_another() -> None:
    source = b'''"""A file."""\ndef one() -> int:\n    """One."""\n    return 1\n'''
    assert syntax(source) == syntax(source.replace(b"One", b"1, always").replace(b"return", b"# Why.\n    return"))
    assert syntax(source) != syntax(source.replace(b"return 1", b"return 2"))


def test_a_cluster_in_containers_makes_fewer_runs_without_a_bug(tmp_path: Path) -> None:
    limits = Limits(hits=2, runs=2, correct=3, correct_in_containers=1)
    simulated, in_containers = (cells_of([name], [], limits, tmp_path, PLANS)[-1] for name in ("tutorial", "postgres"))
    assert [cell.scenario.runtime for cell in (simulated, in_containers)] == ["sim", "docker"]
    assert [len(drawn(cell, set())) for cell in (simulated, in_containers)] == [3, 1]


def test_other_options_are_another_key_and_run_again(cell: Cell, tmp_path: Path) -> None:
    drawn(cell, {0, 1})
    longer = msgspec.structs.replace(LIMITS, time_s=30.0)
    other, _ = cells_of(["ndb"], ["no-arbitration"], longer, tmp_path, PLANS)
    assert other.key != cell.key
    assert other.following() == 0


def test_an_unknown_bug_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="did you mean no-arbitration"):
        cells_of(["ndb"], ["no-arbitratoin"], LIMITS, tmp_path, None)


def test_clients_alone_find_more_only_if_their_checks_do(cell: Cell) -> None:
    for seed in (0, 1):
        cell.kept.add(row(seed, is_hit=True, kinds=("client", "graph", "rules")))
    assert cell.outcome(0.0).is_client_more
    assert not cell.outcome(1.0).is_client_more
    assert cell.outcome(0.0).found_by == "graph, rules, client"


def test_a_row_names_the_first_broken_promise_and_who_found_any() -> None:
    shown = report(Verdict.INVALID, findings=(finding("torn-unit"), finding("G0", promise=None), finding("late-event")))
    made = calibration_row(row_of(shown, cell=0, seed=3, attempt=1), 3)
    assert (made.is_hit, made.anomaly, made.promise, made.checker, made.kinds) == (
        *(True, "torn-unit", "P1", "streams"),
        ("rules",),
    )


def test_the_rate_is_without_bias() -> None:
    """Over all ways in which the last of five hits comes at some run, the estimate's mean is the rate."""
    rate, hits = 0.3, 5
    weights = [binom.pmf(hits - 1, runs - 1, rate) * rate for runs in range(hits, 400)]
    estimates = [rate_of(hits, runs, is_stopped_by_hit=True) for runs in range(hits, 400)]
    assert sum(w * e for w, e in zip(weights, estimates, strict=True)) == pytest.approx(rate, abs=1e-4)


@pytest.mark.parametrize(("hits", "runs"), [(0, 200), (5, 37), (3, 3)])
def test_the_interval_is_exact(hits: int, runs: int) -> None:
    found = interval_of(hits, runs)
    assert binom.sf(hits - 1, runs, found.low) == pytest.approx(0.025 if hits else 1.0, abs=1e-3)
    assert binom.cdf(hits, runs, found.high) == pytest.approx(0.025 if hits < runs else 1.0, abs=1e-3)


def test_as_many_seeds_as_the_median_show_a_bug_every_other_time() -> None:
    assert [median_seeds(rate) for rate in (0.0, 0.02, 0.5, 0.9)] == [None, 35, 1, 1]
    assert 0.98**35 < 0.5 < 0.98**34


def bug_cell(**changes: object) -> BugCell:
    usual = BugCell(
        cluster="ndb",
        bug="no-arbitration",
        description="half | go on",
        key="0",
        runs=40,
        hits=5,
        errors=0,
        rate=0.1,
        interval=Interval(low=0.04, high=0.27),
        median_seeds=7,
        promise="NDB-G25",
        anomaly="split-brain",
        checker="authority",
        graph=0,
        rules=0,
        client=0,
        state=5,
        is_client_more=False,
    )
    return msgspec.structs.replace(usual, **changes)


def calibration(cell: BugCell, *, alarms: int = 0) -> Calibration:
    correct = CorrectCell(
        cluster="ndb",
        key="0",
        runs=500,
        false_alarms=alarms,
        errors=0,
        client=0,
        interval=interval_of(alarms, 500),
        seeds=tuple(range(alarms)),
    )
    drawn = Sampling(cluster="ndb", versions={}, time_s=20.0, runs_max=200, hits_max=5)
    return Calibration(samplings=(drawn,), bugs=(cell,), correct=(correct,))


def test_clusters_that_are_measured_anew_replace_their_own_rows_alone() -> None:
    def of(cluster: str, rate: float) -> Calibration:
        one = calibration(bug_cell(rate=rate))
        return Calibration(
            samplings=tuple(msgspec.structs.replace(each, cluster=cluster) for each in one.samplings),
            bugs=tuple(msgspec.structs.replace(each, cluster=cluster) for each in one.bugs),
            correct=tuple(msgspec.structs.replace(each, cluster=cluster) for each in one.correct),
        )

    both = merged(of("ticdc", 0.2), of("ndb", 0.1))
    again = merged(of("ndb", 0.3), both)
    assert [(cell.cluster, cell.rate) for cell in again.bugs] == [("ndb", 0.3), ("ticdc", 0.2)]
    assert [each.cluster for each in again.samplings] == [each.cluster for each in again.correct] == ["ndb", "ticdc"]


def test_only_what_lies_below_its_interval_became_worse() -> None:
    before = calibration(bug_cell())
    assert worse(calibration(bug_cell(rate=0.041)), before) == []
    (line,) = worse(calibration(bug_cell(rate=0.01, hits=2, runs=200)), before)
    assert line == "ndb no-arbitration: 2 of 200 runs show it, a rate of 0.01, below 0.04 to 0.27"
    (line,) = worse(calibration(bug_cell(), alarms=1), before)
    assert line == "ndb: 1 of 500 runs without a bug are red: seeds 0"


def test_a_schedule_that_shows_nothing_any_more_became_worse() -> None:
    scripted = bug_cell(hits=0, rate=0.0, interval=interval_of(0, 200), scripted="found")
    lost = msgspec.structs.replace(scripted, scripted="not found")
    assert worse(calibration(scripted), calibration(scripted)) == []
    assert worse(calibration(lost), calibration(scripted)) == ["ndb no-arbitration: its schedule no longer shows it"]


def test_a_bug_that_only_its_schedule_shows_is_marked_everywhere() -> None:
    rare = bug_cell(
        hits=0, runs=200, rate=0.0, interval=interval_of(0, 200), median_seeds=None, anomaly=None, scripted="found"
    )
    for text in (
        calibration_markdown(calibration(rare)),
        calibration_page(calibration(rare)),
        *lines(calibration(rare)),
    ):
        assert "scripted only" in text or "without a bug" in text
    table = calibration_markdown(calibration(bug_cell()))
    assert "| `no-arbitration` | 5 of 40: 10 % | 4 % to 27 % | 7 | split-brain (NDB-G25) |" in table
    assert "ndb without a bug: 0 false alarms in 500 runs, below 0.735 % at 95 %." in table


def test_the_page_and_the_table_of_the_readme_follow_from_the_measurement() -> None:
    measured, readme = read_calibration(SOURCE), README.read_text(encoding="utf-8")
    renewal = "run .venv/bin/python -m harness.campaign.calibration.pages"
    assert PAGE.read_text(encoding="utf-8") == calibration_markdown(measured), renewal
    assert rewritten(readme, measured) == readme, renewal
    clusters = {cluster for design in DESIGNS for cluster in design.clusters}
    assert clusters.issuperset(each.cluster for each in measured.samplings)
