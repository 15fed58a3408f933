"""Searches among merged intervals answer as loops over the intervals that were merged."""

import random

import pytest

from checkers.history.intervals import is_met, merged


@pytest.mark.parametrize("seed", range(30))
def test_merged_intervals_meet_what_one_of_them_met(seed: int) -> None:
    dice = random.Random(seed)
    intervals = [(begin, begin + dice.randrange(4)) for begin in (dice.randrange(30) for _ in range(6))]
    for begin in range(-1, 35):
        for end in range(begin, begin + 4):
            is_one = any(start <= end and stop >= begin for start, stop in intervals)
            assert is_met(begin, end, merged(intervals)) == is_one, f"seed {seed}: {intervals}, {begin} to {end}"


def test_no_intervals_meet_nothing() -> None:
    assert not is_met(0, 9, [])
