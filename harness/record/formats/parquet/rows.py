"""Converts rows of Parquet files back into records."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Fault, Invoke, Json, Mark, MicroOp, Probe, State, StreamEvent
from harness.record.formats.parquet.names import NamedValues, json_value, named_values
from harness.record.formats.parquet.operations import MOP_KINDS, OUTCOMES
from harness.record.formats.parquet.tables import reading, rows_among, rows_of

Row = Mapping[str, Any]
T = TypeVar("T", Invoke, Complete, StreamEvent, Fault, Probe, State, Mark)
_OUTCOMES = {code: name for name, code in OUTCOMES.items()}
_MOP_KINDS = {code: name for name, code in MOP_KINDS.items()}


def records_of(folder: Path) -> Iterator[Evidence]:
    """The evidence in that folder, in journal order, as in `numbered_records`."""
    yield from numbered_records(folder).values()


def numbered_records(folder: Path) -> dict[int, Evidence]:
    """The evidence in that folder by its position, in journal order: all of it in memory, for exports and hashes.

    Raises HistoryError that names the file, or the folder if its files contradict each other.
    """
    found: dict[int, Evidence] = {}
    with reading(folder):
        for seq, record in _records(folder, named_values(folder)):
            if seq in found:
                raise HistoryError(f"{folder}: two records claim position {seq}")
            found[seq] = record
    return {seq: found[seq] for seq in sorted(found)}


def some_records(folder: Path, *, ops: Sequence[int], events: Sequence[int]) -> list[tuple[int, Evidence]]:
    """The operations of those indexes, and the stream events at those positions, each with its position, in order."""
    names = named_values(folder)
    found: list[tuple[int, Evidence]] = []
    with reading(folder):
        mops = _mops(rows_among(folder, "mops", "op", ops), names)
        for row in rows_among(folder, "ops", "index", ops):
            found.extend(_operation(row, mops.get(row["index"], [])))
        found.extend(_event(row, names) for row in rows_among(folder, "events", "seq", events))
    return sorted(found, key=lambda each: each[0])


def _records(folder: Path, names: NamedValues) -> Iterator[tuple[int, Evidence]]:
    mops = _mops(rows_of(folder, "mops"), names)
    for row in rows_of(folder, "ops"):
        yield from _operation(row, mops.get(row["index"], []))
    for row in rows_of(folder, "events"):
        yield _event(row, names)
    for row in rows_of(folder, "probes"):
        yield row["seq"], _record(Probe, {**row, "time_ns": row["ns"]})
    for row in rows_of(folder, "states"):
        named = {"key": names.value(row["key"]), "value": _json(row["value"])}
        yield row["seq"], _record(State, {**row, **named, "time_ns": row["ns"]})
    yield from faults_and_marks(folder)


def faults_and_marks(folder: Path) -> Iterator[tuple[int, Evidence]]:
    """The faults and marks of the run, with their positions: a few records per second."""
    with reading(folder / "faults.parquet"):
        for row in rows_of(folder, "faults"):
            yield row["seq"], _record(Fault, {**row, "time_ns": row["ns"], "targets": _json(row["targets"])})
    with reading(folder / "marks.parquet"):
        for row in rows_of(folder, "marks"):
            counts = {each: _json(row[each]) for each in ("streams", "handled", "goals")}
            yield row["seq"], _record(Mark, {**row, **counts, "time_ns": row["ns"]})


def _event(row: Row, names: NamedValues) -> tuple[int, Evidence]:
    named = {each: None if row[each] is None else names.value(row[each]) for each in ("key", "value")}
    return row["seq"], _record(StreamEvent, {**row, **named, "time_ns": row["ns"]})


def _operation(row: Row, mops: list[dict[str, Json]]) -> Iterator[tuple[int, Evidence]]:
    """An operation's invocation, and its completion if it has one."""
    requested = [{**mop, "value": None} if mop["f"] == "r" else mop for mop in mops]
    invoke = {"time_ns": row["invoke_ns"], "value": _json(row["invoke_value"])}
    yield (
        row["invoke_seq"],
        _record(Invoke, {**row, **invoke, "mops": _mop_cells(requested) if row["is_txn"] else None}),
    )
    if row["complete_seq"] is not None:
        outcome = _OUTCOMES[row["outcome"]]
        complete = {"time_ns": row["complete_ns"], "outcome": outcome, "value": _json(row["value"])}
        done = _mop_cells(mops) if row["has_result"] else None
        yield row["complete_seq"], _record(Complete, {**row, **complete, "mops": done})


def _mops(rows: Iterable[Row], names: NamedValues) -> dict[int, list[dict[str, Json]]]:
    """The micro-operations of each operation, by the names of their fields."""
    found: dict[int, list[dict[str, Json]]] = {}
    for row in rows:
        value: Json = None
        if row["read"] is not None:
            value = [names.value(each) for each in row["read"]]
        elif row["value"] is not None:
            value = names.value(row["value"])
        mop = {"f": _MOP_KINDS[row["f"]], "key": names.value(row["key"]), "value": value}
        found.setdefault(row["op"], []).append(mop | {"table": row["table"], "lock": row["lock"]})
    return found


def _mop_cells(mops: list[dict[str, Json]]) -> list[list[Json]]:
    return [[mop[name] for name in MicroOp.__struct_fields__] for mop in mops]


def _record(kind: type[T], cells: Row) -> T:
    """A record of that kind, from cells under the names of its fields; extra cells are ignored."""
    tag: str = kind.__struct_config__.tag  # type: ignore[assignment]  # Each record has its tag.
    names: tuple[str, ...] = kind.__struct_fields__
    return msgspec.convert([tag, *(cells[name] for name in names)], kind)


def _json(text: str | None) -> Json:
    return None if text is None else json_value(text)
