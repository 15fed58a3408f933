"""Jepsen's unit tests of its Kafka workload: what they assert, our check of logs finds, as often. Absent: skipped.

| Jepsen | ours | rule |
| --- | --- | --- |
| G1a | G1a | S11: what certainly failed is delivered |
| inconsistent-offsets | the same | S24: an offset shows two things |
| duplicate | duplicate-write | S03, at the source: one message has two positions |
| lost-write | the same | S09: committed below what was delivered, and never delivered |
| poll-skip, nonmonotonic-poll | the same | S13, S02: the next session's first event is not the next one |
| int-poll-skip, int-nonmonotonic-poll | internal-... | S09, S02, inside a session |
| nonmonotonic-send | the same | S23: a write below one that had ended before |
| int-nonmonotonic-send, int-send-skip | internal-... | S27: the order inside a unit |
| precommitted-read | the same | S11: delivered before it is committed |
| unseen | the fact `unseen` | S14: acknowledged, and never delivered by the end |
| G0, G1c | the same | cycles of dependencies |
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.invariants import logs
from checkers.invariants.operations import operations
from harness.core.verdict import Judgement
from harness.judging.judge import judge
from harness.record.formats.load import Loaded
from harness.record.formats.parquet import parquet
from harness.record.formats.parquet.parquet import write_history
from tests.corpus.cases import HISTORIES, Case, cases, jepsen_case

GROUP = "jepsen-kafka/cases.jsonl"
pytestmark = pytest.mark.skipif(not (HISTORIES / GROUP).is_file(), reason=f"{HISTORIES / GROUP} is absent")

NAMES: Mapping[str, str] = {"duplicate": "duplicate-write"} | {
    f"int-{name}": f"internal-{name}" for name in ("poll-skip", "nonmonotonic-poll", "nonmonotonic-send", "send-skip")
}
UNSEEN = "unseen_series"  # Jepsen plots it, by time; to us the end counts.


def every() -> list[Case]:
    return list(cases(GROUP)) if (HISTORIES / GROUP).is_file() else []


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small histories need not survive the machine."""
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)


def judged(case: Case, folder: Path) -> Judgement:
    write_history(jepsen_case(case), folder / "history")
    return logs.judged(operations(folder / "history"))


@pytest.mark.parametrize("case", every(), ids=lambda case: case["name"])
def test_what_jepsen_asserts_is_found_as_often(case: Case, tmp_path: Path) -> None:
    judgement = judged(case, tmp_path)
    found = {finding.anomaly: finding.count for finding in judgement.findings}
    for name, stated in case["asserted"].items():
        if name == UNSEEN:
            assert judgement.facts["unseen"] == stated[-1]["unseen"]["x"]
        elif name == "*":
            assert found == {}
        else:
            assert found.get(NAMES.get(name, name), 0) == len(stated), judgement.findings


def test_every_anomaly_is_asserted_somewhere_and_absent_elsewhere() -> None:
    asserted = [(name, bool(stated)) for case in every() for name, stated in case["asserted"].items()]
    named = {NAMES.get(name, name) for name, is_there in asserted if is_there}
    assert named == {*logs.ANOMALIES, UNSEEN}
    assert len(every()) == 34
    assert sum(not is_there for _, is_there in asserted) == 8


@pytest.mark.parametrize("case", every(), ids=lambda case: case["name"])
def test_a_history_of_a_log_is_known_on_sight(case: Case, tmp_path: Path) -> None:
    write_history(jepsen_case(case), tmp_path / "history")
    report = judge(Loaded(history=tmp_path / "history", format="JSON", is_foreign=True), LocalEngine(1))
    is_polled = any(each["f"] in {"poll", "txn"} and each["type"] == "ok" for each in case["history"])
    assert [row.id for row in report.promises] == (["LOG"] if is_polled else ["MODEL"])
    if is_polled and any(
        stated and NAMES.get(name, name) in logs.PROMISED for name, stated in case["asserted"].items()
    ):
        assert report.verdict == "invalid"
