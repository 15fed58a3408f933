"""Ranges of places are the pairs that they stand for: every question has the answer of a loop over all pairs."""

import numpy as np
import pytest

from checkers.columns.spreads import Spread
from harness.core.columns import Int64s

PLACES = 9
Pairs = set[tuple[int, int]]


def drawn(seed: int) -> tuple[np.random.Generator, Spread]:
    dice = np.random.default_rng(seed)
    begin = dice.integers(0, PLACES, 12)
    return dice, Spread(dice.integers(0, 4, 12), begin, begin + dice.integers(1, PLACES - begin + 1))


def pairs_of(spread: Spread) -> list[tuple[int, int]]:
    """The row and the place of each pair."""
    rows = enumerate(zip(spread.begin.tolist(), spread.end.tolist(), strict=True))
    return [(row, place) for row, (begin, end) in rows for place in range(begin, end)]


def found(columns: tuple[Int64s, Int64s]) -> list[tuple[int, int]]:
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def numbered(spread: Spread) -> Pairs:
    return {(int(spread.number[row]), place) for row, place in pairs_of(spread)}


SEEDS = pytest.mark.parametrize("seed", range(40))


@SEEDS
def test_pairs_are_found_by_place_and_by_height(seed: int) -> None:
    dice, spread = drawn(seed)
    every, limit = pairs_of(spread), dice.integers(0, 6, 12)
    is_meant = dice.integers(0, 2, PLACES) > 0
    for height in (dice.integers(0, 6, PLACES), np.arange(PLACES) // 2, -np.arange(PLACES)):
        low = [(row, place) for row, place in every if height[place] < limit[row]]
        high = [(row, place) for row, place in every if height[place] > limit[row]]
        assert found(spread.below(height, limit)) == low
        assert found(spread.above(height, limit)) == high
    assert found(spread.pairs()) == every
    assert spread.size() == len(every)
    assert found(spread.among(is_meant)) == [(row, place) for row, place in every if is_meant[place]]


@SEEDS
def test_each_place_has_the_highest_value_of_all_ranges_that_reach_it(seed: int) -> None:
    dice, spread = drawn(seed)
    value, nothing = dice.integers(-9, 9, 12), dice.integers(-9, 9, PLACES)
    highest = nothing.tolist()
    for row, place in pairs_of(spread):
        highest[place] = max(highest[place], int(value[row]))
    assert spread.highest(value, nothing).tolist() == highest


@SEEDS
def test_a_union_has_each_pair_once_and_knows_which_it_has(seed: int) -> None:
    _, spread = drawn(seed)
    united = spread.united(PLACES)
    assert numbered(united) == numbered(spread)
    assert united.size() == len(numbered(spread))
    number, place = (column.ravel() for column in np.meshgrid(np.arange(5), np.arange(-1, PLACES)))
    is_there = [pair in numbered(spread) for pair in zip(number.tolist(), place.tolist(), strict=True)]
    assert united.has(number, place, PLACES).tolist() == is_there


@SEEDS
def test_what_is_left_without_some_pairs_has_the_others(seed: int) -> None:
    dice, spread = drawn(seed)
    united = spread.united(PLACES)
    number, place = dice.integers(0, 4, 10), dice.integers(0, PLACES, 10)
    row, begin, end = united.without(number, place, PLACES)
    left = Spread(united.number[row], begin, end)
    gone = set(zip(number.tolist(), place.tolist(), strict=True))
    assert numbered(left) == numbered(spread) - gone
    assert left.size() == len(numbered(left))


def test_no_ranges_and_no_places_are_no_pairs() -> None:
    none = np.empty(0, np.int64)
    nothing = Spread(none, none, none)
    assert found(nothing.below(none, none)) == []
    assert nothing.highest(none, np.array([7])).tolist() == [7]
    assert nothing.highest(none, none).tolist() == []
    assert nothing.united(0).has(np.array([0]), np.array([-1]), 0).tolist() == [False]
