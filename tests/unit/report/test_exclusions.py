"""What a finding is not: only what the history itself excludes is called excluded."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.core.record import Complete, Invoke, Mark, MicroOp, Record, StreamEvent
from harness.core.verdict import Step, Verdict
from harness.record.store import RunFile
from harness.report.evidence import choice, slices
from harness.report.exclusions import Exclusion, Writes, exclusions, read_writes
from harness.report.model import FindingRow
from harness.report.series import read_series
from nemesis.plan import Plan
from tests.unit.report.conftest import MS, Written, operation, report, row

RUN = RunFile(
    versions={},
    cluster="c",
    runtime="sim",
    seed=1,
    options={},
    workload="w",
    types=(),
    checks=(),
    plan=Plan(steps=()),
    promises=(),
)
FINDING = FindingRow(fingerprint="f", anomaly="a", checker="one", sentence="s", promise="P-1", ops=(0, 1))


def excluded(folder: Path, finding: FindingRow = FINDING, run_file: RunFile | None = RUN) -> dict[str, Exclusion]:
    """What is said, by the first word that tells them apart."""
    series = read_series(folder, run_file)
    chosen = choice(series, finding, "f1")
    assert chosen is not None
    (found,) = slices(folder, [chosen], is_order=series.is_order)
    about = report(Verdict.INVALID, findings=(finding, replace(finding, checker="two", promise="P-2")))
    every = exclusions(about, finding, found, series=series, writes=read_writes(folder), run_file=run_file)
    return {each.explanation: each for each in every}


def two(**changed: object) -> list[Record]:
    return [*operation(0, 200, 210), *operation(1, 220, 230, **changed)]  # type: ignore[arg-type]  # By name.


def wrote(index: int, value: int, *, outcome: str = "ok", error: str | None = None) -> Iterable[Record]:
    mops = (MicroOp("append", 7, value),)
    yield Invoke(index, index * 100 * MS, 0, index, "txn", None, mops)
    yield Complete(index, (index * 100 + 10) * MS, outcome, None, mops, error)  # type: ignore[arg-type]  # An outcome.


def test_values_that_were_written_once_name_their_writers(written: Written) -> None:
    one = excluded(written([*wrote(0, 1), *wrote(1, 2)]))["Two writers wrote the same value"]
    assert one.is_excluded
    assert "each of the 2 values" in one.because


def test_a_value_that_was_written_twice_is_said(written: Written) -> None:
    one = excluded(written([*wrote(0, 1), *wrote(1, 1), *wrote(2, 2)]))["Two writers wrote the same value"]
    assert not one.is_excluded
    assert "1 of 2 values" in one.because


def test_a_value_is_written_again_only_to_the_same_key_of_the_same_table(written: Written) -> None:
    rows = [("a", 7, 1), ("b", 7, 1), (None, 7, 1), ("a", 8, 1), ("a", 9, None), ("a", 9, None), ("b", 9, None)]
    records = list[Record]()
    for index, (table, key, value) in enumerate(rows):
        mops = (MicroOp("w", key, value, table),)
        records += [
            Invoke(index, index * 100 * MS, 0, index, "txn", None, mops),
            Complete(index, (index * 100 + 10) * MS, "ok", None, mops),
        ]
    assert read_writes(written(records)) == Writes(count=6, repeated=1)


def test_reads_of_the_same_value_are_no_writes(written: Written) -> None:
    read = (MicroOp("r", 7, [1]),)
    reads = [
        record
        for index in (1, 2)
        for record in (
            Invoke(index, index * MS, 0, index, "txn", None, (MicroOp("r", 7),)),
            Complete(index, (index + 1) * MS, "ok", None, read),
        )
    ]
    writes = read_writes(written([*wrote(0, 1), *reads]))
    assert (writes.count, writes.repeated) == (1, 0)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [("info", "T1 (unknown: timeout)"), ("fail", "T1 (failed: timeout)"), (None, "T1 (never answered)")],
)
def test_evidence_without_a_clear_answer_is_named(outcome: str | None, said: str, written: Written) -> None:
    last = list(wrote(1, 2, outcome=outcome or "ok", error="timeout"))
    one = excluded(written([*wrote(0, 1), *(last if outcome else last[:1])]))["An unclear answer was misread"]
    assert not one.is_excluded
    assert said in one.because
    assert "T0" not in one.because


def test_clocks_count_only_where_times_are_compared(written: Written) -> None:
    folder = written(two())
    steps = (Step(source="T0", target="T1", relation="ww", sentence="s"),)
    timed = (*steps, Step(source="T1", target="T0", relation="realtime", sentence="s"))
    assert (
        excluded(folder, replace(FINDING, cycle=steps))["A clock was wrong"].because
        == "no step of the proof compares times"
    )
    assert "step 2 of the proof" in excluded(folder, replace(FINDING, cycle=timed))["A clock was wrong"].because
    assert excluded(folder)["A clock was wrong"].is_excluded


def test_a_clock_that_ran_back_is_not_excluded(written: Written) -> None:
    folder = written([*operation(0, 220, 230), *operation(1, 200, 210)])
    assert not excluded(folder)["A clock was wrong"].is_excluded


def test_of_a_history_from_elsewhere_nothing_is_claimed_that_only_its_recorder_knows(written: Written) -> None:
    found = excluded(written(two()), run_file=None)
    assert "A client sent a request twice" not in found
    assert "A clock was wrong" not in found
    assert "A client sent a request twice" in excluded(written(two()))


@pytest.mark.parametrize(("session", "is_excluded"), [(0, True), (1, False)])
def test_events_of_two_connections_may_have_a_reconnect_between_them(
    session: int, is_excluded: bool, written: Written
) -> None:
    events: list[StreamEvent] = [row(240, 1, 1, 1), replace(row(250, 1, 2, 2, 1), session=session)]
    found = excluded(written([*two(), *events]), replace(FINDING, ops=(), events=(4, 5)))
    assert found["A subscriber connected again in between"].is_excluded is is_excluded
    assert "Two writers wrote the same value" not in found


def test_what_final_operations_show_is_not_only_late(written: Written) -> None:
    final = Mark(215 * MS, "final")
    records = [*operation(0, 200, 210), final, *operation(1, 220, 230)]
    assert "It was only late" in excluded(written(records))
    assert "It was only late" not in excluded(written([*two(), Mark(250 * MS, "final")]))


def test_one_check_alone_may_be_mistaken(written: Written) -> None:
    folder = written(two())
    assert not excluded(folder)["One check is mistaken"].is_excluded
    assert excluded(folder, replace(FINDING, promise="P-2"))["One check is mistaken"].because.startswith("2 checks")
    assert "One check is mistaken" not in excluded(folder, replace(FINDING, promise=None))
