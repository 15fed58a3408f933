"""Records of a run beside its streams, as values: operations that wrote, states, probes, faults, phases, sessions.

These tables are small, so they are read into plain Python. A missing file counts as empty, as in a history from
elsewhere. `seq` is a position in the journal: it orders records of all tables.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from checkers.columns.files import DAMAGE, damaged
from harness.core.columns import APPEND, NAMED, NEVER
from harness.core.promises import Excuse, Excuses
from harness.core.record import Json
from harness.core.verdict import Finding

SECOND: Final = 1_000_000_000
MS: Final = 1_000_000
UNREADABLE: Final = (*DAMAGE, ValueError, TypeError, msgspec.DecodeError)
_ENCODER: Final = msgspec.json.Encoder(order="sorted")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One object of a node's state. `key_id` is the key as operations name it."""

    seq: int
    ns: int
    node: str
    key_id: int
    key: Json
    value: Json
    position: int | None
    txn: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A metric that a node reported."""

    seq: int
    ns: int
    node: str
    name: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A fault while it was in force; `end_ns` is NEVER if it was not healed. Targets are nodes and links ("a>b")."""

    excuse: Excuse
    targets: tuple[str, ...]
    begin_seq: int
    begin_ns: int
    end_ns: int
    effect: int | None

    def names(self) -> Iterator[str]:
        """Every node that it strikes directly or through a link."""
        for target in self.targets:
            yield from target.split(">")

    def touches(self, node: str) -> bool:
        """True if that node or one of its links is struck."""
        return any(name == node for name in self.names())


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """An operation that appended. `complete_ns` and `complete_seq` are NEVER without a completion."""

    index: int
    outcome: int
    node: str | None
    epoch: int | None
    invoke_ns: int
    complete_ns: int
    invoke_seq: int
    complete_seq: int
    writes: tuple[tuple[int, int], ...]  # Key and element, as ids.


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A record of a session other than a row: open, watermark, gap or close. `cause` is a gap's."""

    seq: int
    ns: int
    kind: str
    position: int | None
    cause: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session of a subscriber, its marks in order."""

    subscriber: str
    number: int
    marks: tuple[Mark, ...]


class Dictionary:
    """The ids of keys and elements, and back. Values that the history never named get an id below 0, only here."""

    def __init__(self, history: Path) -> None:
        self._texts: dict[int, str] = {row["id"]: row["json"] for row in rows(history, "names", ["id", "json"])}
        self._ids = {text: identity for identity, text in self._texts.items()}

    def value(self, identity: int) -> Json:
        """The value with that id."""
        return json.loads(self._texts[identity]) if identity in self._texts else identity

    def text(self, identity: int) -> str:
        """The text for that id in a report: a string without its quotes, else JSON."""
        text = self._texts.get(identity, f"?{identity}" if identity >= NAMED else str(identity))
        return json.loads(text) if text.startswith('"') else text

    def identity(self, value: Json) -> int:
        """The id of that value, as operations have it."""
        if type(value) is int and 0 <= value < NAMED:
            return value
        return self._ids.setdefault(_ENCODER.encode(value).decode(), -1 - len(self._ids))

    def identities(self, value: Json) -> tuple[int, ...]:
        """The ids of the elements of a list; none for anything else."""
        return tuple(map(self.identity, value)) if isinstance(value, list) else ()


def rows(
    history: Path, table_name: str, columns: Sequence[str], **chosen: Sequence[str | int]
) -> list[Mapping[str, Any]]:
    """Those columns of a table, one mapping per row, by `seq`; only rows whose column in `chosen` has such a value.

    Raises HistoryError if the file is damaged.
    """
    path = history / f"{table_name}.parquet"
    if not path.is_file():
        return []
    filters = [(column, "in", list(words)) for column, words in chosen.items()] or None
    try:
        table = pq.read_table(
            path, columns=list(columns), filters=filters, page_checksum_verification=True, use_threads=False
        )
        ordered = table.sort_by("seq") if "seq" in columns else table
        lists = [ordered[column].to_pylist() for column in columns]
    except UNREADABLE as problem:
        raise damaged(path, problem) from problem
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*lists, strict=True)]


def states(history: Path, names: Dictionary, *objects: str) -> dict[str, list[State]]:
    """The states of those objects, each in order. Raises HistoryError."""
    columns = ["seq", "ns", "node", "object", "key", "value", "position", "txn"]
    found: dict[str, list[State]] = {each: [] for each in objects}
    try:
        for row in rows(history, "states", columns, object=objects):
            state = State(
                seq=row["seq"],
                ns=row["ns"],
                node=row["node"],
                key_id=row["key"],
                key=names.value(row["key"]),
                value=msgspec.json.decode(row["value"]),
                position=row["position"],
                txn=row["txn"],
            )
            found[row["object"]].append(state)
    except UNREADABLE as problem:
        raise damaged(history / "states.parquet", problem) from problem
    return found


def samples(history: Path, *names: str) -> dict[str, list[Sample]]:
    """The probes of those names, each in order. Raises HistoryError."""
    found: dict[str, list[Sample]] = {name: [] for name in names}
    for row in rows(history, "probes", ["seq", "ns", "node", "name", "value"], name=names):
        found[row["name"]].append(Sample(**row))
    return found


def windows(history: Path, excuses: Excuses) -> tuple[Window, ...]:
    """The faults that began, by the number of their steps, with what they excuse. Raises HistoryError."""
    begun: dict[int, Mapping[str, Any]] = {}
    effects: dict[int, int | None] = {}
    ends: dict[int, int] = {}
    for row in rows(history, "faults", ["seq", "ns", "step", "phase", "kind", "targets", "effect"]):
        match row["phase"]:
            case "begin":
                begun[row["step"]] = row
            case "effect":
                effects[row["step"]] = row["effect"]
            case "end":
                ends[row["step"]] = row["ns"]
    try:
        return tuple(
            Window(
                excuse=excuses.get(row["kind"], Excuse.DELAYS),
                targets=tuple(msgspec.json.decode(row["targets"], type=list[str])),
                begin_seq=row["seq"],
                begin_ns=row["ns"],
                end_ns=ends.get(step, NEVER),
                effect=effects.get(step),
            )
            for step, row in sorted(begun.items())
        )
    except UNREADABLE as problem:
        raise damaged(history / "faults.parquet", problem) from problem


def phases(history: Path) -> dict[str, Mapping[str, Any]]:
    """The start of each phase of the run: rows with `seq` and `ns`. Raises HistoryError."""
    return {row["phase"]: row for row in rows(history, "marks", ["seq", "ns", "phase"])}


def transactions(history: Path) -> list[Transaction]:
    """Every operation that appended, by index. Raises HistoryError."""
    writes: dict[int, list[tuple[int, int]]] = {}
    for mop in rows(history, "mops", ["op", "key", "value"], f=[APPEND]):
        writes.setdefault(mop["op"], []).append((mop["key"], mop["value"]))
    columns = ["index", "outcome", "node", "commit_ts", "epoch", "invoke_ns", "complete_ns", "invoke_seq"]
    return [
        Transaction(
            index=row["index"],
            outcome=row["outcome"],
            node=row["node"],
            epoch=row["epoch"] if row["commit_ts"] is None else row["commit_ts"],
            invoke_ns=row["invoke_ns"],
            complete_ns=NEVER if row["complete_ns"] is None else row["complete_ns"],
            invoke_seq=row["invoke_seq"],
            complete_seq=NEVER if row["complete_seq"] is None else row["complete_seq"],
            writes=tuple(writes[row["index"]]),
        )
        for row in rows(history, "ops", [*columns, "complete_seq"])
        if row["index"] in writes
    ]


def sessions(history: Path, names: Dictionary) -> tuple[Session, ...]:
    """Every session with its marks, by subscriber and number. Raises HistoryError."""
    columns = ["seq", "ns", "subscriber", "session", "kind", "position", "value"]
    found: dict[tuple[str, int], list[Mark]] = {}
    for row in rows(history, "events", columns, kind=["open", "watermark", "gap", "close"]):
        cause = names.value(row["value"]) if row["kind"] == "gap" and row["value"] is not None else None
        mark = Mark(seq=row["seq"], ns=row["ns"], kind=row["kind"], position=row["position"], cause=cause)
        found.setdefault((row["subscriber"], row["session"]), []).append(mark)
    return tuple(
        Session(subscriber=subscriber, number=number, marks=tuple(marks))
        for (subscriber, number), marks in sorted(found.items())
    )


def finding(
    checker: str, anomaly: str, sentence: str, *, facts: Iterable[object], count: int, ops: Iterable[int] = ()
) -> Finding:
    """A finding whose fingerprint follows from its `facts` alone."""
    return Finding(
        fingerprint=blake2b(repr((anomaly, *facts)).encode(), digest_size=8).hexdigest(),
        anomaly=anomaly,
        checker=checker,
        sentence=sentence,
        count=count,
        ops=tuple(sorted(set(ops))),
    )


def seconds(ns: int) -> str:
    """A time or a duration for people."""
    return f"{ns / SECOND:.3f} s"
