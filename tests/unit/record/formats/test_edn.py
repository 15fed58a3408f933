from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import HistoryError
from harness.core.record import Json
from harness.record.formats.edn.forms import FORM_MAX, NESTING_MAX, BadEdn, forms, read_edn
from harness.record.formats.edn.values import collection, to_edn
from harness.record.formats.parquet.names import json_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS: st.SearchStrategy[Json] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
    st.sampled_from(
        [":x", ":a/b", '"', "\\", "a\nb", {"#ratio": "1/3"}, {"#decimal": "1.50"}, {"#int": "1" + 30 * "0"}]
    ),
    st.sampled_from([{"#symbol": "a-b"}, {"#char": "a"}, {"#char": "\n"}, {"#float": "##Inf"}, {"#float": "##NaN"}]),
)
KEYS = TEXT.filter(lambda key: not key.startswith("#"))
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=3),
        st.lists(inner, max_size=3).map(lambda items: collection("#{", items)),
        st.lists(inner, max_size=4)
        .filter(lambda items: len(items) % 2 == 0)
        .map(lambda items: collection("{", [1, 2, *items])),
        inner.map(lambda value: {"#inst": value}),
    ),
    max_leaves=12,
)


def parsed(text: str) -> list[Json]:
    return list(forms([text.encode()]))


@settings(max_examples=300)
@given(st.lists(VALUES, max_size=4), st.integers(1, 9))
def test_what_is_written_is_read_back_in_blocks_of_any_size(values: list[Json], size: int) -> None:
    encoded = f"[{' '.join(map(to_edn, values))}] ; the end".encode()
    assert list(forms(encoded[at : at + size] for at in range(0, len(encoded), size))) == values
    assert repr(list(forms([encoded]))) == repr(values)  # Types as well: 1 is not 1.0, nor true.


def test_all_that_edn_can_say_has_a_value() -> None:
    text = r"""
    {:index 3, "a" nil} (1 -2 +3 0) #{1 2} #inst "2026-11-21" 1/3 1.50M 7N 99999999999999999999 1e3 \a \newline \u0041
    \[ sym #_ skipped #_ #tag [skipped] {1 2} ##Inf "tab\t \u00e9 \ud83d\ude00" ; a comment [
    {"#set" 1}"""
    assert parsed(text) == [
        {":index": 3, "a": None},
        [1, -2, 3, 0],
        {"#set": [1, 2]},
        {"#inst": "2026-11-21"},
        {"#ratio": "1/3"},
        {"#decimal": "1.50"},
        7,
        {"#int": "99999999999999999999"},
        1000.0,
        {"#char": "a"},
        {"#char": "\n"},
        {"#char": "A"},
        {"#char": "["},
        {"#symbol": "sym"},
        {"#map": [[1, 2]]},
        {"#float": "##Inf"},
        "tab\t é 😀",
        {"#map": [["#set", 1]]},
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("#{1 2}", "#{2 1}"),
        ("#{10 9}", "#{9 10}"),
        ('#{:a "b" nil 1.5 #{2 1}}', '#{1.5 #{1 2} nil "b" :a}'),
        ("#{{:a 1 :b 2} 3}", "#{3 {:b 2 :a 1}}"),
        ("{1 2, [3] 4}", "{[3] 4, 1 2}"),
        ("{#{1 2} 3}", "{#{2 1} 3}"),
    ],
)
def test_a_set_or_map_is_one_value_in_whatever_order_it_was_written(one: str, other: str) -> None:
    assert json_text(parsed(f"nil {one}")) == json_text(parsed(f"nil {other}"))


def test_one_list_around_all_is_taken_off() -> None:
    assert parsed("; first\n([1] [2])") == [[1], [2]]
    assert parsed("{} [1] [2]") == [{}, [1], [2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1 2", "line 1, column 4: the file ends inside of '['"),
        ("[1]\n 2", "line 2, column 2: something follows the end of the history"),
        ("{:a 1}\n{:a}", "line 2, column 4: a map ends after a key"),
        ("{:a 1 :a 2}", "line 1, column 11: a map has a key twice"),
        ("\n  ]", "line 2, column 3: ']' does not end 'the history'"),
        ("[1 )", "line 1, column 4: ')' does not end '['"),
        ('1 "abc', "line 1, column 3: the file ends inside of a string"),
        ('1 "abc\\"', "line 1, column 3: the file ends inside of a string"),
        ('1 "abc\\', "line 1, column 3: the file ends inside of a string"),
        (r'"\q"', r"line 1, column 1: '\\q' is no escape in a string"),
        (r'"\ud800"', "line 1, column 1: a string has half of a surrogate pair"),
        ("[" * 66, "line 1, column 66: values are nested deeper than 64, the limit"),
        ("1e999", "line 1, column 1: '1e999' is too large for a float"),
        ("#_", "line 1, column 1: the file ends inside of '#_'"),
        ("[#tag]", "line 1, column 6: ']' does not end '#tag'"),
        ("##Foo", "line 1, column 1: '##Foo' is not a value"),
        ("012x", "line 1, column 1: '012x' is not a value"),
        ("# 1", "line 1, column 1: a tag has no name"),
        (":", "line 1, column 1: ':' is not a keyword"),
        (r"\xyz", "line 1, column 1: 'xyz' is not a character"),
    ],
)
def test_what_is_no_edn_is_named_with_its_place(text: str, message: str) -> None:
    for size in (1, 7, 1000):
        encoded = text.encode()
        with pytest.raises(BadEdn) as raised:
            list(forms(encoded[at : at + size] for at in range(0, len(encoded), size)))
        assert str(raised.value) == message


def test_what_is_no_text_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    path.write_bytes(b"{:a 1}\n\xff")
    with pytest.raises(HistoryError, match=r"h\.edn, line \d+, column \d+: the bytes after this are not UTF-8"):
        list(read_edn(path))


@pytest.mark.parametrize(("begin", "more"), [('"', "x"), ("{:value [", "1 "), (":", "a"), ("; ", "x")])
def test_a_value_without_end_passes_a_limit_by_name(begin: str, more: str) -> None:
    block = (more * (1 << 20)).encode()
    with pytest.raises(BadEdn, match=f"one value is larger than {FORM_MAX >> 20} MiB, the limit"):
        list(forms([begin.encode(), *[block] * 17]))


def test_a_missing_file_is_a_history_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="cannot be read"):
        list(read_edn(tmp_path / "none.edn"))


@pytest.mark.parametrize("depth", [1, NESTING_MAX - 1])
def test_a_vector_of_integers_is_a_vector_like_any_other(depth: int) -> None:
    text = "{:a " * depth + "[0 17 123456789012345678]" + "}" * depth
    [form] = forms([text.encode()])
    for _ in range(depth):
        assert isinstance(form, dict)
        form = form[":a"]
    assert form == [0, 17, 123456789012345678]
    assert list(forms([b"[1 2] "])) == [1, 2]  # One vector around all.
    with pytest.raises(BadEdn, match="nested deeper than 64"):
        list(forms([b"{:a " * NESTING_MAX + b"[1 2]"]))
    with pytest.raises(BadEdn, match="'01' is not a value"):
        list(forms([b"{:a [01 2]}"]))
