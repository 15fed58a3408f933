"""Records of a run beside its streams, as values: operations that wrote, states, probes, faults, phases, sessions.

These tables are small, so they are read into plain Python. A missing file counts as empty, as in a foreign history.
`seq` is a position in the journal: it orders the records of all tables. Each function raises HistoryError if its file
is damaged.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from checkers.columns.files import read_columns, reading
from checkers.history.names import Dictionary
from harness.core.columns import NEVER
from harness.core.promises import Excuse, Excuses, View
from harness.core.record import Json

SECOND: Final = 1_000_000_000
MS: Final = 1_000_000
_CLOSING: Final = ("close", "error", "end")
_UNREADABLE: Final = (ValueError, TypeError, msgspec.DecodeError)


class State(msgspec.Struct, frozen=True, kw_only=True):
    """One object of a node's state. `key_id` is the id of the key in operations."""

    seq: int
    ns: int
    node: str
    key_id: int
    key: Json
    value: Json
    position: int | None
    txn: int | None


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that a node reported."""

    seq: int
    ns: int
    node: str
    name: str
    value: int


class Window(Struct, frozen=True, kw_only=True):
    """A fault and the time it was in force; `end_ns` is NEVER if it was not healed.

    Targets are nodes and links ("a>b").
    """

    excuse: Excuse
    targets: tuple[str, ...]
    begin_seq: int
    begin_ns: int
    end_ns: int
    effect: int | None

    def names(self) -> Iterator[str]:
        """Every node that the fault strikes, directly or through a link."""
        for target in self.targets:
            yield from target.split(">")

    def touches(self, node: str) -> bool:
        """True if the fault strikes that node or one of its links."""
        return any(name == node for name in self.names())


class Transaction(Struct, frozen=True, kw_only=True):
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


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A record of a session other than a row: open, watermark, gap or close. `cause` is a gap's.

    `is_whole`: it is about the whole stream, not about a partition or a key. A close always is.
    """

    seq: int
    ns: int
    kind: str
    is_whole: bool
    position: int | None
    cause: Json


class Session(Struct, frozen=True, kw_only=True):
    """One session of a subscriber, its marks in order."""

    subscriber: str
    number: int
    marks: tuple[Mark, ...]


def rows(
    history: Path, table_name: str, columns: Sequence[str], **chosen: Sequence[str | int]
) -> list[Mapping[str, Any]]:
    """Those columns of a table, one mapping per row, by `seq`.

    With `chosen`, only rows in which each named column has one of the given values.
    """
    path = history / f"{table_name}.parquet"
    if not path.is_file():
        return []
    with reading(path, *_UNREADABLE):
        table = read_columns(path, columns, texts=(), **chosen)
        found: list[Mapping[str, Any]] = (table.sort_by("seq") if "seq" in columns else table).to_pylist()
        return found


def states(history: Path, names: Dictionary, *objects: str) -> dict[str, list[State]]:
    """The states of those objects, each in order."""
    columns = ["seq", "ns", "node", "position", "txn", "object", "key", "value"]
    found: dict[str, list[State]] = {each: [] for each in objects}
    with reading(history / "states.parquet", *_UNREADABLE):
        for row in rows(history, "states", columns, object=objects):
            plain = {name: row[name] for name in columns[:5]}
            value = msgspec.json.decode(row["value"])
            state = State(**plain, key_id=row["key"], key=names.value(row["key"]), value=value)
            found[row["object"]].append(state)
    return found


def first_reports(states: Sequence[State]) -> list[State]:
    """The first state of each key: every node may report a restart of the whole cluster."""
    return list({state.key_id: state for state in reversed(states)}.values())[::-1]


def samples(history: Path, *names: str) -> dict[str, list[Sample]]:
    """The probes of those names, each in order."""
    found: dict[str, list[Sample]] = {name: [] for name in names}
    for row in rows(history, "probes", ["seq", "ns", "node", "name", "value"], name=names):
        found[row["name"]].append(Sample(**row))
    return found


def windows(history: Path, excuses: Excuses) -> tuple[Window, ...]:
    """The faults that began, in the order of the plan's steps, with what they excuse."""
    phase: dict[str, dict[int, Mapping[str, Any]]] = {"begin": {}, "effect": {}, "end": {}}
    for row in rows(history, "faults", ["seq", "ns", "step", "phase", "kind", "targets", "effect"]):
        phase.setdefault(row["phase"], {})[row["step"]] = row
    with reading(history / "faults.parquet", *_UNREADABLE):
        return tuple(
            Window(
                excuse=excuses.get(row["kind"], Excuse.DELAYS),
                targets=tuple(msgspec.json.decode(row["targets"], type=list[str])),
                begin_seq=row["seq"],
                begin_ns=row["ns"],
                end_ns=phase["end"][step]["ns"] if step in phase["end"] else NEVER,
                effect=phase["effect"][step]["effect"] if step in phase["effect"] else None,
            )
            for step, row in sorted(phase["begin"].items())
        )


def phases(history: Path) -> dict[str, Mapping[str, Any]]:
    """The start of each phase of the run: rows with `seq`, `ns` and `note`."""
    return {row["phase"]: row for row in rows(history, "marks", ["seq", "ns", "phase", "note"])}


def sessions(history: Path, names: Dictionary) -> tuple[Session, ...]:
    """Every session with its marks, by subscriber and number. The end of a stream, and an error, close it, too."""
    columns = ["seq", "ns", "subscriber", "session", "kind", "span", "key", "position", "value"]
    found: dict[tuple[str, int], list[Mark]] = {}
    for row in rows(history, "events", columns, kind=["open", "watermark", "gap", *_CLOSING]):
        is_whole = row["span"] is None and row["key"] is None
        if row["kind"] in _CLOSING and not is_whole:
            continue
        kind = "close" if row["kind"] in _CLOSING else row["kind"]
        cause = names.value(row["value"]) if kind == "gap" and row["value"] is not None else None
        mark = Mark(seq=row["seq"], ns=row["ns"], kind=kind, is_whole=is_whole, position=row["position"], cause=cause)
        found.setdefault((row["subscriber"], row["session"]), []).append(mark)
    return tuple(
        Session(subscriber=subscriber, number=number, marks=tuple(marks))
        for (subscriber, number), marks in sorted(found.items())
    )


def stream_events(history: Path, kind: str, columns: Sequence[str], views: Collection[View] = ()) -> pa.Table:
    """Columns of the events of that kind, without those of `views`. Raises HistoryError if the file is damaged."""
    names = pa.array([view.name for view in views], pa.string())
    if not len(names):
        return read_columns(history / "events.parquet", columns, kind=[kind])
    events = read_columns(history / "events.parquet", [*columns, "span"], kind=[kind])
    return events.filter(pc.invert(pc.is_in(events["span"], names))).select([*columns])


def seconds(ns: int) -> str:
    """A time or a duration for people."""
    return f"{ns / SECOND:.3f} s"
