"""The content of one line of a foreign stream, in our kinds and fields, without numbers yet.

Positions, sessions and units are numbered once the whole file has been read.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, overload

import msgspec
import pyarrow as pa

from harness.core.columns import Int64s
from harness.core.promises import StreamContract
from harness.core.record import Json
from harness.record.formats.jsonl import Shape

if TYPE_CHECKING:
    from checkers.replication.sites import Rule  # Only checks of several sites load this room.

T = TypeVar("T")
_OF_MESSAGES: Final = frozenset(("op", "after", "resolved"))  # Fields of messages, never of their envelopes.
DELETED = "(deleted)"  # The value of a row that reports its key as deleted.


class Place(NamedTuple):
    """A position of several parts, compared from left to right, and how reports show it.

    Only positions of one `kind` can be compared, but those of a snapshot with any. A first part of None: the source
    did not report it, and then that part counts for no position of the file. `is_of_change`: no two changes of a key
    have one position.
    """

    kind: str
    parts: tuple[int | None, ...]
    shown: Callable[[tuple[int, ...]], str]
    is_snapshot: bool = False
    is_of_change: bool = True


class Places(Sequence[Place]):
    """Positions of several parts that have their kind in common: a column of `Place`, without an object for each.

    `parts` is (n, parts). `texts` gives for such an array the texts that `shown` gives one by one.
    """

    def __init__(
        self, kind: str, parts: Int64s, shown: Callable[[tuple[int, ...]], str], texts: Callable[[Int64s], pa.Array]
    ) -> None:
        self.kind, self.parts, self.shown, self.texts = kind, parts, shown, texts

    def __len__(self) -> int:
        return len(self.parts)

    @overload
    def __getitem__(self, row: int, /) -> Place: ...

    @overload
    def __getitem__(self, row: slice, /) -> "Places": ...

    def __getitem__(self, row: int | slice, /) -> "Place | Places":
        if isinstance(row, slice):
            return Places(self.kind, self.parts[row], self.shown, self.texts)
        return Place(self.kind, tuple(self.parts[row].tolist()), self.shown)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Place) and any(value == each for each in self)


class Before(msgspec.Struct, frozen=True, gc=False):
    """What a row tells of the one that it replaced; an image of None: only that it was there."""

    image: Any = None


class Content(NamedTuple):
    """One event, or the begin or end of a unit. `session`, `unit` and `position` are as in the file.

    Kind "unit" ends a transaction, with its number of rows in each collection; "begun" begins one. They are no events.
    """

    kind: str
    key: Json = None
    value: Json = None
    position: Json | Place = None
    subscriber: str = "stream"
    session: Json = 0
    span: str | None = None
    ordinal: int | None = None
    unit: Json = None
    unit_rows: int | None = None
    epoch: int | None = None
    time_ns: int | None = None
    collection: str | None = None
    table_ordinal: int | None = None  # The row's number among those of its unit and collection.
    is_first: bool = False  # The first message of its partition ever: the file lacks none before it.
    sizes: tuple[tuple[str, int], ...] = ()
    has_key: bool = True  # False: `key` is the whole row.
    before: Before | None = None
    site: str | None = None  # Where it was committed, of several that take writes.
    origin: str | None = None  # Where its transaction was born.


Fields = dict[str, Sequence[Any]]  # Columns of contents, of one length, by their names in `Content`.


class Plain(NamedTuple):
    """A short way for neighbouring lines of one common form, all at once by columns.

    `decoder` refuses a line that is of another form. `columns` gives from the decoded lines what `read` would give, one
    content for each line; None, or ValueError, if the lines must be read one by one. `shortened` joins the lines,
    without text that they repeat and the decoder would skip. `quicker`: a decoder for lines whose objects are like
    those of that decoded one, which makes structs of them.
    """

    decoder: msgspec.json.Decoder[Any]
    columns: Callable[[Sequence[Any]], Fields | None]
    shortened: Callable[[Sequence[bytes]], bytes] = b"".join
    quicker: Callable[[Any], msgspec.json.Decoder[Any]] | None = None


class Partition(msgspec.Struct, gc=False):
    """What names the partition of a plain line. It is decoded JSON, which has no cycles for a collector to find."""

    topic: str | None = None
    partition: int | str | None = None


class StreamFormat(NamedTuple):
    """The format of a foreign stream: its name, its contract, and the reader of its lines.

    `read` raises ValueError with the problem of a line. `has_opens`: sessions report their start. `is_by_source`:
    positions are those of the source, so the order is that of each partition, as far as lines name it.
    `has_lineage`: lines declare logs that follow one another. `shape`: the fields of a line that `read` needs. `plain`:
    short ways for its common forms.
    """

    name: str
    contract: StreamContract
    read: Callable[[Json], Iterator[Content]]
    has_opens: bool = False
    has_lineage: bool = False
    is_by_source: bool = False
    begin: Callable[[], None] | None = None  # Called before each pass over the file.
    shape: Shape | None = None
    plain: tuple[Plain, ...] = ()
    sites: "SiteFormat | None" = None


class SiteFormat(NamedTuple):
    """What a mapping declares of several sites: their rule for conflicts, and whether all is at rest in the end."""

    rule: "Rule | None"
    is_at_rest: bool


def inside(value: Json, path: str) -> Json:
    """The value under names joined by dots; None if it is absent."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def enveloped(line: Json) -> tuple[dict[str, Json], dict[str, Json]]:
    """The envelope around a message, and the message. Raises ValueError if the line is no object.

    A message may come alone, or with its key, topic and partition, as tools that read Kafka print it: {"topic": ...,
    "partition": ..., "key": ..., "value": ...}, where key and value may be JSON in a text.
    """
    around = line if isinstance(line, dict) else {}
    if _holder(around) == "payload":
        around = around | {"value": around["payload"]}
    value = decoded(around["value"]) if "value" in around and _OF_MESSAGES.isdisjoint(around) else line
    if value is None and "value" in around:
        return around, {"ts_ms": None, "tombstone": True}  # It repeats that a key was deleted.
    if isinstance(value, dict) and isinstance(value.get("payload"), dict):
        value = value["payload"]
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return around, value


def text_in(line: dict[str, Json]) -> str | None:
    """The name of the field in which a line has its message as JSON in a text; None if it has none such."""
    name = _holder(line)
    return name if name is not None and isinstance(line[name], str) and _OF_MESSAGES.isdisjoint(line) else None


def _holder(line: dict[str, Json]) -> str | None:
    """The name of the field that holds the message; None if the line has no such field."""
    if "value" in line:
        return "value"
    return "payload" if "payload" in line and "offset" in line else None  # As kcat prints a message.


def decoded(value: Json) -> Json:
    """The value, decoded if it is JSON in a text."""
    if not isinstance(value, str):
        return value
    try:
        found: Json = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value
    return found


def few(row: dict[str, Json]) -> str:
    """The names of a row's columns, not more than a message can hold."""
    shown = [(name if name.isprintable() else ascii(name))[:40] for name in [*row][:8]]
    return ", ".join(shown) + (", ..." if len(row) > 8 else "")


def is_first_of_all(around: dict[str, Json]) -> bool:
    """True if the envelope shows that no message came before in its partition."""
    return around.get("offset") == 0


def spans_of(lines: Sequence[Partition]) -> list[str | None]:
    """The partitions that plain lines name."""
    columns = [line.topic for line in lines], [line.partition for line in lines]
    return of_rows(columns, lambda topic, partition: span_of({"topic": topic, "partition": partition}))


def of_rows(columns: Sequence[Sequence[Any]], text: Callable[..., T]) -> list[T]:
    """The text of each row of these columns, from its cells: computed once for rows that are alike, as most are."""
    count = len(columns[0])
    if all(column.count(column[0]) == count for column in columns):
        return [text(*(column[0] for column in columns))] * count
    rows = list(zip(*columns, strict=True))
    texts = {row: text(*row) for row in set(rows)}
    return [texts[row] for row in rows]


def span_of(around: dict[str, Json]) -> str | None:
    """The partition that the envelope names."""
    partition = around.get("partition")
    if partition is None:
        return None
    topic = around.get("topic")
    return f"{partition}" if topic is None else f"{topic}/{partition}"
