"""The names of keys, positions and watermarks in sentences: as a system's own users write them."""

import pickle

import pytest

from checkers.history.names import PLAIN, Forms, Names, first_difference, forms_of, shown_list
from harness.core.columns import NAMED
from harness.core.promises import Bounds, Naming
from tests.worlds.streams.cases import contract

EPOCH = 10 << 32 | 10


@pytest.mark.parametrize(
    ("kind", "position", "said"),
    [
        ("epoch", EPOCH, ("epoch 10/10", "Epoch 10/10 was declared complete to s2")),
        ("lsn", 0x16B3748, ("LSN 0/16B3748", "The watermark at LSN 0/16B3748 was announced to s2")),
        ("lsn", 1 << 32 | 0xA0, ("LSN 1/A0", "The watermark at LSN 1/A0 was announced to s2")),
        ("offset", 42, ("offset 42", "The watermark at offset 42 was announced to s2")),
        ("revision", 42, ("revision 42", "The watermark at revision 42 was announced to s2")),
        ("commit-timestamp", 42, ("timestamp 42", "Resolved timestamp 42 was announced to s2")),
    ],
)
def test_a_position_is_written_as_its_kind_is(kind: str, position: int, said: tuple[str, str]) -> None:
    forms = forms_of(Naming(), contract(position=kind), Bounds(saved_bits=32))
    assert (forms.position(position), forms.announced(position, "s2")) == said


def test_what_a_system_declares_goes_before_what_its_contract_suggests() -> None:
    declared = Naming(key="account {}", position="SCN {}", watermark="frontier {}")
    forms = forms_of(declared, contract(position="offset"), Bounds())
    assert forms.position(7) == "SCN 7"
    assert forms.announced(7, "s1") == "Frontier 7 was announced to s1"
    assert Names(str, forms).pair(54, 17) == "value 17 of key account 54"


@pytest.mark.parametrize(
    ("position", "said"),
    [(3_251 << 18 | 2, "timestamp 3.251 s +2"), (60_007 << 18, "timestamp 60.007 s"), (5, "timestamp 0.000 s +5")],
)
def test_a_hybrid_timestamp_is_seconds_and_a_counter(position: int, said: str) -> None:
    forms = forms_of(Naming(logical_bits=18), contract(position="commit-timestamp"), Bounds(saved_bits=4))
    assert forms.position(position) == said
    assert forms.watermark(position) == f"resolved {said}"


def test_a_hybrid_timestamp_may_be_shown_as_the_id_that_it_stands_for() -> None:
    naming = Naming(position="entry {}", watermark="the ack floor {}", logical_bits=20, logical_form="id")
    forms = forms_of(naming, contract(position="offset"), Bounds())
    assert [forms.position(each) for each in (3_251 << 20 | 2, 60_007 << 20)] == ["entry 3251-2", "entry 60007-0"]
    assert forms.watermark((1 << 20) - 1) == "the ack floor 0-1048575"


def test_an_epoch_of_unknown_parts_is_one_number() -> None:
    assert forms_of(Naming(), contract(position="epoch"), Bounds()).position(42) == "epoch 42"


def test_only_keys_that_are_numbers_get_the_form() -> None:
    names = Names({54: "54", NAMED + 1: "x"}.__getitem__, forms_of(Naming(), None, Bounds()))
    assert [names.key(54), names.key(NAMED + 1)] == ["k54", "x"]
    assert names(54) == "54"


def test_without_a_contract_a_position_is_just_that() -> None:
    forms = forms_of(Naming(), None, Bounds())
    assert (forms.position(4), forms.watermark(4)) == (Forms().position(4), "watermark 4")
    assert PLAIN.pair(54, 17) == "value 17 of key 54"


@pytest.mark.parametrize(
    ("elements", "at", "shown"),
    [
        ("", None, "[]"),
        ("abcd", 0, "[a, b, c, d]"),
        ("abcdefgh", None, "[..., e, f, g, h]"),
        ("abcdefgh", 0, "[a, b, c, d, ...]"),
        ("abcdefgh", 4, "[..., c, d, e, f, ...]"),
        ("abcdefgh", 7, "[..., e, f, g, h]"),
        ("abcdefgh", 8, "[..., e, f, g, h]"),
    ],
)
def test_a_long_list_is_shown_where_it_differs(elements: str, at: int | None, shown: str) -> None:
    assert shown_list(elements, at) == shown


@pytest.mark.parametrize(
    ("one", "other", "place"), [("abc", "abc", None), ("abc", "axc", 1), ("ab", "abc", 2), ("abc", "", 0)]
)
def test_lists_differ_at_the_first_place_that_is_not_equal(one: str, other: str, place: int | None) -> None:
    assert first_difference(one, other) == first_difference(other, one) == place


def test_names_reach_other_processes() -> None:
    assert pickle.loads(pickle.dumps(PLAIN)).key(3) == "3"  # noqa: S301  What was dumped here.
