"""Positions of foreign streams: what they are worth, exactly, and what cannot be compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.record import Json
from harness.record.formats.streams.positions import Positions, position_of


@pytest.mark.parametrize(
    ("value", "wall", "counter"),
    [
        (17, 17, 0),
        (-1, -1, 0),
        ("17", 17, 0),
        ("1700000000000000000.0000000002", 1700000000000000000, 2),
        ("5.1", 5, 1_000_000_000),  # As the fraction of a decimal: more than 5.0000000002.
        ("16/B374D848", 0x16B374D848, 0),
        ("0/0", 0, 0),
    ],
)
def test_a_position_is_taken_exactly(value: Json, wall: int, counter: int) -> None:
    assert position_of(value).parts == (wall, counter)


@pytest.mark.parametrize("value", [None, True, 1.0, "", "x", "1e3", "1.2.3", "1/2/3", "1.", "0x10", [1], {"#int": "9"}])
def test_what_is_no_position_is_refused(value: Json) -> None:
    with pytest.raises(ValueError, match="its position"):
        position_of(value)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1))
def test_numbers_stand_in_the_order_of_positions(pairs: list[tuple[int, int]]) -> None:
    positions = Positions()
    keys = [positions.take(f"{wall}.{counter:010}", "line 1") for wall, counter in pairs]
    numbers = [positions.number(key) for key in keys]
    assert positions.are_ranks is any(counter for _, counter in pairs)
    for one, number in zip(pairs, numbers, strict=True):
        for other, another in zip(pairs, numbers, strict=True):
            assert (one < other, one == other) == (number < another, number == another)


def test_positions_without_a_counter_stay_as_they_are() -> None:
    positions = Positions()
    assert positions.number(positions.take("1700000000000000000.0000000000", "line 1")) == 1700000000000000000


def test_kinds_do_not_mix_and_what_is_too_large_is_refused() -> None:
    positions = Positions()
    positions.take("0/1", "line 1")
    with pytest.raises(ValueError, match="one of integers, and that of line 1 one of log positions"):
        positions.take(1, "line 2")
    with pytest.raises(ValueError, match="beyond 62 bits"):
        Positions().take(1 << 62, "line 1")
    assert Positions().take((1 << 62) - 1, "line 1") == ((1 << 62) - 1, 0)
