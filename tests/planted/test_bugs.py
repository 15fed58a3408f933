"""Each planted bug of the tutorial is found, by the promise that it breaks, and nothing is found without it."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from harness.core.record import Complete, Footer, Invoke, StreamEvent
from harness.judging.engines import in_threads
from harness.record.formats.parquet.parquet import write_history
from harness.record.store import HISTORY, RUN_FILE, read_run_file, write_run_file
from harness.report.model import FindingRow, Report
from harness.run.running import prepare
from harness.run.single import judge_run
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario
from tests.scenario.simulated import Simulated

SEED = 1
# Bug: the faults under which it shows, an anomaly that it causes, and the promise which that breaks.
BUGS: dict[str, tuple[tuple[str, ...] | None, str, str]] = {
    "lost-ack": (("partition",), "incompatible-order", "TUT-1"),
    "torn-watermark": (None, "torn-unit", "TUT-4"),
    "late-row": (None, "late-event", "TUT-2"),
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A run of a planted bug, where it is kept, and the report on it."""

    run: Path
    simulated: Simulated
    report: Report

    def finding(self, anomaly: str) -> FindingRow:
        return next(finding for finding in self.report.findings if finding.anomaly == anomaly)

    def event(self, seq: int) -> StreamEvent:
        record = self.simulated.evidence[seq]
        assert isinstance(record, StreamEvent)
        return record


def judged(store: Path, nemesis: tuple[str, ...] | None, *bugs: str) -> Judged:
    scenario = Scenario(cluster="tutorial", seed=SEED, time_s=12, nemesis=nemesis, bugs=bugs)
    run, _ = prepare(scenario, installed(scenario.cluster), store)
    simulated = Simulated(scenario)
    write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], run / HISTORY)
    return Judged(run, simulated, judge_run(run, in_threads))


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judged]:
    store = tmp_path_factory.mktemp("planted")
    print(f"seed {SEED}")
    return {bug: judged(store, nemesis, bug) for bug, (nemesis, _, _) in BUGS.items()}


@pytest.mark.parametrize("bug", BUGS)
def test_each_bug_is_found_by_the_promise_that_it_breaks(planted: dict[str, Judged], bug: str) -> None:
    _, anomaly, promise = BUGS[bug]
    report = planted[bug].report
    assert (report.verdict, report.exit_code) == ("invalid", 1)
    assert planted[bug].finding(anomaly).promise == promise
    assert promise in {row.id for row in report.promises if row.verdict == "violated"}


@pytest.mark.parametrize("nemesis", [("partition",), None])
def test_the_same_run_without_a_bug_passes(tmp_path: Path, nemesis: tuple[str, ...] | None) -> None:
    report = judged(tmp_path, nemesis).report
    assert (report.verdict, report.exit_code, report.findings) == ("valid", 0, ())
    assert all(row.verdict == "holds" for row in report.promises)


@pytest.mark.parametrize("bug", BUGS)
def test_no_check_knows_which_bug_is_on(planted: dict[str, Judged], tmp_path: Path, bug: str) -> None:
    run = Path(shutil.copytree(planted[bug].run, tmp_path / "something" / "else"))
    run_file = read_run_file(run / RUN_FILE)
    options = run_file.options | {"bugs": [], "seed": 0}
    write_run_file(run, msgspec.structs.replace(run_file, bugs=(), options=options, seed=0, cluster="nobody's"))
    report, again = planted[bug].report, judge_run(run, in_threads)
    assert (again.verdict, again.findings) == (report.verdict, report.findings)
    assert again.bugs == ()
    assert again.history_sha256 == report.history_sha256


def test_a_lost_append_is_told_by_the_two_reads_that_contradict_each_other(planted: dict[str, Judged]) -> None:
    judgement = planted["lost-ack"]
    finding = judgement.finding("incompatible-order")
    evidence = judgement.simulated.evidence
    reads = [
        {str(mop.key): mop.value for mop in record.mops or () if mop.f == "r"}
        for record in evidence
        if isinstance(record, Complete) and record.index in finding.ops and record.outcome == "ok"
    ]
    assert len(reads) == 2
    keys = [key for key in reads[0].keys() & reads[1].keys() if _are_incompatible(reads[0][key], reads[1][key])]
    assert any(f"read k{key} as" in finding.sentence for key in keys)
    assert all(f"T{index} " in finding.sentence for index in finding.ops)


def _are_incompatible(one: object, other: object) -> bool:
    assert isinstance(one, list)
    assert isinstance(other, list)
    shorter = min(len(one), len(other))
    return one[:shorter] != other[:shorter]


def test_a_torn_watermark_is_told_with_its_operation_and_both_rows(planted: dict[str, Judged]) -> None:
    judgement = planted["torn-watermark"]
    finding = judgement.finding("torn-unit")
    events = [judgement.event(seq) for seq in finding.events]
    (mark,) = [event for event in events if event.kind == "watermark"]
    rows = [event for event in events if event.kind == "row"]
    assert f"The watermark at offset {mark.position} was announced to {mark.subscriber}" in finding.sentence
    assert {row.position for row in rows} == {rows[0].position}
    assert {mark.subscriber} == {row.subscriber for row in rows}
    for row in rows:
        assert f"value {row.value} of key k{row.key}" in finding.sentence
    (index,) = finding.ops
    assert f"operation {index}" in finding.sentence
    (invoke,) = [r for r in judgement.simulated.evidence if isinstance(r, Invoke) and r.index == index]
    appended = {(mop.key, mop.value) for mop in invoke.mops or () if mop.f == "append"}
    assert appended >= {(row.key, row.value) for row in rows}


def test_a_late_row_is_told_with_its_position_and_the_watermark_above_it(planted: dict[str, Judged]) -> None:
    judgement = planted["late-row"]
    finding = judgement.finding("late-event")
    mark, row = (judgement.event(seq) for seq in finding.events)
    assert (mark.kind, row.kind) == ("watermark", "row")
    assert mark.subscriber == row.subscriber
    assert mark.position is not None
    assert row.position is not None
    assert mark.position > row.position
    assert finding.sentence.startswith(f"The watermark at offset {mark.position} was announced to {mark.subscriber}")
    assert f"value {row.value} of key k{row.key} at offset {row.position} " in finding.sentence
