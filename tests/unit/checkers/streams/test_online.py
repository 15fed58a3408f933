"""The online check: what it finds, and with which event."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from checkers.columns.table import take
from checkers.streams.online import Online
from harness.core.columns import NEVER, ROW, Deliveries
from harness.core.promises import StreamContract
from tests.worlds.streams.cases import contract
from tests.worlds.streams.language import deliveries_of, events


def fed(deliveries: Deliveries, declared: StreamContract, size: int = 1) -> list[tuple[str, int]]:
    """What is found in a stream that is fed in batches of one size: the anomaly, and the number of the event from 0."""
    online = Online(declared)
    return [
        (each.anomaly, each.seq - int(deliveries.seq[0]))
        for first in range(0, len(deliveries.kind), size)
        for each in online.feed(take(deliveries, slice(first, first + size)))
    ]


def told(log: str, **changes: object) -> list[tuple[str, int]]:
    """What is told of a log that comes event by event."""
    return fed(deliveries_of(events(log)), contract(**changes))


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("open@0 x=1@1 w@2 y=2@1 x=3@3", [("late-event", 3)]),
        ("open@0 x=1@1 w@2 y=2@2 x=3@3", [("late-event-boundary", 3)]),
        ("open@0 x=1@1 w@2 y=2@3 x=3@4", []),
        ("open@0 x=1@1 w@2 x=2@3 w@1", [("watermark-regress", 4)]),
        ("open@0 x=1@1 w@2 x=2@3 w@2", []),
        ("open@0 x=1@2 y=2@1", [("order-inversion", 2)]),
        ("open@0 x=1@2 y=2@2", []),
        ("open@0 x=1@1 x=1@1", [("duplicate-event", 2)]),
        ("open@0 x=1@1 w@1 x=1@1", [("duplicate-event", 3)]),
        ("s1/1 open@0 x=1@1 w@1 s1/2 open@0 x=1@1 w@1", []),
        ("s1/1 open@0 x=1@1 w@1 s1/2 open@1 x=2@2 w@2", []),
    ],
)
def test_each_rule_tells_the_event_that_broke_it(log: str, expected: list[tuple[str, int]]) -> None:
    assert told(log) == expected


def test_a_unit_is_torn_at_the_watermark_if_its_size_was_announced() -> None:
    assert told("open@0 x=1@1 u7*2 w@1 y=2@1.1 u7*2", cut="position") == [("torn-unit", 2), ("late-event-boundary", 3)]


def test_a_unit_is_torn_at_its_next_row_if_nobody_said_that_there_would_be_one() -> None:
    log = deliveries_of(
        [replace(each, unit=7 if each.kind == ROW else NEVER) for each in events("open@0 x=1@2 w@1 y=2@2.1")]
    )
    assert fed(log, contract(cut="delivery")) == [("torn-unit", 3)]
    assert fed(log, contract(cut="position")) == []


def test_a_watermark_that_names_a_unit_is_no_row_of_it() -> None:
    log = deliveries_of([replace(each, unit=7) for each in events("open@0 x=1@2 w@1 y=2@2.1")])
    assert fed(log, contract(cut="delivery")) == [("torn-unit", 3)]


@pytest.mark.parametrize(("between", "atomic_unit"), [("w@1", "transaction"), ("commit", "response")])
def test_a_unit_is_torn_by_the_place_of_a_watermark_alone(between: str, atomic_unit: str) -> None:
    log = events(f"open@0 x=1@1 w@1 x=2@3 {between} y=3@3.1 z=4@4")
    unit = {3: 7, 5: 7}
    named = [replace(each, unit=unit.get(place, NEVER)) for place, each in enumerate(log)]
    declared = contract(cut="delivery" if between == "w@1" else "position", atomic_unit=atomic_unit)
    assert fed(deliveries_of(named), declared) == [("torn-unit", 5)]


def test_a_unit_that_is_whole_at_the_watermark_is_not_torn() -> None:
    assert told("open@0 x=1@1 u7*2 y=2@1.1 u7*2 w@1 x=3@2 u8*2 y=4@2.1 u8*2 w@2") == []


def test_a_unit_that_partitions_share_is_torn_in_each_of_them() -> None:
    log = events("open@0 x[0]=1@2 z[1]=3@2.2 w@1 y[0]=2@2.1 v[1]=4@2.3")
    named = deliveries_of([replace(each, unit=7 if each.kind == ROW else NEVER) for each in log])
    assert fed(named, contract(cut="delivery", unit_scope="partition")) == [("torn-unit", 4), ("torn-unit", 5)]
    assert fed(named, contract(cut="delivery", unit_scope="global")) == [("torn-unit", 4)]


@pytest.mark.parametrize("size", [1, 9])
def test_what_has_several_positions_may_still_grow_and_is_left_to_the_end(size: int) -> None:
    epoch = deliveries_of(events("open@0 x=1@1 u7*1 e1 w@1 y=2@3 u8*1 e1"))
    assert fed(epoch, contract(atomic_unit="epoch", cut="delivery"), size) == []
    unit = deliveries_of([replace(each, unit=7) for each in events("open@0 x=1@3 w@1 y=2@2")])
    assert fed(unit, contract(cut="delivery", order_key="none"), size) == []


def test_a_number_that_two_units_bear_tells_nothing() -> None:
    assert told("open@0 x=1@1 u7*2 w@0 x=2@3 u7*2", cut="position") == []


def test_a_subscriber_that_resumed_below_its_watermark_may_be_sent_again_what_it_had() -> None:
    log = deliveries_of(events("s1/1 open@0 x=1@1 y=2@2 w@2 s1/2 open@0 x=1@1 y=2@2 w@2 x=3@3"))
    assert fed(log, contract(wm_scope="subscriber")) == []


def test_of_several_rows_that_came_back_in_one_batch_all_were_there_before() -> None:
    log = deliveries_of(events("open@0 x=1@1 y=2@2 w@2 y=2@2 x=1@1"))
    assert fed(log, contract(order_key="none"), 4) == [("duplicate-event", 4), ("duplicate-event", 5)]


def test_what_lies_below_what_came_back_may_come_back_as_well() -> None:
    log = deliveries_of(events("s1/1 open@0 x=1@1 y=2@2 x=3@3 w@3 s1/2 open@0 y=2@2 x=1@1"))
    assert fed(log, contract(wm_scope="subscriber", order_key="none")) == []


@pytest.mark.parametrize(
    "log",
    [
        "open@0 x[1]=1@1 w[0]@5 x[1]=2@3 w[1]@4 x[1]=3@5",  # What the faster partition has closed.
        "open[0]@5 x[1]=1@1 x[1]=2@2 x[1]=3@3",  # Where the other partition begins.
    ],
)
def test_what_only_the_other_partition_has_behind_it_may_come(log: str) -> None:
    assert fed(deliveries_of(events(log)), contract()) == []


def test_what_was_never_sent_before_is_late_after_a_resume() -> None:
    log = deliveries_of(events("s1/1 open@0 x=1@1 y=2@3 w@3 s1/2 open@0 x=1@1 z=9@2 y=2@3"))
    assert fed(log, contract(wm_scope="subscriber")) == [("late-event", 6)]
    assert fed(log, contract(wm_scope="session")) == []


@pytest.mark.parametrize(
    "log",
    [
        "y=1@1 x=2@2 w@5 y=3@2",  # Nothing declared the start.
        "open@0 x=1@1 gap y=1@1 w@5 y=3@2",
        "open y=1@1 w@5 y=3@2",
        "w@0 y=1@1 x=2@2 w@5 y=3@2",
        "open@0 open:z@0 y=1@1 w@5 y=3@2",
        "open:z@0 y=1@1 x=2@2 w@5 y=3@2",
        "open[0]@0 y[1]=1@1 x[1]=2@2 w[1]@5 y[1]=3@2",
    ],
)
def test_where_rows_begin_coverage_those_below_what_came_back_count(log: str) -> None:
    assert told(log) == [("late-event", len(events(log)) - 1)]


def test_the_last_of_equal_watermarks_says_what_is_covered() -> None:
    """Nothing is closed, as the other partition has no watermark yet."""
    log = "open x[1]=9@9 w[0]@5 y[0]=1@2 w[0]@5 y[0]=3@4"
    how: dict[str, object] = {"cut": "position", "order_key": "none"}
    assert told(log, **how) == [("late-event", 5)]
    assert told(log.replace("y[0]=1@2 w[0]@5", "w[0]@5 y[0]=1@2"), **how) == []


def test_the_row_with_which_coverage_began_counts_below_a_watermark() -> None:
    log = "open x[1]=9@9 w[1]@3 y[0]=1@1 w[0]@8 y[0]=3@5"
    assert told(log, order_key="none") == [("late-event", 5)]
    assert told(log.replace("y[0]=1@1", "z[0]=1@1"), order_key="none") == []


def test_the_row_with_which_coverage_began_counts_after_a_gap_for_the_watermark_before() -> None:
    log = "open x[1]=9@9 w[1]@3 y[0]=1@1 w[0]@8 gap y[0]=3@5"
    assert told(log, order_key="none") == [("late-event", 6)]
    assert told(log.replace("y[0]=1@1", "z[0]=1@1"), order_key="none") == []


def test_a_row_that_is_held_alone_does_not_lack_the_rest_of_its_unit() -> None:
    log = "open@0 x=2@2 u7*2 e1 y=3@2.1 u7*2 e1 w@2 w@3"
    assert told(log, cut="position", epochs="owners") == []
    assert told(log.replace("y=3@2.1 u7*2 e1 ", ""), cut="position", epochs="owners") == [("torn-unit", 2)]


@pytest.mark.parametrize(
    "log",
    [
        "open@0 open:z@0 x[1]=9@9 w[0]@8 y[0]=3@5",
        "open@0 open[1]@0 x[1]=9@9 w[0]@8 y[0]=3@5",
        "open@0 open[0]@0 x[0]=9@9 w[1]@8 y[1]=3@5",
        "open@0 commit x[1]=9@9 w[0]@8 y[0]=3@5",
    ],
)
def test_what_opens_all_counts_when_a_part_is_opened_or_a_batch_ends(log: str) -> None:
    assert told(log, order_key="none") == [("late-event", 4)]


def test_a_gap_takes_back_nothing_of_what_a_session_asked_for() -> None:
    log = "s1/1 open@0 x=1@1 s1/2 open@0 gap x=1@1"
    how: dict[str, object] = {"delivery": "exactly-once", "wm_scope": "subscriber"}
    assert told(log, **how) == []
    assert told(log.replace("s1/2 open@0", "s1/2 open"), **how) == [("duplicate-event", 4)]


def test_a_lower_watermark_may_tear_what_a_higher_one_finds_replaced() -> None:
    """At the first of two watermarks of a partition y was missing; at the second one a newer y stood for it."""
    log = events("open@0 x[0]=1@2 w[0]@2 y[0]=9@3 w[0]@5 y[0]=2@2.1")
    lagging = [*events("open@0 z[1]=8@1 w[1]@1"), *log[1:]]
    unit = {3: 7, 7: 7}
    named = deliveries_of([replace(each, unit=unit.get(place, NEVER)) for place, each in enumerate(lagging)])
    declared = contract(cut="position", versions="latest", order_key="none")
    assert ("torn-unit", 7) in fed(named, declared)


def test_what_a_session_asks_for_later_may_be_torn_from_then_on() -> None:
    log = events("open:x@0 x=1@3 w@1 open:y@0 w@1 y=2@3.1")
    named = deliveries_of([replace(each, unit=7 if each.kind == ROW else NEVER) for each in log])
    assert fed(named, contract(cut="delivery")) == [("torn-unit", 5)]


def test_a_watermark_tears_what_a_row_below_the_floor_began_to_cover() -> None:
    log = events("open:x@0 x=1@9 w@5 y=1@2 w@5 y=2@9.1")
    unit = {1: 7, 5: 7}
    named = deliveries_of([replace(each, unit=unit.get(place, NEVER)) for place, each in enumerate(log)])
    assert fed(named, contract(cut="delivery", order_key="none")) == [("torn-unit", 5)]


@pytest.mark.parametrize(
    ("log", "changes"),
    [
        ("open@0 x=1@2 u7*2 w@2 w@3", {"closed": "<"}),
        ("open@2 x=1@2 u7*2 w@1 w@2", {"resume": "at"}),
    ],
)
def test_what_a_watermark_or_a_start_leaves_open_is_torn_later(log: str, changes: dict[str, object]) -> None:
    assert told(log, cut="position", **changes) == [("torn-unit", 3)]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("open@0 x=1@1 e1 x=2@2 e2 w@2 x=3@3 e1", [("zombie", 4)]),
        ("open@0 x=1@1 e1 x=2@2 e2 w@2 x=3@3 e2", []),
        ("open@0 x=1@3 e1 x=2@2 e2", [("zombie", 2)]),  # The newer owner's row comes later, and shows it.
        ("open@0 x=2@2 e2 y=1@1 e1", []),  # What it had put in before, may be delivered after.
        ("open@0 x=1@1 e2 w@1 y=2@5 e3 z=3@3 e1", [("zombie", 4)]),  # Also behind the owner in between.
    ],
)
def test_rows_of_an_older_owner_are_told(log: str, expected: list[tuple[str, int]]) -> None:
    assert told(log, epochs="owners", order_key="none") == expected
    assert told(log, epochs="units", order_key="none") == []


def test_a_row_of_an_older_owner_below_the_floor_is_told_as_well() -> None:
    log = "open@0 x=1@1 e2 w@5 y=2@2 e1"
    assert told(log, epochs="owners", order_key="none") == [("late-event", 3), ("zombie", 3)]


def test_a_watermark_that_binds_all_subscribers_binds_them_all() -> None:
    log = "s1 open@0 x=1@1 w@2 s2 open@0 y=2@1"
    assert told(log, wm_scope="global") == [("late-event", 4)]
    assert told(log, wm_scope="subscriber") == []


def test_a_stream_that_lacks_positions_is_left_to_the_end() -> None:
    log = deliveries_of(events("open@0 x=1@1 w@2 y=2@1"))
    lacking = structs.replace(log, position=np.where(np.arange(4) == 1, NEVER, log.position))
    assert fed(lacking, contract()) == []


def test_only_the_rules_that_count_are_judged() -> None:
    log = deliveries_of(events("open@0 x=1@1 w@2 y=2@1 x=3@3"))
    assert [each.anomaly for each in Online(contract()).feed(log)] == ["late-event"]
    assert list(Online(contract(), frozenset({"zombie"})).feed(log)) == []


def test_what_one_batch_did_not_report_the_next_one_does() -> None:
    log = deliveries_of(events("open@0 x=1@1 x=1@1 y=2@2 y=2@2 z=3@3"))
    online = Online(contract())
    found = [next(online.feed(take(log, slice(5)))), *online.feed(take(log, slice(5, None)))]
    assert [each.seq - int(log.seq[0]) for each in found] == [2, 4]
