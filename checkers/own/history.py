"""A history as a user's check reads it: rows with their values, and the columns of its files as arrays."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from checkers.columns.arrow import integers
from checkers.columns.files import read_columns, reading
from checkers.engine.protocol import Context
from checkers.history.names import Dictionary
from checkers.history.tables import State, Window, rows, states, windows
from harness.core.columns import APPEND, FAIL, INFO, NEVER, OK, READ, WRITE
from harness.core.promises import Bounds, StreamContract
from harness.core.record import Json, MicroOp, Outcome

_OUTCOMES: Final[Mapping[int, Outcome]] = {OK: "ok", FAIL: "fail", INFO: "info"}
_STEPS: Final[Mapping[int, str]] = {READ: "r", APPEND: "append", WRITE: "w"}
_PLACES: Final = ("invoke_ns", "complete_ns", "invoke_seq", "complete_seq")
_TIMES: Final = ("txn", "start_ts", "read_ts", "commit_ts", "epoch")
_OPERATION: Final = (
    "index",
    "process",
    "node",
    "f",
    "invoke_ns",
    "complete_ns",
    "invoke_seq",
    "complete_seq",
    "error",
    *_TIMES,
)
_NUMBERS: Final = ("seq", "ns", "subscriber", "session", "kind", "span", "position", "ordinal", "epoch", "unit")


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation, with its outcome: ok, fail (it certainly did not happen) or info (it may happen at any time).

    `asked` is the value of its invocation and `value` that of its answer; a transaction has `mops` instead. Times are
    nanoseconds since the start of the run; `complete_ns` is None without an answer. `invoke_seq` and
    `complete_seq` are the places in the journal. The system reported the
    rest.
    """

    index: int  # Its number in sentences: T7.
    process: int
    node: str | None
    f: str
    outcome: Outcome
    asked: Json
    value: Json
    mops: tuple[MicroOp, ...]
    invoke_ns: int
    complete_ns: int | None
    invoke_seq: int
    complete_seq: int | None
    error: str | None
    txn: int | None
    start_ts: int | None
    read_ts: int | None
    commit_ts: int | None
    epoch: int | None


class Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a subscriber received. `seq` is its place in the journal, by which a finding names it."""

    seq: int
    ns: int
    subscriber: str
    session: int
    kind: str  # row, watermark, open, close, gap, ...
    span: str | None
    key: Json
    value: Json
    position: int | None
    ordinal: int | None
    epoch: int | None
    unit: int | None


class History:
    """The history that a check judges. Each method reads its file anew, and raises HistoryError if that is damaged."""

    def __init__(self, folder: Path, context: Context) -> None:
        self._folder, self._context = folder, context

    @property
    def bounds(self) -> Bounds:
        """The limits by which the run is judged."""
        return self._context.bounds

    @property
    def stream(self) -> StreamContract | None:
        """The contract of the change stream, if there is one."""
        return self._context.contract

    def operations(self, *f: str, outcome: Outcome | None = None) -> Iterator[Operation]:
        """The operations of these kinds, or all, with that outcome, or any, in the order of their invocations."""
        mops = self._mops()
        columns = [*_OPERATION, "outcome", "invoke_value", "value"]
        chosen: dict[str, Sequence[str | int]] = {"f": f} if f else {}
        if outcome is not None:
            chosen["outcome"] = [code for code, name in _OUTCOMES.items() if name == outcome]
        with reading(self._folder / "ops.parquet", msgspec.DecodeError, KeyError):
            for row in sorted(rows(self._folder, "ops", columns, **chosen), key=lambda each: int(each["index"])):
                yield Operation(
                    **{name: row[name] for name in _OPERATION},
                    outcome=_OUTCOMES[row["outcome"]],
                    asked=_json(row["invoke_value"]),
                    value=_json(row["value"]),
                    mops=tuple(mops.get(row["index"], ())),
                )

    def events(self, *kind: str) -> Iterator[Delivered]:
        """The events of these kinds, or all, in the order in which they were received."""
        chosen: dict[str, Sequence[str | int]] = {"kind": kind} if kind else {}
        whole = self._context.home(self._folder)
        for row in rows(whole, "events", [*_NUMBERS, "key", "value"], **chosen):
            yield Delivered(
                **{name: row[name] for name in _NUMBERS}, key=self._named(row["key"]), value=self._named(row["value"])
            )

    def states(self, kind: str) -> list[State]:
        """What nodes recorded of that kind of object, in order: `ns`, `node`, `key`, `value`, `position`."""
        return states(self._folder, self._names, kind)[kind]

    def faults(self) -> tuple[Window, ...]:
        """The faults, in the order of the plan: `targets`, `begin_ns`, `end_ns`, `effect`."""
        return windows(self._folder, self._context.excuses)

    def columns(self, table: str, *names: str) -> dict[str, NDArray[Any]]:
        """Columns of a table (docs/history-format.md), one array each, in the order of the file.

        Whole numbers are int64, with NEVER for null; keys and values are numbers, of which `value` gives the value.
        Anything else comes as objects.
        """
        found = read_columns(self._folder / f"{table}.parquet", names)
        return {name: _array(found[name]) for name in names}

    def value(self, number: int) -> Json:
        """The value for which a number stands in the columns key, value and read."""
        return self._names.value(number)

    @cached_property
    def _names(self) -> Dictionary:
        return Dictionary(self._context.home(self._folder))

    def _named(self, number: int | None) -> Json:
        return None if number is None else self._names.value(number)

    def _mops(self) -> dict[int, list[MicroOp]]:
        found: dict[int, list[MicroOp]] = {}
        for row in rows(self._folder, "mops", ["op", "f", "key", "value", "read", "table", "lock"]):
            value: Json = self._named(row["value"])
            if row["read"] is not None:
                value = [self._names.value(each) for each in row["read"]]
            f, key = _STEPS[row["f"]], self._names.value(row["key"])
            step = msgspec.convert([f, key, value, row["table"], row["lock"]], MicroOp)
            found.setdefault(row["op"], []).append(step)
        return found


def _json(text: str | None) -> Json:
    return None if text is None else msgspec.json.decode(text)


def _array(column: Any) -> NDArray[Any]:
    import pyarrow as pa  # noqa: PLC0415  Only this function knows Arrow.

    if pa.types.is_integer(column.type):
        return integers(column, NEVER)
    return np.array(column.to_pylist(), dtype=object)
