"""The state of a reader group: shares, the dead, and successors of several segments."""

from clusters.pravega import planted
from clusters.pravega.readers.group import (
    Future,
    Group,
    Holding,
    Restorable,
    arrived,
    begun,
    completed,
    first_group,
    is_expected,
    joined,
    left,
    reported,
    restored,
    shared_out,
)
from clusters.pravega.records import Copied, Segment, Span, first_history
from clusters.pravega.shape import SPACE
from harness.core.machine import NodeId

R1, R2 = NodeId("r1"), NodeId("r2")
NO_BUGS: frozenset[str] = frozenset()
A, B, NEXT = Segment(0, 0), Segment(1, 0), Segment(5, 1)
MERGED = (Copied(Span(0, SPACE, NEXT), (A, B)),)


def group(*segments: Segment) -> Group:
    return shared_out(joined(Group(holdings=tuple(Holding(each, 0, 0) for each in segments)), R1, 1), 1)


def test_the_first_reader_takes_all_and_gives_away_what_another_one_is_to_have() -> None:
    alone = shared_out(joined(first_group(first_history().active), R1, 1), 1)
    assert len(alone.of(1)) == len(first_history().active.spans) == 3
    both = joined(alone, R2, 2)
    assert shared_out(both, 2).of(2) == ()
    given = shared_out(shared_out(both, 1), 2)
    assert (len(given.of(1)), len(given.of(2))) == (2, 1)
    assert shared_out(shared_out(given, 1), 2) == given


def test_what_a_reader_reported_is_where_the_next_one_begins() -> None:
    after = left(reported(group(A), 1, {A: 7}), 1)
    assert (after.members, after.holdings) == ((), (Holding(A, 0, 7),))
    assert joined(reported(group(A), 1, {A: 7}), R1, 2).of(2) == ()
    assert not joined(group(A), R1, 2).has(1)


def test_a_successor_of_two_segments_waits_for_the_second() -> None:
    first = completed(group(A, B), A, MERGED, NO_BUGS)
    assert first.future == (Future(NEXT, (B,)),)
    assert [each.segment for each in first.holdings] == [B]
    second = completed(first, B, MERGED, NO_BUGS)
    assert (second.future, second.holdings) == ((), (Holding(NEXT, 0, 0),))


def test_planted_bugs_open_a_successor_too_early_or_too_far_behind() -> None:
    early = completed(group(A, B), A, MERGED, frozenset({planted.ANY_PREDECESSOR}))
    assert Holding(NEXT, 0, 0) in early.holdings
    assert completed(early, B, MERGED, frozenset({planted.ANY_PREDECESSOR})).holdings == (Holding(NEXT, 0, 0),)
    bugs = frozenset({planted.SUCCESSOR_AT_TAIL})
    assert completed(completed(group(A, B), A, MERGED, bugs), B, MERGED, bugs).holdings == (Holding(NEXT, 0, -1),)


def at_checkpoint() -> Group:
    """Both readers have a segment, and are expected at a checkpoint; the first one is there, and has gone on."""
    both = shared_out(shared_out(joined(group(A, B), R2, 2), 1), 2)
    first = arrived(reported(begun(both, 9), 1, {A: 3, B: 3}), 1)
    assert begun(first, 10) == arrived(first, 1) == first
    return reported(first, 1, {A: 5, B: 5})


def test_a_checkpoint_has_each_reader_where_it_came_to_it() -> None:
    group = at_checkpoint()
    assert (is_expected(group, 1), is_expected(group, 2), group.last) == (False, True, None)
    done = arrived(reported(group, 2, {A: 4, B: 4}), 2)
    assert done.checkpoint is None
    assert done.last is not None
    assert sorted(each.offset for each in done.last.holdings) == [3, 4]
    again = restored(done, 11)
    assert (again.members, again.last) == ((), done.last)
    assert [(each.session, each.place) for each in again.restored] == [(11, done.last)]
    assert dict(again.last.offsets() if again.last else ()) == {each.segment: each.offset for each in again.holdings}


def test_a_reader_that_dies_on_its_way_to_a_checkpoint_counts_where_it_reported() -> None:
    done = left(at_checkpoint(), 2)
    assert done.last is not None
    assert sorted(each.offset for each in done.last.holdings) == [0, 3]


def test_without_members_or_a_checkpoint_nothing_changes() -> None:
    empty = Group(holdings=(Holding(A, 0, 0),))
    assert begun(empty, 1) == restored(empty, 1) == empty
    assert Restorable(1, (Holding(A, 0, 2),), (Future(NEXT, (B,)),)).offsets() == ((A, 2), (NEXT, 0))
