"""Who publishes a bucket, as epochs go by."""

from hypothesis import given
from hypothesis import strategies as st

from clusters.ndb.shape import GROUPS, buckets_of, preferred_owner
from clusters.ndb.stream.buckets import Ownership
from harness.core.machine import NodeId

D1, D2 = GROUPS[0]


def owners(ownership: Ownership, epoch: int) -> list[NodeId]:
    return [ownership.owner(bucket, epoch) for bucket in buckets_of(0)]


def test_both_nodes_of_a_group_have_their_preferred_buckets_at_the_start() -> None:
    ownership = Ownership.from_start(1, GROUPS[1])
    assert [ownership.owner(bucket, 7) for bucket in buckets_of(1)] == [preferred_owner(b) for b in buckets_of(1)]
    assert ownership.owned(GROUPS[1][0], 7) + ownership.owned(GROUPS[1][1], 7) != ()
    assert sorted(ownership.owned(GROUPS[1][0], 7) + ownership.owned(GROUPS[1][1], 7)) == list(buckets_of(1))


def test_who_starts_alone_has_all_buckets() -> None:
    assert owners(Ownership.from_start(0, (D2, *GROUPS[1])), 1) == [D2] * 4


def test_a_take_over_changes_no_epoch_before_the_switch() -> None:
    before = Ownership.from_start(0, GROUPS[0])
    after = before.taken_over(D1, 20)
    assert owners(after, 19) == owners(before, 19)
    assert owners(after, 20) == [D1] * 4


def test_a_hand_over_gives_only_the_preferred_buckets_back() -> None:
    ownership = Ownership.from_start(0, GROUPS[0]).taken_over(D1, 20).handed_over(D2, 30)
    assert owners(ownership, 29) == [D1] * 4
    assert owners(ownership, 30) == [preferred_owner(bucket) for bucket in buckets_of(0)]
    assert ownership.owned(D2, 19) == ownership.owned(D2, 30), "what it had in its earlier life is still known"


def test_a_hand_over_that_is_said_again_takes_the_place_of_the_first() -> None:
    taken = Ownership.from_start(0, GROUPS[0]).taken_over(D1, 20)
    again = taken.handed_over(D2, 30).handed_over(D2, 40)
    assert again == taken.handed_over(D2, 40)
    assert taken.handed_over(D2, 30).handed_over(D2, 30) == taken.handed_over(D2, 30)


def test_a_hand_over_that_was_agreed_for_later_is_void_after_a_take_over() -> None:
    ownership = Ownership.from_start(0, GROUPS[0]).taken_over(D1, 20).handed_over(D2, 30).taken_over(D1, 25)
    assert owners(ownership, 40) == [D1] * 4


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=6), st.integers(0, 60))
def test_the_owner_is_that_of_the_last_change_at_or_below_the_epoch(
    changes: list[tuple[bool, int]], asked: int
) -> None:
    """The oracle writes each change over a table with a line for each epoch."""
    ownership = Ownership.from_start(0, GROUPS[0])
    table = [owners(ownership, epoch) for epoch in range(61)]
    switch, dead = 0, False
    for _, distance in changes:
        switch += distance
        dead = not dead
        ownership = ownership.taken_over(D1, switch) if dead else ownership.handed_over(D2, switch)
        changed = [D1] * 4 if dead else [preferred_owner(bucket) for bucket in buckets_of(0)]
        table[switch:] = [changed for _ in table[switch:]]
    assert owners(ownership, asked) == table[asked]
