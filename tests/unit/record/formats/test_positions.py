"""Positions of foreign streams: what they are worth, exactly, and what cannot be compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.record import Json
from harness.record.formats.streams.debezium.sources import PostgreSQLSource, place_in, places_in
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
    for wall, counter in pairs:
        positions.take(f"{wall}.{counter:010}", "line 1")
    numbers = positions.numbers().tolist()
    assert positions.are_ranks is any(counter for _, counter in pairs)
    for one, number in zip(pairs, numbers, strict=True):
        for other, another in zip(pairs, numbers, strict=True):
            assert (one < other, one == other) == (number < another, number == another)


LSNS = st.integers(0, 40) | st.integers(0, (1 << 62) - 1)


@given(st.lists(st.tuples(st.integers(0, 5), LSNS), min_size=1), st.booleans())
def test_positions_of_postgresql_at_once_are_as_one_by_one(pairs: list[tuple[int, int]], is_mixed: bool) -> None:
    sources = [PostgreSQLSource("postgresql", lsn, f'["{commit}", "{lsn}"]', "s", "t") for commit, lsn in pairs]
    together, alone = Positions(), Positions()
    for begin in range(0, len(sources), 3):
        together.take_all(places_in(sources[begin : begin + 3]), str)
    for source in sources:
        place = place_in(source)
        assert place is not None
        alone.take(place, "line 1")
        if is_mixed:
            together.take(place, "line 1")
            alone.take(place, "line 1")
    assert len(together) == len(sources) * (1 + is_mixed)
    numbers = alone.numbers().tolist()
    assert together.numbers().tolist() == (numbers[::2] * 2 if is_mixed else numbers)
    assert list(map(str, together.texts()[1])) == list(map(str, alone.texts()[1]))


def test_positions_without_a_counter_stay_as_they_are() -> None:
    positions = Positions()
    positions.take("1700000000000000000.0000000000", "line 1")
    assert positions.numbers().tolist() == [1700000000000000000]


def test_kinds_do_not_mix() -> None:
    positions = Positions()
    positions.take("0/1", "line 1")
    with pytest.raises(ValueError, match="one of integers, and that of line 1 one of log positions"):
        positions.take(1, "line 2")


def test_great_integers_get_ranks_in_their_order_and_keep_their_digits() -> None:
    positions = Positions()
    for value in ("4421584500000000017450439092", "7", "4421584500000000017450439091", 1 << 62):
        positions.take(value, "line 1")
    assert positions.numbers().tolist() == [4, 1, 3, 2]
    assert positions.texts()[1] == ["7", str(1 << 62), "4421584500000000017450439091", "4421584500000000017450439092"]


SERVER, OTHER = "3E11FA47-71CA-11E1-9E33-C80AA9429562", "4E11FA47-71CA-11E1-9E33-C80AA9429562"


@pytest.mark.parametrize(
    "ascending",
    [
        [f"{SERVER}:9", f"{SERVER.lower()}:10", f"{SERVER}:11"],
        ["0-1-9", "0-2-10", "0-1-11"],  # MariaDB's domain counts over its servers.
        ["b.000009:500", "b.000010:4", "b.000010:30"],
        [{"t": 5, "i": 9}, {"$timestamp": {"t": 5, "i": 10}}, {"t": 6, "i": 1}],
        [{"_data": "826353AB1C000000012B022C0100296E"}, {"_data": "826353AB1C000000022B"}, "826353AB1D000000012B"],
        [{"_data": "826353AB1C000000012B"}, {"_data": "826353AB1C000000012B02"}],  # The longer one comes later.
    ],
)
def test_notations_of_systems_are_in_their_order(ascending: list[Json]) -> None:
    positions = Positions()
    for value in ascending:
        positions.take(value, "line 1")
    numbers = positions.numbers().tolist()
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    ("one", "other", "problem"),
    [
        (
            f"{SERVER}:1",
            f"{OTHER}:2",
            "its position is one of GTIDs of server 4e11fa47.* and that of line 1 one of GTIDs",
        ),
        ("0-1-9", "1-1-10", "GTIDs of domain 1, and that of line 1 one of GTIDs of domain 0"),
        ("a.000001:4", "b.000001:4", "binary log b, and that of line 1 one of binary log a"),
        (f"{SERVER}:1", f"{SERVER}:1-5", "a set of GTIDs, and sets have no total order: give the GTID"),
        (f"{SERVER}:1", f"{SERVER}:1,{OTHER}:3", "a set of GTIDs"),
        (1, "826353AB1C000000012B", "one of resume tokens, and that of line 1 one of integers"),
    ],
)
def test_notations_without_a_common_order_are_refused_by_name(one: Json, other: Json, problem: str) -> None:
    positions = Positions()
    positions.take(one, "line 1")
    with pytest.raises(ValueError, match=problem):
        positions.take(other, "line 2")


def test_a_number_is_no_token() -> None:
    assert Positions().take("823456789012345678", "line 1") == (823456789012345678, 0)
