"""Grouping and searching of arrays, beside the plain way to do it, with numbers near and far, missing and negative."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.columns import index as stream_index
from checkers.columns.index import (
    FirstTimes,
    GroupIndex,
    Places,
    ascending,
    codes,
    count_so_far,
    first_places,
    first_rows,
    joint_codes,
    last_places,
    max_so_far,
    searched,
)
from harness.core.columns import NEVER, Int64s

FAR = 1 << 60
NUMBERS = st.one_of(st.integers(-3, 4), st.sampled_from([NEVER, FAR, FAR + 1, -FAR, 1 << 40]))
GROUPS = st.integers(0, 4)


def column(numbers: list[int]) -> Int64s:
    return np.array(numbers, np.int64)


def columns(rows: Sequence[tuple[int, ...]], width: int) -> list[Int64s]:
    return [column([row[at] for row in rows]) for at in range(width)]


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=30))
def test_rows_are_ordered_and_numbered_as_tuples_are(rows: list[tuple[int, int, int]]) -> None:
    given_columns = columns(rows, 3)
    assert ascending(*given_columns).tolist() == sorted(range(len(rows)), key=lambda at: rows[at])
    number = {row: at for at, row in enumerate(sorted(set(rows)))}
    assert codes(*given_columns).tolist() == [number[row] for row in rows]
    assert first_rows(*given_columns).tolist() == [at for at, row in enumerate(rows) if row not in rows[:at]]


@given(st.lists(st.tuples(NUMBERS, GROUPS), max_size=20), st.lists(st.tuples(NUMBERS, GROUPS), max_size=20))
def test_rows_of_two_tables_share_numbers(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    one, other = joint_codes(columns(left, 2), columns(right, 2))
    assert [*one.tolist(), *other.tolist()] == codes(*columns([*left, *right], 2)).tolist()
    assert (len(one), len(other)) == (len(left), len(right))


@given(st.lists(GROUPS, max_size=12))
def test_each_number_has_its_first_and_its_last_place(code: list[int]) -> None:
    first, last = first_places(column(code), 6).tolist(), last_places(column(code), 6).tolist()
    for number in range(6):
        places = [place for place, each in enumerate(code) if each == number]
        assert (first[number], last[number]) == ((places[0], places[-1]) if places else (-1, -1))


@given(st.lists(st.tuples(GROUPS, NUMBERS, st.booleans()), max_size=30))
def test_what_a_group_has_had_is_told_for_each_row(rows: list[tuple[int, int, bool]]) -> None:
    group, height = columns([row[:2] for row in rows], 2)
    flag = np.array([row[2] for row in rows], np.bool_)
    before = [[row for row in rows[: at + 1] if row[0] == rows[at][0]] for at in range(len(rows))]
    assert count_so_far(group, flag).tolist() == [sum(row[2] for row in had) for had in before]
    assert max_so_far(group, height).tolist() == [max(row[1] for row in had) for had in before]


@given(st.lists(st.tuples(GROUPS, NUMBERS), max_size=20), st.lists(st.tuples(st.integers(-1, 6), NUMBERS), max_size=9))
def test_rows_are_found_by_group_and_height(rows: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    known, heights = columns(rows, 2)
    index = GroupIndex(known, heights, np.arange(len(rows)) + 100)
    group, height = columns(asked, 2)
    ordered = sorted(range(len(rows)), key=lambda at: rows[at])
    for above in (False, True):
        found = [
            [at for at in ordered if rows[at][0] == g and (rows[at][1] > h if above else rows[at][1] >= h)]
            for g, h in asked
        ]
        assert index.first(group, height, above=above).tolist() == [each[0] + 100 if each else -1 for each in found]
        below = [
            [at for at in ordered if rows[at][0] == g and (rows[at][1] <= h if above else rows[at][1] < h)]
            for g, h in asked
        ]
        last = index.last_before(group, height, or_equal=above).tolist()
        assert last == [each[-1] + 100 if each else -1 for each in below]


@given(st.sets(NUMBERS, max_size=12), st.lists(NUMBERS, max_size=12), st.booleans())
def test_numbers_are_found_among_others(known: set[int], wanted: list[int], is_close: bool) -> None:
    values = sorted(number for number in known if not is_close or abs(number) < FAR)
    place = {number: at for at, number in enumerate(values)}
    assert Places(column(values)).of(column(wanted)).tolist() == [place.get(number, -1) for number in wanted]


@given(st.lists(NUMBERS, max_size=20), st.lists(NUMBERS, max_size=6))
def test_a_group_is_first_seen_at_its_first_row(groups: list[int], wanted: list[int]) -> None:
    times = FirstTimes(column(groups), np.arange(len(groups)) * 10)
    assert times.at(column(wanted)).tolist() == [groups.index(w) * 10 if w in groups else NEVER for w in wanted]


def test_what_is_asked_for_out_of_order_is_found_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_index, "_CACHED", 2)
    values, wanted = column([1, 3, 3, 7]), column([7, 3, 0, 9, 3])
    assert searched(values, wanted).tolist() == [3, 1, 0, 4, 1]
    assert searched(values, wanted, above=True).tolist() == [4, 3, 0, 4, 3]
    assert Places(column([2, FAR])).of(column([FAR, 2, 5])).tolist() == [1, 0, -1]


def test_many_wide_columns_are_more_than_one_word() -> None:
    draw = np.random.default_rng(3)
    wide = [draw.integers(0, 1 << 40, 500) for _ in range(3)]
    wide[0][:250] = wide[0][250:]
    order = ascending(*wide)
    rows = list(zip(*(each[order].tolist() for each in wide), strict=True))
    assert all(one <= two for one, two in pairwise(rows))
    assert len(set(codes(*wide).tolist())) == len(set(rows))
