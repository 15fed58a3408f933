"""Which rows a subscriber's library releases, and when."""

from clusters.ndb import planted
from clusters.ndb.shape import BUCKETS
from clusters.ndb.stream.library import Epoch, Library
from clusters.ndb.stream.messages import EpochComplete, Row
from harness.core.machine import NodeId

D1, D2, D3, D4 = (NodeId(name) for name in ("d1", "d2", "d3", "d4"))
OWNED = {D1: (0, 2), D2: (1, 3), D3: (4, 6), D4: (5, 7)}


def opened(*bugs: str, first: int = 1) -> Library:
    library = Library(frozenset(bugs))
    library.open(first)
    return library


def row(epoch: int, bucket: int, transid: int, value: int = 0) -> Row:
    return Row(1, epoch, bucket, transid, bucket, value)


def told(
    library: Library,
    epoch: int,
    *nodes: NodeId,
    buckets: tuple[int, ...] | None = None,
    is_resent: bool = False,
    is_missing_data: bool = False,
) -> list[Epoch]:
    """What is released when these nodes announce the epoch."""
    released = []
    for node in nodes:
        announced = OWNED[node] if buckets is None else buckets
        released += library.announced(node, EpochComplete(1, epoch, announced, is_resent, is_missing_data))
    return released


def transids(epochs: list[Epoch]) -> list[list[int]]:
    return [[each.transid for each in epoch.rows] for epoch in epochs]


def test_an_epoch_is_released_when_all_buckets_are_announced_and_not_before() -> None:
    library = opened()
    library.row(D1, row(5, 0, 1))
    assert told(library, 5, D1, D2, D3) == []
    library.row(D4, row(5, 7, 2))
    assert transids(told(library, 5, D4)) == [[1, 2]]
    assert sum(len(buckets) for buckets in OWNED.values()) == BUCKETS


def test_an_epoch_waits_for_a_smaller_one_even_if_that_has_rows_only() -> None:
    library = opened()
    library.row(D4, row(5, 7, 1))
    assert told(library, 6, D1, D2, D3, D4) == []
    assert [epoch.number for epoch in told(library, 5, D1, D2, D3, D4)] == [5, 6]


def test_nothing_is_done_on_behalf_of_a_dead_node_until_another_speaks_for_it() -> None:
    library = opened()
    assert told(library, 5, D2, D3, D4) == []
    assert len(told(library, 5, D2, buckets=(0, 2), is_resent=True)) == 1


def test_a_row_that_a_dead_node_and_its_heir_sent_is_released_once() -> None:
    library = opened()
    library.row(D1, row(5, 0, 1))
    told(library, 5, D2, D3, D4)
    library.row(D2, row(5, 0, 1))
    library.row(D2, row(5, 0, 2))
    assert transids(told(library, 5, D2, buckets=(0, 2), is_resent=True)) == [[1, 2]]
    assert library.repeated_rows == 1


def test_a_row_that_only_a_dead_node_had_committed_is_not_released() -> None:
    library = opened()
    library.row(D1, row(5, 0, 1))
    library.row(D1, row(5, 0, 99))
    told(library, 5, D2, D3, D4)
    library.row(D2, row(5, 0, 1))
    assert transids(told(library, 5, D2, buckets=(0, 2), is_resent=True)) == [[1]]


def test_late_bytes_of_a_dead_node_change_nothing_that_its_heir_has_announced() -> None:
    library = opened()
    told(library, 5, D2, D3)
    library.row(D2, row(5, 0, 1))
    told(library, 5, D2, buckets=(0, 2), is_resent=True)
    library.row(D1, row(5, 0, 1))
    library.row(D1, row(5, 0, 99))
    assert transids(told(library, 5, D4)) == [[1]]


def test_of_two_announcers_the_first_counts() -> None:
    library = opened()
    library.row(D1, row(5, 0, 1))
    told(library, 5, D1, D2, D3)
    library.row(D2, row(5, 0, 1))
    told(library, 5, D2, buckets=(0, 2), is_resent=True)
    assert transids(told(library, 5, D4)) == [[1]]


def test_what_comes_for_a_released_epoch_is_dropped() -> None:
    library = opened()
    told(library, 5, D1, D2, D3, D4)
    library.row(D2, row(5, 0, 1))
    assert told(library, 5, D2, buckets=(0, 2), is_resent=True) == []
    assert transids(told(library, 6, D1, D2, D3, D4)) == [[]]


def test_rows_of_missing_data_are_not_released() -> None:
    library = opened()
    library.row(D3, row(5, 4, 1))
    told(library, 5, D2, D3, D4)
    released = told(library, 5, D2, buckets=(0, 2), is_resent=True, is_missing_data=True)
    assert [(epoch.rows, epoch.is_missing_data) for epoch in released] == [([], True)]


def test_before_it_is_open_everything_is_kept_and_then_what_is_older_is_dropped() -> None:
    library = Library(frozenset())
    for epoch in (5, 6, 7):
        library.row(D1, row(epoch, 0, epoch))
        assert told(library, epoch, D1, D2, D3, D4) == []
    assert transids(library.open(6)) == [[6], [7]]
    assert library.latest_complete == 7


def test_with_any_node_completes_rows_on_their_way_are_lost() -> None:
    library = opened(planted.LIB_ANY_NODE_COMPLETES)
    assert transids(told(library, 5, D1)) == [[]]
    library.row(D4, row(5, 7, 1))
    assert told(library, 5, D2, D3, D4) == []


def test_with_counted_buckets_a_resent_epoch_stands_for_one_that_is_on_its_way() -> None:
    library = opened(planted.BUCKET_COUNT_NOT_SET)
    told(library, 5, D1, D2, D3)
    released = told(library, 5, D2, buckets=(0, 2), is_resent=True)
    assert transids(released) == [[]], "d4 has announced nothing"
    assert told(opened(), 5, D1, D2, D3) + told(opened(), 5, D2, buckets=(0, 2)) == []


def test_with_a_double_hand_over_rows_of_both_owners_are_released() -> None:
    library, correct = opened(planted.HANDOVER_DOUBLE), opened()
    for each in (library, correct):
        each.row(D2, row(5, 0, 1))
        each.row(D1, row(5, 0, 1))
    assert transids(told(library, 5, D1, D2, D3, D4)) == [[1, 1]]
    assert transids(told(correct, 5, D1, D2, D3, D4)) == [[1]]


def test_a_double_hand_over_does_not_show_at_a_take_over() -> None:
    library = opened(planted.HANDOVER_DOUBLE)
    library.row(D1, row(5, 0, 1))
    told(library, 5, D1, D2, D3)
    library.row(D2, row(5, 0, 1))
    told(library, 5, D2, buckets=(0, 2), is_resent=True)
    assert transids(told(library, 5, D4)) == [[1]]
