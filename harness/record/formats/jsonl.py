"""JSON Lines: our own records, one per line, and Jepsen's maps, one per line or all in one array.

A record is an object with `type` (invoke, complete, event, fault, probe, state, mark) and the fields of
`harness.core.record` under their names; defaults are left out. A micro-operation is [f, key, value], with table and
lock if it has them. Headers and footers are allowed, and are not evidence. A process whose operations overlap becomes
several, as in Jepsen's maps (`harness.record.formats.sessions`).
"""

import functools
import io
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

import msgspec

from harness.core.errors import HistoryError
from harness.core.record import RECORD_TYPES, Complete, Evidence, Footer, Header, Invoke, Json, MicroOp, Record
from harness.record.formats.edn.jepsen import records_of_maps
from harness.record.formats.edn.times import Times
from harness.record.formats.edn.values import INT_MAX, INT_MIN, shown
from harness.record.formats.json_array import BadJson, array_elements
from harness.record.formats.packed import opened
from harness.record.formats.sessions import in_sessions

LINE_MAX: Final = 64 << 20
NESTING_MAX: Final = 64
VALUES_MAX: Final = 4_000_000  # The most values in a line: an empty list takes 3 bytes in it, and 70 in memory.
PROBLEM_MAX: Final = 200  # The most characters of a message: a misplaced value may be long.
_BLOCK: Final = 1 << 20  # About as many bytes of a file are read at a time: they fit into a processor's cache.
_MARK: Final = b"\xef\xbb\xbf"  # Some editors put it before UTF-8.
_LONG_NUMBER: Final = b"0" * 19  # Among digits that all became zeros: ten times as fast as a pattern.
_DECODE: Final = msgspec.json.Decoder().decode
_ZEROS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_BEYOND: Final = re.compile(
    rb"9\d{18}|\d{20}"
)  # What an integer beyond 64 bits has, and a time in nanoseconds has not.
_KINDS: Final = {str(cast("type[Record]", kind).__struct_config__.tag): kind for kind in RECORD_TYPES}
SAME_AS: Final = {"intended_ns": "time_ns"}  # Fields that a foreign file leaves out, and those that they then equal.


class Shape(NamedTuple):
    """What a reader needs of a line: `decoder` leaves other fields out. `suffices` is False for lines needed whole.

    `text_in` gives the name of the field of an object, if any, that has the message as JSON in a text, of this shape.
    """

    decoder: msgspec.json.Decoder[Any]
    suffices: Callable[[Json], bool]
    text_in: Callable[[dict[str, Json]], str | None] = lambda _: None


_FIELDS: Final = {tag: msgspec.structs.fields(kind) for tag, kind in _KINDS.items()}


def _same_default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.field(default=field.default)


def _object_type(tag: str) -> type[msgspec.Struct]:
    """The type of an object with the fields of a record. Those in SAME_AS are UNSET if absent."""
    fields: list[tuple[str, Any, Any]] = [
        (each.name, each.type | msgspec.UnsetType, msgspec.UNSET)
        if each.name in SAME_AS
        else (each.name, each.type, _same_default(each))
        for each in _FIELDS[tag]
    ]
    return msgspec.defstruct(tag, fields, tag=tag, forbid_unknown_fields=True, kw_only=True)


_RECORDS_OF: Final = {_object_type(tag): kind for tag, kind in _KINDS.items()}
_OBJECTS: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(functools.reduce(operator.or_, _RECORDS_OF))
_BRACES: Final = bytes.maketrans(b"{", b"[")
_OTHER_SIGNS: Final = bytes(sign for sign in range(256) if sign not in b"[{\n")
_DEEP: Final = b"[" * (NESTING_MAX + 1)  # What a line that may be too deep has without those signs.


def read_jsonl(path: Path, times: Times | None = None) -> Iterator[Evidence]:
    """The evidence in a file of ours, or the records of a history in Jepsen's shape, for which `times` is.

    Raises HistoryError with the file and the line (or the element of the array), from 1.
    """
    try:
        _, first = next(_values(path), ("", None))
        is_ours = isinstance(first, dict) and ("time_ns" in first or first.get("type") == "header")
        maps = _values(path)
        yield from in_sessions(_our_records(path)) if is_ours else records_of_maps(str(path), maps, "", times)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
    except BadJson as bad:
        raise HistoryError(f"{path}, {bad}") from None


def json_values(path: Path, shape: Shape | None = None) -> Iterator[tuple[str, Json]]:
    """The values in a file of JSON of any content, one per line or all in one array, each with its place.

    `shape` is that of `json_value`. Raises HistoryError with the file and the line.
    """
    try:
        yield from _values(path, shape)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
    except BadJson as bad:
        raise HistoryError(f"{path}, {bad}") from None


def json_texts(path: Path) -> Iterator[tuple[str, int, list[bytes]]]:
    """The texts of the values in a file of JSON, in blocks: "line" or "element", the number of the first, the texts.

    Lines have their ends, and may be empty. Raises OSError, HistoryError with the file, or BadJson with the place.
    """
    with opened(path) as file:
        begin = len(_MARK) if file.read(len(_MARK)) == _MARK else 0
    with opened(path) as file:
        file.read(begin)
        is_array = _first_sign(file) == b"["
    with opened(path) as file:
        file.read(begin)
        if is_array:
            for number, text in enumerate(array_elements(iter(lambda: file.read(_BLOCK), b"")), start=1):
                yield "element", number, [text]
        else:
            for number, texts in _lines(file):
                yield "line", number, texts


def values_of(word: str, first: int, texts: Iterable[bytes], shape: Shape | None = None) -> Iterator[tuple[str, Json]]:
    """The values in a block of texts, each with its place. Raises BadJson with the place."""
    for number, text in enumerate(texts, start=first):
        if not text.isspace():
            place = f"{word} {number}"
            yield place, json_value(place, text, shape)


def write_jsonl(records: Iterable[Record], path: Path) -> None:
    """Write records, one per line, so that they are read back unchanged."""
    with path.open("wb") as file:
        for record in records:
            file.write(json_line(record) + b"\n")


def json_line(record: Record) -> bytes:
    """One record as a line, without the line end."""
    return msgspec.json.encode(_fields(record))


def _our_records(path: Path) -> Iterator[Evidence]:
    for word, first, texts in json_texts(path):
        records: Iterable[Record] | None = _records_at_once(texts)
        if records is None:
            records = itertools.starmap(_record, values_of(word, first, texts))
        for record in records:
            if not isinstance(record, Header | Footer):
                yield record


def _records_at_once(texts: Sequence[bytes]) -> list[Record] | None:
    """The records in those texts; None if `_record` must read them, as one is blank, near a limit, or wrong.

    This takes a quarter of the time of `_record`, which makes a dictionary of each.
    """
    together = b"".join(texts)
    if len(together) > VALUES_MAX or may_be_long(together) or _DEEP in together.translate(_BRACES, _OTHER_SIGNS):
        return None
    try:
        objects = [_OBJECTS.decode(text) for text in texts]
    except (ValueError, RecursionError):
        return None
    for each in objects:
        for name, other in SAME_AS.items():
            if getattr(each, name, None) is msgspec.UNSET:
                setattr(each, name, getattr(each, other))
    records = [_RECORDS_OF[type(each)](*msgspec.structs.astuple(each)) for each in objects]
    steps = [step for record in records if isinstance(record, Invoke | Complete) for step in record.mops or ()]
    return None if any([step.value is None and step.f != "r" for step in steps]) else records  # noqa: C419  Faster.


def _record(place: str, value: Json) -> Record:
    tag = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(tag, str) or tag not in _KINDS:
        raise BadJson(f"{place}: it is not a record: its type must be one of {', '.join(_KINDS)}")
    fields = _FIELDS[tag]
    unknown = [name for name in value if name != "type" and name not in {field.name for field in fields}]
    if unknown:
        raise BadJson(f"{place}: it has a field {shown(unknown[0])}, which a record of type {tag} does not have")
    cells = [value.get(field.name, value.get(SAME_AS.get(field.name, ""), _default(field))) for field in fields]
    try:
        record = cast("Record", msgspec.convert([tag, *cells], _KINDS[tag]))
    except msgspec.ValidationError as error:
        named = re.search(r"expected `\w+`, got `null` - at `\$\[(\d+)\]`$", str(error), re.IGNORECASE)
        if named and (name := fields[int(named[1]) - 1].name) not in value:
            raise BadJson(f"{place}: it has no field {name!r}, which a record of type {tag} needs") from None
        raise BadJson(f"{place}: {_by_name(str(error), [field.name for field in fields])}") from None
    for number, step in enumerate(cast("list[list[Json]]", value.get("mops") or ()), start=1):
        if len(step) == 2 and step[0] != "r":
            raise BadJson(f'{place}: step {number} of its transaction has no value: write ["{step[0]}", key, value]')
    return record


def _by_name(problem: str, names: list[str]) -> str:
    """A message of msgspec, truncated.

    Its field index is replaced by the name: readers see an object, msgspec an array.
    """
    named = re.sub(
        r"\$\[(\d+)\]", lambda match: names[int(match[1]) - 1] if 0 < int(match[1]) <= len(names) else "$", problem
    )
    return named if len(named) <= PROBLEM_MAX else f"{named[: PROBLEM_MAX // 2]} ... {named[-PROBLEM_MAX // 2 :]}"


def _default(field: msgspec.structs.FieldInfo) -> Json:
    if field.default is not msgspec.NODEFAULT:
        return cast("Json", field.default)
    return cast("Json", field.default_factory()) if field.default_factory is not msgspec.NODEFAULT else None


def _fields(record: Record) -> dict[str, Json]:
    tag = str(record.__struct_config__.tag)
    result: dict[str, Json] = {"type": tag}
    for field in _FIELDS[tag]:
        value = getattr(record, field.name)
        if field.required or value != _default(field):
            is_transaction = field.name == "mops" and value is not None
            result[field.name] = [_mop(mop) for mop in value] if is_transaction else value
    return result


def _mop(mop: MicroOp) -> list[Json]:
    cells: list[Json] = [mop.f, mop.key, mop.value]
    return cells if mop.table is None and mop.lock is None else [*cells, mop.table, mop.lock]


def _values(path: Path, shape: Shape | None = None) -> Iterator[tuple[str, Json]]:
    """The values of the file (those inside, if it is one array), each with its place."""
    for word, first, texts in json_texts(path):
        yield from values_of(word, first, texts, shape)


def json_value(place: str, text: bytes, shape: Shape | None = None) -> Json:
    """The value in a text. Raises BadJson, with its place.

    If a `shape` suffices, objects have its fields alone, whose values are not held to the limits of `storable`.
    """
    if len(text) > VALUES_MAX and text.count(b"[") + text.count(b"{") + text.count(b",") > VALUES_MAX:
        raise BadJson(f"{place}: it holds more than {VALUES_MAX:,} values, the limit")
    try:
        value = None if shape is None else _shaped(text, shape)
        value = storable(_DECODE(text), text) if value is None else value
    except RecursionError:
        raise BadJson(f"{place}: it is nested deeper than {NESTING_MAX}, the limit") from None
    except ValueError as error:
        raise BadJson(f"{place}: {error}") from None
    return value


def _shaped(text: bytes, shape: Shape) -> Json:
    """The value with the fields of the shape; None if that does not suffice."""
    try:
        value: Json = shape.decoder.decode(text)
    except msgspec.ValidationError:
        return None
    if isinstance(value, dict) and (name := shape.text_in(value)) is not None:
        try:
            value[name] = shape.decoder.decode(str(value[name]))
        except (msgspec.DecodeError, RecursionError):
            return None
    return value if shape.suffices(value) else None


def storable(value: Json, text: bytes) -> Json:
    """The value of that JSON, with integers beyond 64 bits as `edn.values` has them. Raises ValueError if too deep."""
    return _storable(value, 0) if may_exceed(text) else value


def may_exceed(text: bytes, others: int = 0) -> bool:
    """Cheap signs that JSON exceeds a limit of `storable`: most shows none, and is not traversed.

    The text may be of several values, one of which and `others` more are objects or arrays.
    """
    return may_be_long(text) or text.count(b"[") + text.count(b"{") - others > NESTING_MAX


def may_be_long(text: bytes) -> bool:
    """True if that JSON may have an integer beyond 64 bits."""
    return _LONG_NUMBER in text.translate(_ZEROS) and _BEYOND.search(text) is not None


def _storable(value: Json, depth: int) -> Json:
    """The same value, with integers beyond 64 bits in the form of `edn.values`. Raises ValueError."""
    if depth > NESTING_MAX:
        raise ValueError(f"it is nested deeper than {NESTING_MAX}, the limit")
    match value:
        case int() if not INT_MIN <= value <= INT_MAX:
            return {"#int": str(value)}
        case list():
            return [_storable(each, depth + 1) for each in value]
        case dict():
            return {name: _storable(each, depth + 1) for name, each in value.items()}
        case _:
            return value


def _first_sign(file: IO[bytes]) -> bytes:
    """The next byte that is not white space."""
    while (byte := file.read(1)).isspace():
        pass
    return byte


def _lines(file: IO[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Blocks of lines, each with the number of its first line."""
    first = 1
    while block := file.read(_BLOCK):
        lines = io.BytesIO(block).readlines()
        if not lines[-1].endswith(b"\n"):
            lines[-1] += file.readline(LINE_MAX + 1)
        if len(lines[-1]) > LINE_MAX:
            if lines[:-1]:
                yield first, lines[:-1]
            raise BadJson(f"line {first + len(lines) - 1}: it is longer than {LINE_MAX >> 20} MiB, the limit")
        yield first, lines
        first += len(lines)
