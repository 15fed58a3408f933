"""The JSON Schema of one line of our JSON Lines, made from the records themselves.

`python -m harness.record.formats.json_schema > docs/history.schema.json` regenerates it; a test keeps that file up to
date.
"""

import sys
from typing import Any, Final

import msgspec

from harness.core.record import RECORD_TYPES, SCHEMA, Record
from harness.record.formats.jsonl import SAME_AS

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def history_schema() -> dict[str, Any]:
    """The schema. In a journal a record is an array; here it is an object, with the same fields under their names."""
    described = msgspec.json.schema(Record)
    parts = dict(described["$defs"])
    for kind in RECORD_TYPES:
        parts[kind.__name__] = _object(parts[kind.__name__], kind)
    return {
        "$schema": _DRAFT,
        "title": f"One line of a Seamark history, schema {SCHEMA}",
        "description": "Records are in the order of events; see docs/history-format.md.",
        "anyOf": described["anyOf"],
        "$defs": {name: _without_breaks(part) for name, part in sorted(parts.items())},
    }


def _object(part: dict[str, Any], kind: type) -> dict[str, Any]:
    """The object schema of a record that msgspec describes as an array."""
    tag, *items = part["prefixItems"]
    fields = msgspec.structs.fields(kind)
    return {
        "title": part["title"],
        "description": part["description"],
        "type": "object",
        "properties": {"type": tag} | {field.name: item for field, item in zip(fields, items, strict=True)},
        "required": ["type", *(field.name for field in fields if field.required and field.name not in SAME_AS)],
        "additionalProperties": False,
    }


def _without_breaks(part: dict[str, Any]) -> dict[str, Any]:
    return part | {"description": " ".join(part["description"].split())}


def schema_text() -> bytes:
    """The schema as the bytes of its file."""
    return msgspec.json.format(msgspec.json.encode(history_schema()), indent=2) + b"\n"


if __name__ == "__main__":
    sys.stdout.buffer.write(schema_text())
