"""S14 by hand: what had not arrived when all had come to rest."""

import pytest
from msgspec.structs import replace

from checkers.history.around import NOTHING_AROUND
from checkers.streams.rules.sessions.lost_tail import lost_tails
from checkers.streams.view import Ruling
from tests.worlds.streams.cases import accused, beside, view

LOST = ["lost-tail"]
SETTLED: dict[str, object] = {"tail": "settled"}
TWO = "ok@2 x=1; ok@4 x=2"


def ruling(log: str, source: str, *, settled_seq: int, healed_seq: int = -1, **changes: object) -> Ruling:
    around = replace(NOTHING_AROUND, settled_seq=settled_seq, healed_seq=healed_seq)
    return lost_tails(beside(view(log, source, **changes), around))


def test_what_had_not_come_when_all_was_quiet_is_lost() -> None:
    assert accused("open@0 x=1@2", TWO, **SETTLED) == LOST
    assert accused("open@0 x=1@2", TWO) == []  # It may be on its way.
    assert accused("open@0 x=1@2 x=2@4", TWO, **SETTLED) == []


@pytest.mark.parametrize(("start", "after", "at"), [(3, LOST, LOST), (4, [], LOST), (5, [], [])])
def test_a_session_lacks_only_what_lies_behind_its_start(start: int, after: list[str], at: list[str]) -> None:
    assert accused(f"open@{start}", TWO, resume="after", **SETTLED) == after
    assert accused(f"open@{start}", TWO, resume="at", **SETTLED) == at


@pytest.mark.parametrize(("watermark", "inclusive", "exclusive"), [(3, LOST, LOST), (4, [], LOST), (5, [], [])])
def test_what_a_watermark_closed_is_missing_instead(watermark: int, inclusive: list[str], exclusive: list[str]) -> None:
    for closed, anomalies in (("<=", inclusive), ("<", exclusive)):
        result = accused(f"open@0 x=1@2 w@{watermark}", TWO, closed=closed, **SETTLED)
        assert result == (anomalies or ["missing-event"])


@pytest.mark.parametrize(
    ("log", "source"),
    [
        ("open@0 x=1@2 close", TWO),  # Who has left, receives nothing.
        ("open@0 x=1@2 error", TWO),
        ("open@0 x=1@2 end", TWO),
        ("open@0 x=1@2 gap", TWO),  # It says that something is gone.
        ("open:y@0", TWO),
        ("open", TWO),
        ("s1/1 open@0 x=1@2 x=2@4 s1/2 open@2", TWO),  # It has it, if from another session.
        ("open@0 x=1@2", "ok@2 x=1; ok x=2"),
        ("open@0 x=1@2", "ok@2 x=1; fail@4 x=2"),
        ("open@0 x=1@2", "ok@2 x=1; info@4 x=2"),  # It may never have happened.
    ],
)
def test_what_is_not_lost(log: str, source: str) -> None:
    assert accused(log, source, **SETTLED) == []


def test_a_key_that_is_followed_again_after_the_end_is_owed() -> None:
    assert accused("open@0 x=1@2 close open:x@2", TWO, **SETTLED) == LOST
    assert accused("open@0 x=1@2 close open:y@2", TWO, **SETTLED) == []


def test_where_events_come_at_most_once_or_replace_each_other_less_is_owed() -> None:
    assert accused("open@0 x=1@2", TWO, delivery="at-most-once", **SETTLED) == []
    assert accused("open@0 x=2@4", TWO, versions="latest", **SETTLED) == []
    assert accused("open@0 x=1@2", TWO, versions="latest", **SETTLED) == LOST


@pytest.mark.parametrize(("settled_seq", "count"), [(104, 0), (105, 0), (106, 1)])
def test_a_run_that_waited_owes_what_had_been_answered_before(settled_seq: int, count: int) -> None:
    assert len(ruling("open@0", "ok@2~101~105 x=1", settled_seq=settled_seq).write) == count


def test_a_run_that_waited_owes_nothing_of_unclear_outcome() -> None:
    log, source = "s1 open@0 x=1@2 s2 open@0", "info x=1"
    assert len(ruling(log, source, settled_seq=200).write) == 0
    assert len(ruling(log, source, settled_seq=-1, tail="settled").write) == 1  # One has seen it, the other has not.


@pytest.mark.parametrize(("healed_seq", "witnesses"), [(100, 1), (101, 0), (102, 0)])
def test_witnesses_are_live_subscribers_with_a_write_after_the_last_fault(healed_seq: int, witnesses: int) -> None:
    source = "ok@2~101~105 x=1"
    assert ruling("open@0 x=1@2", source, settled_seq=200, healed_seq=healed_seq).witnesses == witnesses
    assert ruling("open@0 x=1@2 close", source, settled_seq=200, healed_seq=healed_seq).witnesses == 0
    assert ruling("open@0 x=1@2", source, settled_seq=-1, healed_seq=healed_seq).witnesses == 0
