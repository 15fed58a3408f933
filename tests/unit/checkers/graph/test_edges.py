"""Implicit rw edges beside others: every reader of a group precedes every other writer of it, and nobody else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from checkers.graph.edges import RW, ImplicitRw, Members

Row = tuple[int, int]  # group, operation
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=8, unique=True).map(sorted)


def implicit(readers: list[Row], writers: list[Row]) -> ImplicitRw:
    columns = [np.array(rows, np.int32).reshape(-1, 2).T for rows in (readers, writers)]
    return ImplicitRw(*(Members(group, op, op + 10) for group, op in columns))


def edges(given: ImplicitRw) -> set[tuple[int, int, int, int]]:
    """The edges that are not written out, written out: source, target, and the ends of both."""
    first, end = given.writer_spans()
    pairs = given.pairs(first=first, count=end - first)
    assert set(pairs.kinds.tolist()) <= {RW}
    columns = (pairs.source, pairs.target, pairs.source_after, pairs.target_after)
    return set(zip(*(column.tolist() for column in columns), strict=True))


def expected(readers: list[Row], writers: list[Row]) -> set[tuple[int, int, int, int]]:
    met = [(one, other) for group, one in readers for beside, other in writers if beside == group and one != other]
    return {(one, other, one + 10, other + 10) for one, other in met}


@given(readers=ROWS, writers=ROWS, more_readers=ROWS, more_writers=ROWS)
def test_implicit_edges_beside_others_keep_their_edges_and_win_none(
    readers: list[Row], writers: list[Row], more_readers: list[Row], more_writers: list[Row]
) -> None:
    both = implicit(readers, writers).beside(implicit(more_readers, more_writers))
    assert edges(both) == expected(readers, writers) | expected(more_readers, more_writers)


def test_groups_of_one_are_not_met_by_those_of_the_other() -> None:
    """The first knows group 0 only, by readers; the other's group 0 is another one."""
    assert edges(implicit([(0, 1)], []).beside(implicit([], [(0, 2)]))) == set()
    assert edges(implicit([], [(0, 2)]).beside(implicit([(0, 1)], []))) == set()
    assert edges(implicit([(0, 1)], [(0, 2)]).beside(implicit([(0, 3)], [(0, 4)]))) == {(1, 2, 11, 12), (3, 4, 13, 14)}
