"""The published schema is that of the records, and says of each line what the reader says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from harness.core.errors import HistoryError
from harness.core.record import Evidence, Json
from harness.record.formats.json_schema import history_schema, schema_text
from harness.record.formats.jsonl import read_jsonl, write_jsonl
from tests.worlds.format_strategies import histories

PUBLISHED = Path(__file__).resolve().parents[4] / "docs" / "history.schema.json"
SCHEMA = history_schema()
TYPES = {"integer": int, "string": str, "null": type(None), "object": dict, "array": list}
LINES = [
    {"type": "invoke", "index": 0, "time_ns": 5, "intended_ns": 5, "process": 0, "f": "txn", "mops": [["r", "x"]]},
    {"type": "complete", "index": 0, "time_ns": 6, "outcome": "ok", "mops": [["r", "x", [1]]], "commit_ts": 3},
    {"type": "event", "time_ns": 7, "subscriber": "s", "session": 0, "number": 0, "kind": "row", "key": {"a": 1}},
    {"type": "mark", "time_ns": 7, "phase": "load", "goals": {"x": 1}},
]


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    """The words of JSON Schema that ours uses; a word that is not here is a KeyError."""
    result = {"title", "description", "default", "$schema", "$defs"}
    return all(WORDS[word](value, wanted, schema) for word, wanted in schema.items() if word not in result)


WORDS: dict[str, Callable[[Any, Any, dict[str, Any]], bool]] = {
    "$ref": lambda value, name, _: is_valid(value, SCHEMA["$defs"][name.removeprefix("#/$defs/")]),
    "anyOf": lambda value, choices, _: any(is_valid(value, each) for each in choices),
    "enum": lambda value, choices, _: value in choices,
    "type": lambda value, name, _: type(value) is TYPES[name],
    "required": lambda value, names, _: all(name in value for name in names),
    "properties": lambda value, parts, _: all(is_valid(value[name], parts[name]) for name in parts if name in value),
    "additionalProperties": lambda value, wanted, schema: all(
        wanted is not False and is_valid(value[name], wanted)
        for name in value
        if name not in schema.get("properties", {})
    ),
    "prefixItems": lambda value, parts, _: all(map(is_valid, value, parts)),
    "items": lambda value, part, _: all(is_valid(each, part) for each in value),
    "minItems": lambda value, count, _: len(value) >= count,
}


def is_read(line: dict[str, Json], tmp_path: Path) -> bool:
    path = tmp_path / "line.jsonl"
    path.write_text('{"type": "header", "schema": 1, "created_utc": ""}\n' + json.dumps(line))
    try:
        list(read_jsonl(path))
    except HistoryError:
        return False
    return True


def test_the_published_schema_is_that_of_the_records() -> None:
    message = "write it again: python -m harness.record.formats.json_schema > docs/history.schema.json"
    assert PUBLISHED.read_bytes() == schema_text(), message


@pytest.mark.parametrize("line", LINES, ids=lambda line: str(line["type"]))
def test_reader_and_schema_agree_on_what_is_wrong_with_a_line(line: dict[str, Json], tmp_path: Path) -> None:
    assert is_read(line, tmp_path)
    assert is_valid(line, SCHEMA)
    spoiled = [{**line, "tipe": 1}, {**line, "time_ns": "5"}, {**line, "time_ns": True}, {**line, "type": "what"}]
    spoiled += [{name: value for name, value in line.items() if name != "time_ns"}]
    spoiled += [{**line, "mops": [["x", 1]]}, {**line, "mops": [["r"]]}, {**line, "mops": [["r", 1, 2, 3]]}]
    for each in spoiled:
        assert not is_read(each, tmp_path), each
        assert not is_valid(each, SCHEMA), each


@settings(max_examples=50)
@given(records=histories())
def test_every_line_that_is_written_is_valid(records: list[Evidence], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("lines") / "history.jsonl"
    write_jsonl(records, path)
    for line in path.read_bytes().splitlines():
        assert is_valid(json.loads(line), SCHEMA), line
