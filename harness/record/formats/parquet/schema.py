"""The Parquet files of a history: their columns as Arrow schemas. Those of ops, mops and events are core's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import pyarrow as pa

from harness.core.columns import EVENTS_COLUMNS, MOPS_COLUMNS, OPS_COLUMNS
from harness.core.errors import HistoryError

T = TypeVar("T")
Built = TypeVar("Built")

FAULTS_COLUMNS: Final = {
    "seq": "int64",
    "ns": "int64",
    "step": "int64",
    "phase": "string",
    "kind": "string",
    "targets": "string",  # JSON list
    "effect": "int64?",
    "note": "string?",
}
PROBES_COLUMNS: Final = {"seq": "int64", "ns": "int64", "node": "string", "name": "string", "value": "int64"}
STATES_COLUMNS: Final = {
    "seq": "int64",
    "ns": "int64",
    "node": "string",
    "object": "string",
    "key": "int64",
    "value": "string",  # JSON
    "position": "int64?",
    "txn": "int64?",
}
MARKS_COLUMNS: Final = {
    "seq": "int64",
    "ns": "int64",
    "phase": "string",
    "streams": "string",  # JSON objects
    "handled": "string",
    "goals": "string",
    "note": "string?",
}
NAMES_COLUMNS: Final = {"id": "int64", "json": "string"}

_TYPES: Final = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "int8": pa.int8(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "list<int64>": pa.list_(pa.int64()),
}


def _schema(columns: Mapping[str, str]) -> pa.Schema:
    return pa.schema(
        [pa.field(name, _TYPES[kind.rstrip("?")], nullable=kind.endswith("?")) for name, kind in columns.items()]
    )


SCHEMAS: Final[dict[str, pa.Schema]] = {
    "ops": _schema(OPS_COLUMNS),
    "mops": _schema(MOPS_COLUMNS),
    "events": _schema(EVENTS_COLUMNS),
    "faults": _schema(FAULTS_COLUMNS),
    "probes": _schema(PROBES_COLUMNS),
    "states": _schema(STATES_COLUMNS),
    "marks": _schema(MARKS_COLUMNS),
    "names": _schema(NAMES_COLUMNS),
}


def table_of(name: str, columns: Mapping[str, Sequence[object]]) -> pa.Table:
    """Rows of one of the tables, given by column. Raises ValueError if a cell does not fit."""
    try:
        return pa.table(dict(columns), schema=SCHEMAS[name])
    except OverflowError:
        raise ValueError("a number is beyond 64 bits") from None
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None


def tables_of(rows: Sequence[T], build: Callable[[Sequence[T]], Built], name: Callable[[T], str]) -> Built:
    """The result of `build` for the rows. Raises HistoryError that names the first row for which it fails."""
    try:
        return build(rows)
    except ValueError as error:
        problem = error
    while len(rows) > 1:
        first = rows[: len(rows) // 2]
        try:
            build(first)
            rows = rows[len(first) :]
        except ValueError as error:
            problem, rows = error, first
    raise HistoryError(f"{name(rows[0])}: {problem}; mend what recorded it") from None
