"""How lists and registers are stored: what went in comes out, and the stream shows the last change."""

from hypothesis import given
from hypothesis import strategies as st

from clusters.postgres import rows
from clusters.servers.values import encoded, held
from harness.core.record import Json

ELEMENTS = st.one_of(st.integers(-(2**60), 2**60), st.text())


@given(st.lists(ELEMENTS, min_size=1))
def test_a_list_is_what_was_appended_and_shows_its_last_element(elements: list[Json]) -> None:
    stored = b"\n".join(map(encoded, elements))  # As the server puts them together.
    assert rows.elements(stored) == elements
    assert rows.shown("list_0", stored) == elements[-1]


@given(ELEMENTS)
def test_a_register_shows_what_it_holds(value: Json) -> None:
    assert held(encoded(value)) == value
    assert rows.shown("register_2", encoded(value)) == value


def test_what_is_not_there_is_an_empty_list_or_nothing() -> None:
    assert rows.elements(None) == []
    assert held(None) is None


@given(st.one_of(st.integers(0, 2**40), st.text()))
def test_each_key_has_one_table_and_that_table_is_streamed(key: Json) -> None:
    assert rows.table_of(rows.LIST, key) == rows.table_of(rows.LIST, key)
    assert rows.table_of(rows.LIST, key) in rows.STREAMED
    assert rows.table_of(rows.REGISTER, key) in rows.STREAMED
    assert rows.table_of(rows.CELL, key) not in rows.STREAMED


def test_neighbouring_keys_are_in_different_tables() -> None:
    assert len({rows.table_of(rows.LIST, key) for key in range(rows.TABLES)}) == rows.TABLES


def test_a_read_locks_as_it_says() -> None:
    assert rows.read("list_0").endswith("$1")
    assert rows.read("list_0", "shared").endswith(" FOR SHARE")
    assert rows.read("list_0", "exclusive").endswith(" FOR UPDATE")
    assert rows.read("list_0", "committed") == rows.read("list_0")


def test_a_number_that_was_not_found_is_none() -> None:
    assert rows.number([(b"42",)]) == 42
    assert rows.number([]) is None
    assert rows.number([(None,)]) is None
