"""What a subscriber's stream tells others of the order of versions, and what the check makes of that."""

from pathlib import Path

import pytest

from checkers.watermarks.order_elsewhere import Received, agreed, places, received, shows_order
from harness.core.columns import NEVER, SourceWrites
from tests.worlds.streams.cases import contract
from tests.worlds.streams.language import deliveries_of, events, source_of, writes
from tests.worlds.streams.watermark_cases import found, judged

SOURCE = "ok x=1; ok x=2; ok x=3; ok y=4"
LOOSE: dict[str, object] = {"is_position_unique": False}


def told(log: int, text: str, source: str = SOURCE) -> Received:
    """What that log tells of a source without any order of its own."""
    return received(log, deliveries_of(events(text)), source_of(writes(source)), contract(**LOOSE))


def order(log: int, *parts: Received) -> list[int]:
    """The writes in the order that others tell that log, key by key."""
    where = places(agreed(parts), log, 4).tolist()
    return sorted((row for row in range(len(where)) if where[row] != NEVER), key=lambda row: where[row])


def test_versions_are_told_as_they_were_first_received() -> None:
    first = told(0, "open@0 x=2@1 y=4@1 x=1@2 x=2@1 x=3@3")
    assert first.write.tolist() == [1, 0, 2, 3]
    assert (set(first.log.tolist()), set(first.session.tolist())) == ({0}, {1})


def test_a_snapshot_tells_nothing() -> None:
    assert told(0, "open@5 ~x=2@5 x=1@6").write.tolist() == [0]


def test_what_no_operation_wrote_is_not_told() -> None:
    assert told(0, "open@0 x=9@1 x=1@2").write.tolist() == [0]


def test_keys_with_another_order_are_not_asked() -> None:
    assert told(0, "open@0 x=1@1 y=4@1", "ok x=1#0; ok x=2; ok x=3; ok y=4").write.tolist() == [3]
    listed: SourceWrites = source_of(writes("ok@1 x=1; ok@2 x=2"))
    assert not len(received(0, deliveries_of(events("open@0 x=1@1 x=2@2")), listed, contract()).write)


def test_others_tell_and_nobody_tells_itself() -> None:
    long, short = told(0, "open@0 x=1@1 x=2@2 x=3@3"), told(1, "open@0 x=1@1 x=3@3")
    assert order(2, long, short) == [0, 1, 2]
    assert order(1, long, short) == [0, 1, 2]
    assert order(0, long, short) == [0, 2]
    assert not len(places(agreed([long]), 0, 4))


def test_the_longest_session_tells_and_of_equal_ones_the_first() -> None:
    twice = told(0, "s1/1 open@0 x=1@1 s1/2 open@0 x=2@2 x=3@3")
    assert order(1, twice) == [1, 2]
    equal = told(0, "s1/1 open@0 x=1@1 x=2@2 s1/2 open@0 x=2@2 x=3@3")
    assert order(1, equal) == [0, 1]
    assert order(2, told(0, "open@0 x=1@1 x=2@2"), told(1, "open@0 x=2@2 x=3@3")) == [0, 1]


def test_each_key_is_told_by_who_knows_it_best() -> None:
    one, other = told(0, "open@0 x=1@1 x=2@2"), told(1, "open@0 x=1@1 y=4@1")
    assert order(2, one, other) == [0, 1, 3]


@pytest.mark.parametrize("logs", [
    ("open@0 x=1@1 x=2@2", "open@0 x=2@2 x=1@1"),  # Two that contradict each other,
    ("open@0 x=1@1 x=2@2 x=3@3", "open@0 x=3@3 x=1@1"),  # not next to each other,
    ("open@0 x=1@1 x=2@2", "open@0 x=2@2 x=3@3", "open@0 x=3@3 x=1@1"),  # or three together;
    ("s1/1 open@0 x=1@1 x=2@2 s1/2 open@0 x=2@2 x=1@1",),  # or sessions of one subscriber.
])  # fmt: skip
def test_a_key_on_which_they_disagree_has_no_order(logs: tuple[str, ...]) -> None:
    parts = [told(number, f"{text} y=4@4") for number, text in enumerate(logs)]
    assert order(9, *parts) == [3]


def test_only_some_streams_may_tell() -> None:
    assert shows_order(contract(**LOOSE))
    assert shows_order(contract(wm_scope="subscriber", order_key="key"))
    assert not shows_order(contract(order_key="none"))
    assert not shows_order(contract(versions="latest"))
    assert not shows_order(contract(wm_scope="partition"))
    assert not shows_order(contract(wm_scope="global"))


MISSING = "0 ax1 @1; 1 ax2 ay3 @2; s1 open@0 x=1@1 x=2@2 y=3@2.1 w@2; s2 open@0 x=1@1 y=3@2.1 w@2"


def test_a_row_that_never_came_is_missed_where_another_received_it(tmp_path: Path) -> None:
    judgement = judged(tmp_path, MISSING, is_position_unique=False)
    [finding] = judgement.findings
    assert finding.anomaly == "torn-watermark"
    assert "s2 did not have value 2 of key #0, which T1 wrote, at watermark 2" in finding.sentence
    assert judgement.facts["version_order"] == {"deliveries": 3}


def test_an_unclear_write_that_another_received_happened_and_is_missed(tmp_path: Path) -> None:
    unclear = "begin 0 ax1; begin 1 ax2 ay3; s1 open@0 x=1 x=2 y=3 w@2; s2 open@0 x=1 y=3 w@2"
    judgement = judged(tmp_path, unclear, is_position_unique=False)
    assert [finding.anomaly for finding in judgement.findings] == ["torn-watermark"]
    assert judgement.facts["version_order"] == {"deliveries": 3}


@pytest.mark.parametrize("changes", [{"order_key": "none"}, {"versions": "latest"}])
def test_a_row_that_never_came_is_not_missed_where_streams_tell_no_order(
    changes: dict[str, object], tmp_path: Path
) -> None:
    assert not found(tmp_path, MISSING, **LOOSE, **changes)


@pytest.mark.parametrize("journal", [
    "0 ax1 @1; 1 ax2 ay3 @2; s1 open@0 x=1@1 x=2@2 y=3@2.1 w@2; s2 open@0 x=1@1 w@1 x=2@2 y=3@2.1 w@2",  # It came.
    "0 ax1 @1; 1 ax2 ay3 @2; s1 open@0 x=1@1 x=2@2 y=3@2.1 w@2; s2 open@0 x=1@1 gap:x@1 y=3@2.1 w@2",  # It is admitted.
    "0 ax1 @1; 1 ax2 ay3 @2; s1 open@0 x=2@2 x=1@1 w@2; s2 open@0 x=1@1 y=3@2.1 w@2; s3 open@0 x=1@1 x=2@2 w@2",
    "0 ax1 @1; 1 ax2 ay3 @2; s1 open@0 x=2@2 y=3@2.1 w@2; s2 open:y@0 y=3@2.1 w@2",  # Nobody asked for it.
])  # fmt: skip
def test_what_others_received_accuses_nobody_who_may_lack_it(journal: str, tmp_path: Path) -> None:
    names = [
        finding.anomaly
        for finding in judged(tmp_path, journal, is_position_unique=False).findings
        if "s2" in finding.sentence
    ]
    assert not names
