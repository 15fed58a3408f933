"""Runs in flat arrays, against plain loops."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkers.columns import runs as ragged
from harness.core.columns import Int64s

lists = st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=8)
intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6)), max_size=8)


def flat(runs: list[list[int]]) -> tuple[Int64s, Int64s, Int64s]:
    lengths = np.array([len(run) for run in runs], np.int64)
    return np.array([x for run in runs for x in run], np.int64), np.cumsum(lengths) - lengths, lengths


@settings(max_examples=100)
@given(runs=lists)
def test_expand_gives_the_positions_of_all_runs(runs: list[list[int]]) -> None:
    values, start, length = flat(runs)
    assert values[ragged.expand(start[::-1], length[::-1])].tolist() == [x for run in runs[::-1] for x in run]


@settings(max_examples=200)
@given(left=lists, right=lists)
def test_common_prefix_is_as_far_as_two_runs_agree(left: list[list[int]], right: list[list[int]]) -> None:
    pairs = [(one[: len(other)], other[: len(one)]) for one, other in zip(left, right, strict=False)]
    a, a_start, length = flat([one for one, _ in pairs])
    b, b_start, _ = flat([other for _, other in pairs])
    found = ragged.common_prefix(a, b, left_start=a_start, right_start=b_start, length=length)
    expected = [
        next((at for at, (x, y) in enumerate(zip(one, other, strict=True)) if x != y), len(one)) for one, other in pairs
    ]
    assert found.tolist() == expected


def test_common_prefix_is_the_same_over_many_blocks() -> None:
    length = np.full(500, 400, np.int64)  # Three blocks and a part.
    values = np.tile(np.arange(400), 500)
    other = values.copy()
    other[400 * 200 + 7] = other[400 * 499 + 399] = -1
    start = np.arange(500) * 400
    found = ragged.common_prefix(values, other, left_start=start, right_start=start, length=length)
    assert found[200] == 7
    assert found[499] == 399
    assert np.count_nonzero(found == 400) == 498


@settings(max_examples=100)
@given(values=st.lists(st.one_of(st.integers(0, 20), st.integers(0, 2**62))))
def test_codes_are_places_among_the_distinct_values(values: list[int]) -> None:
    distinct, places = ragged.codes(np.array(values, np.int64))
    assert distinct.tolist() == sorted(set(values))
    assert distinct[places].tolist() == values


def test_codes_of_values_on_both_sides_of_zero_need_no_table_of_all_between() -> None:
    distinct, places = ragged.codes(np.array([1 << 50, -(1 << 50), 1 << 50], np.int64))
    assert (distinct.tolist(), places.tolist()) == ([-(1 << 50), 1 << 50], [1, 0, 1])


@settings(max_examples=200)
@given(values=st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**62), 2**62))))
@example([1 << 61, 0])  # The first that does not fit in a word with its place.
@example([(1 << 61) - 1, 0])
def test_ordered_is_a_stable_sort_and_distinct_has_each_value_once(values: list[int]) -> None:
    order, ascending = ragged.ordered(np.array(values, np.int64))
    assert order.tolist() == sorted(range(len(values)), key=lambda at: values[at])
    assert ascending.tolist() == sorted(values)
    assert ragged.distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


@settings(max_examples=100)
@given(places=st.lists(st.sampled_from([0, 1, 2, 255, 256])), count=st.sampled_from([3, 256, 257, 300]))
def test_groups_are_the_rows_of_each_place(places: list[int], count: int) -> None:
    places = [place for place in places if place < count]
    found = [rows.tolist() for rows in ragged.groups(np.array(places, np.int64), count)]
    assert found == [[row for row, place in enumerate(places) if place == wanted] for wanted in range(count)]


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_each_row_is_paired_with_all_at_the_next_place_of_its_group(rows: list[tuple[int, int]]) -> None:
    rows.sort()
    one, other, crowded = ragged.next_places(*np.array(rows, np.int64).reshape(-1, 2).T)
    following = {
        (group, place): min((p for g, p in rows if g == group and p > place), default=-1) for group, place in rows
    }
    wanted = [(i, j) for i, row in enumerate(rows) for j, each in enumerate(rows) if each == (row[0], following[row])]
    assert list(zip(one.tolist(), other.tolist(), strict=True)) == wanted
    assert crowded.tolist() == []


def test_a_group_with_too_many_pairs_has_none_and_is_named() -> None:
    group, place = (
        np.repeat([0, 1, 2], [200, 60, 2]),
        np.concatenate((np.repeat([0, 1], [100, 100]), [0] * 30 + [1] * 30, [0, 1])),
    )
    one, other, crowded = ragged.next_places(group, place)
    assert crowded.tolist() == [0]
    assert (len(one), one.min(), other.max()) == (30 * 30 + 1, 200, 261)


@settings(max_examples=200)
@given(some=intervals, others=intervals)
def test_merged_intervals_hold_the_same_points_and_meet_the_same(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    start, length = (np.array([each[at] for each in some], np.int64) for at in (0, 1))
    of_start, of_stop = ragged.merged(start, start + length)
    points = {point for low, size in some for point in range(low, low + size)}
    assert {point for low, high in zip(of_start, of_stop, strict=True) for point in range(low, high)} == points
    assert all(of_stop[:-1] < of_start[1:])
    low, size = (np.array([each[at] for each in others], np.int64) for at in (0, 1))
    expected = [bool(points & set(range(begin, begin + width))) for begin, width in others]
    assert ragged.meets(low, low + size, of_start=of_start, of_stop=of_stop).tolist() == expected
