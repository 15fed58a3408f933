"""A mapping file, in TOML: the meaning of the fields in a foreign stream's lines, and the stream's contract.

[fields] names the fields, by names joined with dots; [kinds] gives the meaning of each value of the field `kind`;
[stream] is the stream's contract, as in a promise file. An error message is one line with the place of the mistake.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from checkers.history.units import is_final_only
from harness.core.columns import KINDS
from harness.core.errors import ScenarioError, known
from harness.core.promises import StreamContract
from harness.core.record import Json
from harness.record.documents import read_toml
from harness.record.formats.promise_file import contract_of, struct_of
from harness.record.formats.streams.debezium import NAME as DEBEZIUM
from harness.record.formats.streams.debezium import debezium
from harness.record.formats.streams.envelopes import ENVELOPES
from harness.record.formats.streams.line import DELETED, Before, Content, StreamFormat, inside

SKIP: Final = "skip"
SPACE: Final = 1 << 63  # Hashes of keys are below it.
_PARTS: Final = ("fields", "kinds", "stream", "one_session", "time_unit")
_PARTS_OF_KNOWN: Final = ("format", "key", "stream")
_NS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """The name of the field that holds each item. Only `key` and `position` are required."""

    key: str
    position: str
    value: str | None = None  # Null: the row reports that its key was deleted.
    before: str | None = None  # What the row replaced: all its columns, or some. Null tells nothing.
    kind: str | None = None  # A line's kind, by [kinds]; without it, a row or a watermark.
    watermark: str | None = None  # A line with this field is a watermark at this position.
    session: str | None = None
    subscriber: str | None = None
    partition: str | None = None
    unit: str | None = None  # The transaction, or another unit that arrives as a whole.
    unit_rows: str | None = None  # The unit's number of rows.
    ordinal: str | None = None  # The row's number in its unit.
    epoch: str | None = None
    parents: str | None = None  # The logs that a declared log follows: a list of names, or one name.
    ranges: str | None = None  # The hashes that a declared log has: pairs [low, high) below 2^63, or one pair.
    hash: str | None = None  # The hash of a row's key.
    time: str | None = None  # When the line was received; without it, its place in the file.


class Mapping(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a mapping file."""

    fields: Fields
    stream: StreamContract
    kinds: dict[str, str] = {}
    one_session: bool = False
    time_unit: Literal["s", "ms", "us", "ns"] = "ns"


def stream_format(name: str, key: str | None = None) -> StreamFormat:
    """The format of that name, or of that mapping file; `key` names the key's columns. Raises ScenarioError."""
    if key is not None:
        columns = [column.strip() for column in key.split(",")]
        if name != DEBEZIUM or not all(columns):
            raise ScenarioError(
                f"--key {key}: it names columns, such as tenant,id, of a stream in the format {DEBEZIUM}"
            )
        return debezium(columns)
    if name in ENVELOPES:
        return ENVELOPES[name]
    path = Path(name)
    if path.suffix != ".toml" and not path.exists():
        choices = ", ".join(ENVELOPES)
        raise ScenarioError(f"--stream {name}: there is no such format: choose from {choices}, or name a mapping file")
    parts = _parts_of(path)
    return _adapted(path, parts) if "format" in parts else mapped(path.name, read_mapping(path))


def _parts_of(path: Path) -> dict[str, Any]:
    return read_toml(path)


def _adapted(path: Path, parts: dict[str, Any]) -> StreamFormat:
    """A known format of which a mapping file changes the contract, or names the key's columns."""
    try:
        for name in parts:
            known(name, _PARTS_OF_KNOWN, "part of a mapping file with a format")
        given, key = parts["format"], parts.get("key")
        known(str(given), tuple(ENVELOPES), "format")
        form = stream_format(given, None if key is None else ",".join(key) if isinstance(key, list) else str(key))
        changes = parts.get("stream", {})
        if not isinstance(changes, dict):
            raise ScenarioError("[stream]: it is no table of fields")
        return form._replace(contract=contract_of(msgspec.to_builtins(form.contract) | changes))
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


def mapped(name: str, mapping: Mapping) -> StreamFormat:
    """The format of that name, as described by such a mapping."""
    has_opens = mapping.fields.kind is not None and "open" in {*mapping.kinds.values(), *_own_kinds(mapping)}
    return StreamFormat(name, mapping.stream, partial(_read, mapping), has_opens, has_lineage=_declares(mapping))


def _declares(mapping: Mapping) -> bool:
    """True if lines may declare logs."""
    return mapping.fields.kind is not None and "successors" in {*mapping.kinds.values(), *_own_kinds(mapping)}


def read_mapping(path: Path) -> Mapping:
    """The content of a mapping file. Raises ScenarioError, in one line, for any mistake."""
    parts = read_toml(path)
    try:
        for name in parts:
            known(name, _PARTS, "part of a mapping file")
        for name in ("fields", "stream"):
            if name not in parts:
                raise ScenarioError(f"it has no [{name}]")
        mapping = Mapping(
            fields=struct_of("[fields]", parts["fields"], Fields),
            stream=contract_of(parts["stream"]),
            kinds=_kinds(parts.get("kinds", {})),
            one_session=parts.get("one_session", False) is True,
            time_unit=_time_unit(parts.get("time_unit", "ns")),
        )
        _require_sense(mapping)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None
    return mapping


def _kinds(given: Any) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(kind, str) for kind in given.values()):
        raise ScenarioError('[kinds]: it is a table of texts, such as insert = "row"')
    for value, kind in given.items():
        known(kind, (*KINDS, SKIP), f"kind of event ([kinds] {value})")
    return given


def _time_unit(given: Any) -> Literal["s", "ms", "us", "ns"]:
    known(str(given), tuple(_NS), "time_unit")
    unit: Literal["s", "ms", "us", "ns"] = given
    return unit


def _require_sense(mapping: Mapping) -> None:
    if mapping.fields.session is None and not mapping.one_session:
        raise ScenarioError(
            "[fields]: no field is the session: name the field of a connection, or write one_session = true "
            "above [fields] if there was only one"
        )
    if (mapping.fields.parents or mapping.fields.ranges) and not _declares(mapping):
        raise ScenarioError(
            "[fields]: only lines of kind successors have parents and ranges: name the field kind, and in [kinds] "
            'the lines that declare a log, such as shard = "successors"'
        )
    if mapping.kinds and mapping.fields.kind is None:
        raise ScenarioError("there is [kinds], and [fields] has no kind: name the field that [kinds] is about")
    if mapping.stream.wm_scope == "partition" and mapping.fields.partition is None:
        raise ScenarioError(
            '[fields]: it has no partition, and wm_scope is "partition": write partition = "..." with the name of the '
            "field that holds it"
        )
    is_by_number = mapping.stream.identity == "position+key+ordinal" and not is_final_only(mapping.stream)
    if is_by_number and mapping.fields.ordinal is None:
        raise ScenarioError(
            '[fields]: it has no ordinal, and identity is "position+key+ordinal": write ordinal = "..." with the name '
            'of the field that holds the row\'s number in its unit, or under [stream] identity = "position+key" if a '
            'position has one row of a key, else identity = "position+key+value"'
        )


def _own_kinds(mapping: Mapping) -> tuple[str, ...]:
    """The kinds that a line may have under our own names: all of them if the mapping gives none."""
    return () if mapping.kinds else KINDS


def _read(mapping: Mapping, line: Json) -> Iterator[Content]:
    """The event of one line, if any. Raises ValueError."""
    if not isinstance(line, dict):
        raise ValueError("it is not an object")
    kind = _kind(mapping, line)
    if kind == SKIP:
        return
    fields = mapping.fields
    if kind == "successors":
        yield _declaration(mapping, line)
        return
    is_row = kind in {"row", "backfill"}
    key = inside(line, fields.key)
    if is_row and key is None:
        raise ValueError(f"a {kind} without a key ({fields.key})")
    named = fields.watermark if kind == "watermark" and fields.watermark is not None else fields.position
    position = inside(line, named)
    if position is None and kind in {"row", "watermark"}:
        raise ValueError(f"a {kind} without a position ({named})")
    value = inside(line, fields.value) if fields.value is not None else None
    image = inside(line, fields.before) if fields.before is not None and kind == "row" else None
    if is_row and fields.hash is not None:
        yield _hash(mapping, line, key)
    yield Content(
        kind,
        key,
        DELETED if is_row and fields.value is not None and value is None else value,
        position,
        subscriber=str(_required(line, fields.subscriber, "subscriber") or "stream"),
        session=_required(line, fields.session, "session") if fields.session is not None else 0,
        span=_text(inside(line, fields.partition)) if fields.partition is not None else None,
        ordinal=_number(line, fields.ordinal) if is_row else None,
        unit=inside(line, fields.unit) if fields.unit is not None and is_row else None,
        unit_rows=_number(line, fields.unit_rows) if is_row else None,
        epoch=_number(line, fields.epoch),
        time_ns=_time_ns(mapping, line),
        before=None if image is None else Before(image),
    )


def _declaration(mapping: Mapping, line: dict[str, Json]) -> Content:
    """The event that declares a log: its name, the logs that it follows, and its keys."""
    fields = mapping.fields
    log = _text(inside(line, fields.partition)) if fields.partition is not None else None
    if log is None:
        raise ValueError(f"a line of kind successors without a log ({fields.partition or 'partition'})")
    parents = inside(line, fields.parents) if fields.parents is not None else None
    ranges = inside(line, fields.ranges) if fields.ranges is not None else None
    names = parents if isinstance(parents, list) else [] if parents is None else [parents]
    pairs = _pairs(ranges)
    if not all(0 <= low < high <= SPACE for low, high in pairs):
        raise ValueError(f"its {fields.ranges} is no range [low, high) of integers from 0 to 2^63, and no list of them")
    return Content(
        "successors",
        value={"parents": [str(name) for name in names], "ranges": [[*pair] for pair in pairs]},
        subscriber=str(_required(line, fields.subscriber, "subscriber") or "stream"),
        session=_required(line, fields.session, "session") if fields.session is not None else 0,
        span=log,
        time_ns=_time_ns(mapping, line),
    )


def _pairs(value: Json) -> list[tuple[int, int]]:
    """The ranges of one line: none, one or several. For anything else a range that no log can have."""
    if value is None:
        return []
    for ranges in (value, [value]):
        try:
            return msgspec.convert(ranges, list[tuple[int, int]])
        except msgspec.ValidationError:
            pass
    return [(0, 0)]


def _hash(mapping: Mapping, line: dict[str, Json], key: Json) -> Content:
    """The event that gives the hash of a row's key."""
    fields = mapping.fields
    value = _number(line, fields.hash)
    if value is None or not 0 <= value < SPACE:
        raise ValueError(f"its {fields.hash} must be a hash, an integer from 0 up to 2^63")
    return Content(
        "hash",
        key,
        value,
        subscriber=str(_required(line, fields.subscriber, "subscriber") or "stream"),
        session=_required(line, fields.session, "session") if fields.session is not None else 0,
        time_ns=_time_ns(mapping, line),
    )


def _time_ns(mapping: Mapping, line: dict[str, Json]) -> int | None:
    at = _number(line, mapping.fields.time)
    return None if at is None else at * _NS[mapping.time_unit]


def _kind(mapping: Mapping, line: dict[str, Json]) -> str:
    fields = mapping.fields
    said = inside(line, fields.kind) if fields.kind is not None else None
    if said is None:
        is_mark = fields.watermark is not None and inside(line, fields.watermark) is not None
        return "watermark" if is_mark else "row"
    kind = mapping.kinds.get(str(said), str(said) if str(said) in _own_kinds(mapping) else None)
    if kind is None:
        raise ValueError(f"{fields.kind} {str(said)[:60]!r} is missing from [kinds] in the mapping file: add it")
    return kind


def _required(line: dict[str, Json], field: str | None, what: str) -> Json:
    """The value of a field that every line must have, because the mapping file names it; None if `field` is None."""
    if field is None:
        return None
    value = inside(line, field)
    if value is None or isinstance(value, list | dict | float | bool):
        raise ValueError(f"it has no {what} ({field})" if value is None else f"its {what} is no text and no integer")
    return value


def _number(line: dict[str, Json], field: str | None) -> int | None:
    value = inside(line, field) if field is not None else None
    if value is not None and type(value) is not int:
        raise ValueError(f"its {field} is not an integer")
    return value


def _text(value: Json) -> str | None:
    return None if value is None else str(value)
