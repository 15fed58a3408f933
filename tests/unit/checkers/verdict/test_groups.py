"""One bug is one finding first: findings that share evidence are one group, its root first."""

from checkers.catalogue import RECORDS
from checkers.verdict.groups import groups, rank
from checkers.words.anomalies import Anomaly, Cause
from harness.core.verdict import Finding


def finding(anomaly: str, *, ops: tuple[int, ...] = (), events: tuple[int, ...] = ()) -> Finding:
    return Finding(fingerprint=anomaly, anomaly=anomaly, checker="", sentence="", ops=ops, events=events)


def named(found: list[Finding]) -> list[list[str]]:
    return [[each.anomaly for each in group] for group in groups(found)]


def test_findings_of_one_event_are_one_group() -> None:
    found = [
        finding("torn-unit", ops=(764,), events=(5142, 5152)),
        finding("split-view", events=(5142, 5145)),
        finding("duplicate-event", events=(5145, 5147)),
        finding("fork-watermark", ops=(1364,), events=(9379,)),
        finding("missing-event", ops=(764,), events=(5152,)),
    ]
    assert named(found) == [["missing-event", "torn-unit", "duplicate-event", "split-view"], ["fork-watermark"]]


def test_an_operation_is_no_event_of_the_same_number() -> None:
    assert len(groups([finding("late-event", ops=(7,)), finding("torn-unit", events=(7,))])) == 2


def test_what_explains_the_others_comes_first_also_among_groups() -> None:
    found = [finding("missing-event", ops=(1,)), finding("epoch-fork", events=(2,))]
    assert named(found) == [["epoch-fork"], ["missing-event"]]
    assert rank("missing-event") < rank("torn-watermark")
    assert rank("G1a") < rank("G-single") < rank("G-single-realtime") < rank("G-single-watermark")


def test_an_anomaly_without_a_cause_follows_the_causes() -> None:
    assert rank("phantom-write") < rank("wrong-total") < rank("a new name") < rank("G1a")


def test_nothing_is_lost() -> None:
    found = [finding(name, ops=(place % 5,)) for place, name in enumerate(RECORDS)]
    assert sorted(each.anomaly for group in groups(found) for each in group) == sorted(RECORDS)
    assert groups([]) == []


def test_an_anomaly_that_a_system_declares_has_its_place_by_its_cause() -> None:
    own = {"split-brain": Anomaly(meaning="Two lead.", cause=Cause.OWNER), "odd": Anomaly(meaning="It is odd.")}
    found = [finding("missing-event", ops=(1,)), finding("odd", ops=(1,)), finding("split-brain", ops=(1,))]
    assert [[each.anomaly for each in group] for group in groups(found, own)] == [
        ["split-brain", "missing-event", "odd"]
    ]
    assert rank("missing-event", own) < rank("wrong-total", own) < rank("odd", own) < rank("G1a", own)
