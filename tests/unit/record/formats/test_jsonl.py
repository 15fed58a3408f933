import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Fault, Header, Invoke, MicroOp, Probe
from harness.record.formats import jsonl
from harness.record.formats.json_array import ELEMENT_MAX, BadJson, array_elements
from harness.record.formats.jsonl import VALUES_MAX, read_jsonl, write_jsonl

INVOKE = Invoke(0, 5, 4, 3, "txn", None, (MicroOp("append", "x", 1), MicroOp("r", 2, None, "t", "for update")))
VALUES = st.recursive(
    st.integers() | st.text(max_size=4) | st.sampled_from(["[", "]", "\\", '"', '\\"', "{"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=6,
)


def read(tmp_path: Path, text: str | bytes) -> list[Evidence]:
    path = tmp_path / "history.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_jsonl(path))


def test_a_record_is_an_object_with_the_names_of_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_jsonl([Header(1, "now"), INVOKE, Complete(0, 9, "info", error="slow"), Probe(9, "n1", "memory", 7)], path)
    assert path.read_text().splitlines() == [
        '{"type":"header","schema":1,"created_utc":"now"}',
        '{"type":"invoke","index":0,"time_ns":5,"intended_ns":4,"process":3,"f":"txn",'
        '"mops":[["append","x",1],["r",2,null,"t","for update"]]}',
        '{"type":"complete","index":0,"time_ns":9,"outcome":"info","error":"slow"}',
        '{"type":"probe","time_ns":9,"node":"n1","name":"memory","value":7}',
    ]
    assert list(read_jsonl(path)) == [INVOKE, Complete(0, 9, "info", error="slow"), Probe(9, "n1", "memory", 7)]


@pytest.mark.parametrize("text", ['{"type":"invoke","f":"txn","value":[["append","x",1]]}\n', '\n [{"type": "ok"}]'])
def test_what_has_no_time_ns_is_in_jepsen_s_shape(text: str, tmp_path: Path) -> None:
    assert isinstance(read(tmp_path, text)[0], Invoke)


def test_an_operation_of_ours_is_due_when_it_begins_unless_the_file_has_another_time(tmp_path: Path) -> None:
    line = '{"type":"invoke","index":0,"time_ns":7,"process":0,"f":"read"}'
    for each, due_ns in ((line, 7), (line.replace("7,", '7,"intended_ns":3,'), 3)):
        assert read(tmp_path, each) == [Invoke(0, 7, due_ns, 0, "read")]


def test_an_empty_file_is_an_empty_history(tmp_path: Path) -> None:
    assert read(tmp_path, "\n \n") == []


def test_an_array_may_hold_our_own_records(tmp_path: Path) -> None:
    line = '{"type":"fault","time_ns":1,"step":0,"phase":"begin","kind":"cut","targets":["a>b"]}'
    assert read(tmp_path, f"[{line},\n{line}]") == [Fault(1, 0, "begin", "cut", ("a>b",))] * 2


def test_an_integer_beyond_64_bits_keeps_all_its_digits(tmp_path: Path) -> None:
    [invoke, _] = read(
        tmp_path, '{"type":"info","f":"add","value":[123456789012345678901234567890, 18446744073709551615]}'
    )
    assert isinstance(invoke, Invoke)
    assert invoke.value == [{"#int": "123456789012345678901234567890"}, 18446744073709551615]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"time_ns":1,"type":"done"}', "line 1: it is not a record: its type must be one of header, invoke,"),
        ('{"type":"header","schema":1,"created_utc":"x"}\n7', "line 2: it is not a record"),
        ('{"type":"probe","time_ns":1,"node":"n","name":"m","value":1,"x":2}', "line 1: it has a field 'x', which"),
        ('{"type":"probe","time_ns":1,"node":"n","name":"m","value":"1"}', "line 1: .*`int`, got `str` - at `value`"),
        (
            '{"type":"probe","time_ns":1,"node":"n","name":"m"}',
            "line 1: it has no field 'value', which a record of type probe needs",
        ),
        (
            '{"type":"invoke","time_ns":1,"mops":[["x",1]]}',
            "line 1: it has no field 'index', which a record of type invoke needs",
        ),
        ('{"type":"fault","time_ns":1,"step":1,"phase":"' + "9" * 9999 + '","kind":"c"}', "line 1: .{,210} at `phase`"),
        (
            '{"type":"invoke","index":0,"time_ns":1,"intended_ns":1,"process":0,"f":"txn","mops":[["r",1],["append",1]]}',
            r'line 1: step 2 of its transaction has no value: write \["append", key, value\]',
        ),
        ('{"type":"ok"}\n{', "line 2: Input data was truncated"),
        ('{"type":"ok"}\n\xff', "line 2: "),
        ('{"value":' + "[" * 70 + "]" * 70 + "}", "line 1: it is nested deeper than 64, the limit"),
        ('{"value":' + "[" * 9000 + "]" * 9000 + "}", "line 1: it is nested deeper than 64, the limit"),
        ("[1]", "element 1: it is not an object"),
        ('[{"type":"ok"} {"type":"ok"}]', "element 2: it is not an object, or no comma is before it"),
        ('[{"type":"ok"}', "element 2: the file ends before the array does"),
        (
            '{"type":"event","time_ns":21,"subscriber":"s1"}',
            "line 1: it has no field 'session', which a record of type event needs",
        ),
        (
            '{"type":"event","time_ns":null,"subscriber":"s1"}',
            "line 1: Expected `int`, got `null` - at `time_ns`",
        ),
        ('[{"type":"ok"}] x', "element 1: something follows the end of the array"),
        ('[{"type":"ok"},{"type":}]', "element 2: JSON is malformed"),
        ('[{"type":"ok"},{"type":"ok"},{"type":"invoke"}]', "element 3: process 0 invokes, after it completed"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"history\.jsonl, " + problem):
        read(tmp_path, text.encode("latin-1"))


START = '{"type":"invoke","index":0,"time_ns":1,"process":0,"f":"txn"'
PROBE = '{"type":"probe","time_ns":1,"node":"n","name":"m","value":1'


@pytest.mark.parametrize(
    ("line", "is_at_once"),
    [
        (START + ',"mops":[["append","x",[1,{"a":null}]],["r",2],["r",3,[4],"t","shared"]]}', True),
        (START + ',"intended_ns":0,"value":[1.5,"\\u0041"]}', True),
        ('{"value":-1,"name":"m","node":"[{","time_ns":1,"type":"probe"}', True),
        ('{"type":"mark","time_ns":1,"phase":"load","streams":{"a":1}}', True),
        (PROBE + ',"value":2,"type":"probe"}', True),
        ("  ", False),
        (START + ',"intended_ns":null}', False),
        (START + ',"mops":[["append","x"]]}', False),
        (START + ',"mops":[["append","x",null]]}', False),
        (START + ',"mops":[["cas","x",1]]}', False),
        (START + ',"value":' + "9" * 20 + "}", False),
        (START + ',"value":' + "[" * 64 + "]" * 64 + "}", False),
        (PROBE + ',"other":1}', False),
        (PROBE + ',"value":"x","value":2}', False),
        (PROBE + ',"type":"mark"}', False),
        (PROBE + "}" + PROBE + "}", False),
        ('{"type":"ok","time_ns":1}', False),
    ],
)
def test_lines_read_at_once_are_the_records_of_each(
    line: str, is_at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (jsonl._records_at_once([PROBE.encode() + b"}\n", line.encode()]) is not None) == is_at_once
    text, outcomes = PROBE + "}\n" + line, []
    for at_once in (jsonl._records_at_once, lambda _: None):
        monkeypatch.setattr(jsonl, "_records_at_once", at_once)
        try:
            outcomes.append(repr(read(tmp_path, text)))
        except HistoryError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_a_line_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LINE_MAX", 1 << 20)
    with pytest.raises(HistoryError, match="line 2: it is longer than 1 MiB, the limit"):
        read(tmp_path, '{"type":"ok"}\n' + " " * (1 << 20) + "x")


def test_a_line_of_too_many_values_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="line 1: it holds more than 4,000,000 values, the limit"):
        read(tmp_path, '{"a": [' + "[]," * (VALUES_MAX // 2) + "[]]}")


def test_an_element_that_is_too_large_is_refused() -> None:
    def blocks() -> Iterator[bytes]:
        yield b'[{"a":"'
        for _ in range(20):
            yield b"x" * (1 << 20)

    with pytest.raises(BadJson, match=f"element 1: it is larger than {ELEMENT_MAX >> 20} MiB, the limit"):
        list(array_elements(blocks()))


@settings(max_examples=200)
@given(st.lists(st.lists(VALUES, max_size=3), max_size=4), st.integers(1, 9), st.sampled_from([None, 1]))
def test_an_array_is_split_alike_in_blocks_of_any_size(elements: list[object], size: int, indent: int | None) -> None:
    text = json.dumps(elements, indent=indent, ensure_ascii=False).encode()
    found = array_elements(text[at : at + size] for at in range(0, len(text), size))
    assert [json.loads(each) for each in found] == elements
