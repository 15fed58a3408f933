"""A container's commands: order and repetition of a writer's events, seals, merges, and names that are gone."""

import pytest

from clusters.pravega import planted
from clusters.pravega.messages import (
    Append,
    Appended,
    Batch,
    Create,
    Delete,
    Merge,
    NoSegment,
    Ok,
    OutOfOrder,
    Reply,
    Seal,
    Sealed,
    Truncate,
    Truncated,
)
from clusters.pravega.records import Event, Segment
from clusters.pravega.segments.container import Container

PLACE = "0"
MAIN = Segment(0, 0)
TXN = MAIN.of(7)


def container(*bugs: str) -> Container:
    return Container(PLACE, frozenset(bugs))


def append(made: Container, segment: Segment, number: int, *, previous: int | None = None, writer: str = "w") -> Reply:
    event = Event("k", number, writer, number)
    return made.apply(Append(segment, writer, number, number - 1 if previous is None else previous, event))


def values(made: Container, segment: Segment) -> list[object]:
    return [event.value for event in made.content(segment, ("k",)).events]


def test_events_of_a_writer_come_in_order_and_once() -> None:
    made = container()
    assert append(made, MAIN, 1) == Appended(MAIN, "w", 1, 1)
    assert append(made, MAIN, 3) == OutOfOrder(MAIN, "w", 1)
    assert append(made, MAIN, 2) == Appended(MAIN, "w", 2, 2)
    assert append(made, MAIN, 1) == Appended(MAIN, "w", 2, 2)
    assert append(made, MAIN, 1, writer="v") == Appended(MAIN, "v", 1, 3)
    assert values(made, MAIN) == [1, 2, 1]


def test_a_sealed_segment_takes_nothing_and_says_what_it_has() -> None:
    made = container()
    append(made, MAIN, 1)
    assert made.apply(Seal(MAIN)) == Ok(1)
    assert append(made, MAIN, 2) == Sealed(MAIN, "w", 1, 1)
    assert made.apply(Seal(MAIN)) == Ok(1)
    assert made.read(MAIN, 0) == Batch((Event("k", 1, "w", 1),), is_end=True)
    assert made.read(MAIN, 1) == Batch((), is_end=True)


def test_a_merge_is_whole_and_happens_once() -> None:
    made = container()
    made.apply(Create(TXN))
    append(made, TXN, 1)
    append(made, TXN, 2)
    append(made, MAIN, 1, writer="v")
    for _ in range(2):
        assert isinstance(made.apply(Merge(MAIN, TXN)), Ok)
        made.apply(Create(TXN))  # It comes late.
        assert append(made, TXN, 3) == NoSegment(TXN)
    assert values(made, MAIN) == [1, 1, 2]


def test_a_merge_needs_an_open_target() -> None:
    made = container()
    made.apply(Create(TXN))
    append(made, TXN, 1)
    made.apply(Seal(MAIN))
    assert made.apply(Merge(MAIN, TXN)) == Sealed(MAIN, "", 0)
    assert values(made, TXN) == [1]
    assert made.apply(Merge(Segment(4, 1), TXN)) == NoSegment(Segment(4, 1))


def test_what_was_deleted_is_not_created_again() -> None:
    made = container()
    made.apply(Create(TXN))
    assert made.apply(Delete(TXN)) == made.apply(Delete(TXN)) == made.apply(Create(TXN)) == Ok()
    assert append(made, TXN, 1) == NoSegment(TXN)


def test_a_read_behind_the_end_of_an_open_segment_waits() -> None:
    made = container()
    assert made.read(MAIN, 0) is None
    append(made, MAIN, 1)
    assert made.read(MAIN, 0) == Batch((Event("k", 1, "w", 1),), is_end=False)
    assert made.read(Segment(0, 9), 0) == NoSegment(Segment(0, 9))


def test_an_empty_sealed_segment_shows_its_end_unless_a_bug_is_planted() -> None:
    made, broken = container(), container(planted.NO_EOS_WHEN_EMPTY)
    for each in (made, broken):
        each.apply(Seal(MAIN))
    assert (made.read(MAIN, 0), broken.read(MAIN, 0)) == (Batch((), is_end=True), None)


@pytest.mark.parametrize(
    ("bug", "numbers", "held"),
    [
        (planted.RESEND_NO_DEDUPE, (1, 1), [1, 1]),
        (planted.ACK_OVER_GAP, (1, 3, 2), [1, 3]),
    ],
)
def test_a_planted_bug_changes_what_is_held(bug: str, numbers: tuple[int, ...], held: list[int]) -> None:
    made = container(bug)
    for number in numbers:
        append(made, MAIN, number)
    assert values(made, MAIN) == held


def test_a_truncated_segment_keeps_its_offsets_and_shows_nothing_before_its_start() -> None:
    made = container()
    for number in (1, 2, 3):
        append(made, MAIN, number)
    assert made.apply(Truncate(MAIN, 2)) == made.apply(Truncate(MAIN, 1)) == Ok()
    assert made.read(MAIN, 0) == Truncated(MAIN, 2)
    assert made.read(MAIN, 2) == Batch((Event("k", 3, "w", 3),), is_end=False)
    assert (made.content(MAIN, ("k",)).is_whole, made.content(MAIN, ("other",)).is_whole) == (False, True)
    made.apply(Seal(MAIN))
    made.apply(Truncate(MAIN, -1))
    assert made.read(MAIN, 3) == Batch((), is_end=True)
    assert next((sealed, len(events), start) for _, sealed, events, start in made.shown()) == (True, 3, 3)
