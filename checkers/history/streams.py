"""Streams from a history directory: the events of subscribers, and the writes of the source.

The position of a write is the one that its operation reported (`commit_ts`), else that of an event that delivered a
value of the operation. An operation of unclear outcome counts only if one of its values was delivered. The position of
a snapshot row is that of the snapshot, and says nothing about the write.

Events whose span is a declared view are no part of a stream (checkers.state.views judges them): they are left out here.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.arrow import integers
from checkers.columns.blocks import by_part, pieces
from checkers.columns.facts import Facts
from checkers.columns.files import footer, opened, opened_operations
from checkers.columns.index import Places, ascending, codes, count_so_far, is_kind
from checkers.columns.parts import Columns, constant
from checkers.columns.runs import distinct, first_of_each, is_ascending, ordered
from checkers.columns.table import Join, ordered_by, taken
from harness.core.columns import (
    BACKFILL,
    FAIL,
    INFO,
    KINDS,
    NEVER,
    READ,
    ROW,
    Bools,
    Deliveries,
    Int8s,
    Int64s,
    SourceWrites,
)
from harness.core.errors import HistoryError
from harness.core.promises import StreamContract, View

DELIVERED: Final = Deliveries.__struct_fields__
_WRITTEN: Final = SourceWrites.__struct_fields__
_TIMES: Final = ("epoch", "invoke_seq", "complete_seq", "txn")
_GROUPS: Final = 4  # Row groups of events read at a time: opening a file takes as long as reading a column.


class StreamLog(Struct, frozen=True):
    """The unit of work: the events of `chosen` subscribers, judged together, without the spans in `left_out`.

    Ids are places in `subscribers` and `spans`.
    """

    directory: str
    chosen: tuple[str, ...]
    subscribers: tuple[str, ...]
    spans: tuple[str, ...]
    left_out: tuple[str, ...] = ()


class Placement(Struct, frozen=True):
    """Facts about the source from deliveries: the least position of each operation, and the partition of each key.

    Both ascend. Only operations without a reported position, or of unclear outcome, are included. `span` -1: several.
    """

    op: Int64s
    position: Int64s
    key: Int64s
    span: Int64s

    def positions(self, op: Int64s) -> Int64s:
        """The least position of each of those operations; NEVER if none is known."""
        return _lookup(self.op, self.position, op, NEVER)


NOTHING_DERIVED: Final = Placement(*(np.empty(0, np.int64) for _ in range(4)))


def stream_logs(history: Path, contract: StreamContract, views: Collection[View] = ()) -> tuple[StreamLog, ...]:
    """One log per subscriber, or one for all if a watermark binds several; without `views`. Raises HistoryError."""
    found: dict[str, set[str]] = {"subscriber": set(), "span": set()}
    left_out = tuple(sorted(view.name for view in views))
    gone = pa.array(left_out, pa.string())
    with opened(history / "events.parquet", texts=list(found)) as file:
        for batch in file.iter_batches(columns=list(found)):
            kept = batch.filter(pc.invert(pc.is_in(batch["span"].dictionary_decode(), gone))) if left_out else batch
            for name, values in found.items():
                values.update(value for value in pc.unique(kept[name]).to_pylist() if value is not None)
    subscribers, spans = tuple(sorted(found["subscriber"])), tuple(sorted(found["span"]))
    whole = StreamLog(str(history), subscribers, subscribers, spans, left_out)
    if contract.wm_scope in ("session", "subscriber"):
        return tuple(replace(whole, chosen=(name,)) for name in subscribers)
    return (whole,) if subscribers else ()


def read_deliveries(
    log: StreamLog, names: Sequence[str] = DELIVERED, *, threads: int = 1, shared: Facts | None = None
) -> Deliveries:
    """The events of a log, in order of receipt. Columns that are not in `names` have only missing values.

    Raises HistoryError if the file is damaged. A column of missing values takes no memory. With the same `shared`, logs
    that one process reads read the file once: each by itself, as tasks elsewhere do, would read the rows of all.
    """
    if shared is None or shared.is_copy or len(log.chosen) == len(log.subscribers):
        return _read_events(log, names, threads)
    every = replace(log, chosen=log.subscribers)
    needed = tuple(names) if "subscriber" in names else (*names, "subscriber")
    events = shared.of((log.directory, needed), partial(_read_by_subscriber, every, needed, threads))
    [place] = (bisect_left(log.subscribers, name) for name in log.chosen)
    begin, end = np.searchsorted(events.subscriber, [place, place + 1])
    return Deliveries(**{name: getattr(events, name)[begin:end] for name in DELIVERED})  # No copy.


def _read_by_subscriber(every: StreamLog, names: Sequence[str], threads: int) -> Deliveries:
    """The events of all subscribers, one subscriber after the other."""
    return ordered_by(_read_events(every, names, threads), "subscriber")


def _read_events(log: StreamLog, names: Sequence[str], threads: int) -> Deliveries:
    file = EventsFile(log, names)
    runs = [range(run.start, run.stop) for run in pieces(file.group_count, _GROUPS)]
    for _ in by_part(file.read, runs, threads=threads):
        pass
    return file.deliveries()


class EventsFile:
    """The events of a log, as in `read_deliveries`, for reading row groups in any order and by several threads."""

    def __init__(self, log: StreamLog, names: Sequence[str] = DELIVERED) -> None:
        self._log, self._names = log, names
        self._path = Path(log.directory) / "events.parquet"
        self._texts = {"subscriber": log.subscribers, "span": log.spans, "kind": KINDS}
        with opened(self._path, texts=[*self._texts]) as file:
            self.group_count = int(file.num_row_groups)
            counts = [np.count_nonzero(_is_chosen(file, group, log)) for group in range(self.group_count)]
        self._begins = np.cumsum([0, *counts]).tolist()
        self._columns = Columns(DELIVERED, self._begins[-1])

    def read(self, groups: Iterable[int]) -> None:
        """Read those row groups. Raises HistoryError if the file is damaged."""
        with opened(self._path, texts=[*self._texts]) as file:
            for group in groups:
                is_chosen = _is_chosen(file, group, self._log)
                begin, end = self._begins[group : group + 2]
                table = file.read_row_group(group, columns=[*self._names] if begin < end else [], use_threads=False)
                for name in DELIVERED if begin < end else ():
                    column = _column(table, name, self._texts.get(name), len(is_chosen))
                    column = column.astype(np.int8) if name == "kind" else column
                    self._columns.put(begin, {name: column if end - begin == len(is_chosen) else column[is_chosen]})

    def deliveries(self) -> Deliveries:
        """All events, once all row groups have been read."""
        numbers = self._columns.whole()
        if not is_ascending(numbers["seq"]):
            order, _ = ordered(numbers["seq"])
            numbers = {name: taken(column, order) for name, column in numbers.items()}
        return Deliveries(kind=numbers.pop("kind").astype(np.int8, copy=False), **numbers)


def read_writes(history: Path, *, has_times: bool = True) -> SourceWrites:
    """All writes of the source, sorted by operation, each operation's in their order. Raises HistoryError on damage.

    Without `has_times` the columns for an operation's invocation, completion, epoch and transaction have only missing
    values.
    """
    files = SourceFiles(history, has_times=has_times)
    for group in range(files.group_count):
        files.read(group)
    return files.writes()


class SourceGroup(Struct, frozen=True):
    """The operations of one row group and their steps: the columns that writes need, and those requested besides."""

    ops: pa.Table
    mops: pa.Table
    writer: Int64s  # For each write the row of its operation.


class SourceFiles:
    """The writes of the source, as in `read_writes`, for reading row groups in any order and by several threads."""

    def __init__(self, history: Path, *, has_times: bool = True) -> None:
        self._history = history
        self._names = ["index", "outcome", "commit_ts", *(_TIMES if has_times else ())]
        with opened_operations(self._history) as (ops, mops):
            self.group_count = int(ops.num_row_groups)
            counts = [_write_count(mops, group) for group in range(self.group_count)]
        self._begins = np.cumsum([0, *counts]).tolist()
        self._columns = Columns(_WRITTEN, self._begins[-1])

    def read(self, group: int, *also: str) -> SourceGroup:
        """Read that row group, with the additional columns `also` of steps. Raises HistoryError if it is damaged."""
        with opened_operations(self._history) as (ops, mops):
            names = ["op", "f", "key", "value", *also]
            op_table = ops.read_row_group(group, columns=self._names, use_threads=False)
            mop_table = mops.read_row_group(group, columns=names, use_threads=False)
            part, writer = _writes(op_table, mop_table)
        self._columns.put(self._begins[group], {name: getattr(part, name) for name in _WRITTEN})
        return SourceGroup(op_table, mop_table, writer)

    def writes(self) -> SourceWrites:
        """All writes, once all row groups have been read."""
        numbers = self._columns.whole()
        return SourceWrites(outcome=numbers.pop("outcome").astype(np.int8, copy=False), **numbers)


NO_WRITES: Final = SourceWrites(**Columns(_WRITTEN, 0).whole())


def placement_by(
    log: StreamLog, source: Path | None = None, *, threads: int = 1, shared: Facts | None = None
) -> Placement:
    """The placement that one log gives to the operations of `source`, a history; None: the log's own. `threads` read.

    Raises HistoryError if a file is damaged. Most histories need no placement: then only the columns that show this are
    read. With the same `shared`, several logs of one source read it once.
    """
    source, shared = source or Path(log.directory), Facts(is_copy=True) if shared is None else shared
    if not log.spans and not shared.of((source, "needs placement"), partial(_needs_placement, source, threads)):
        return NOTHING_DERIVED
    writes = shared.of((source, "writes"), partial(read_writes, source, has_times=False))
    names = ("seq", "kind", "span", "key", "value", "position")
    return placement(read_deliveries(log, names, shared=shared), writes)


def placement_alone(log: StreamLog, writes: SourceWrites, deliveries: Callable[[], Deliveries]) -> Placement:
    """The placement that the history's only log gives to these writes. Calls `deliveries` only if one is needed."""
    is_needed = len(writes.op) > 0 and (bool(log.spans) or bool(_is_unplaced(writes).any()))
    return placement(deliveries(), writes) if is_needed else NOTHING_DERIVED


def _needs_placement(source: Path, threads: int) -> bool:
    """True if the position of some write must come from deliveries."""
    count = footer(source / "ops.parquet").num_row_groups
    parts = [range(number, count, threads) for number in range(threads)]
    return any(by_part(partial(_any_needs_placement, source), parts, threads=threads))


def _any_needs_placement(source: Path, groups: Iterable[int]) -> bool:
    """True if the position of some write in those row groups must come from deliveries."""
    with opened_operations(source) as (ops, mops):
        for group in groups:
            table = ops.read_row_group(group, columns=["index", "outcome", "commit_ts"], use_threads=False)
            outcome, position = integers(table["outcome"], INFO), integers(table["commit_ts"], NEVER)
            unplaced = integers(table["index"])[_are_unplaced(outcome, position)]
            steps = mops.read_row_group(group, columns=["op", "f"] if len(unplaced) else [], use_threads=False)
            # Few operations qualify, and most of these only read: testing their steps is cheaper than testing all.
            if len(unplaced):
                writers = distinct(integers(steps["op"])[integers(steps["f"], 0) != READ])
                if np.any(Places(writers).of(unplaced) >= 0):
                    return True
    return False


def placement(deliveries: Deliveries, writes: SourceWrites) -> Placement:
    """The placement that follows from these deliveries. A value that two operations wrote to one key shows nothing."""
    unplaced = distinct(writes.key[_is_unplaced(writes)])
    is_event = is_kind(deliveries.kind, (ROW, BACKFILL))
    rows = np.flatnonzero(is_event & (Places(unplaced).of(deliveries.key) >= 0))
    possible = np.flatnonzero((writes.outcome != FAIL) & (Places(unplaced).of(writes.key) >= 0))
    shown = [deliveries.key[rows], deliveries.value[rows]]
    sole = Join(shown, [writes.key[possible], writes.value[possible]]).only
    write, position = np.append(possible, -1)[sole], deliveries.position[rows]
    is_shown = (write >= 0) & (position != NEVER) & (deliveries.value[rows] != NEVER)
    is_shown &= deliveries.kind[rows] == ROW
    write, position = write[is_shown], position[is_shown]
    is_unplaced = _is_unplaced(writes)[write]
    op, least = _least(writes.op[write[is_unplaced]], position[is_unplaced])
    has_span = is_event & (deliveries.span >= 0)
    key, span = _homes(deliveries.key[has_span], deliveries.span[has_span])
    return Placement(op, least, key, span)


def _is_unplaced(writes: SourceWrites) -> Bools:
    """True for the writes whose position must come from deliveries."""
    return _are_unplaced(writes.outcome, writes.position)


def _are_unplaced(outcome: Int64s | Int8s, position: Int64s) -> Bools:
    result: Bools = (outcome == INFO) | ((outcome != FAIL) & (position == NEVER))
    return result


def merged(placements: Iterable[Placement]) -> Placement:
    """The placement that follows from all of these together."""
    parts = list(placements)
    op, position = _least(np.concatenate([p.op for p in parts]), np.concatenate([p.position for p in parts]))
    key, span = _homes(np.concatenate([p.key for p in parts]), np.concatenate([p.span for p in parts]))
    return Placement(op, position, key, span)


def placed(writes: SourceWrites, known: Placement) -> SourceWrites:
    """The writes with positions and partitions from deliveries. An unclear one that never came has no position."""
    position = writes.position
    if len(known.op) or np.any(writes.outcome == INFO):
        shown = known.positions(writes.op)
        is_unobserved: Bools = (writes.outcome == INFO) & (shown == NEVER)
        position = np.where(is_unobserved, NEVER, np.where(position == NEVER, shown, position))
    return replace(writes, position=position, span=_lookup(known.key, known.span, writes.key, -1))


def _writes(ops: pa.Table, mops: pa.Table) -> tuple[SourceWrites, Int64s]:
    """The writes of one chunk, and for each the row of its operation."""
    is_write = integers(mops["f"], 0) != READ
    op = integers(mops["op"])[is_write]
    index = integers(ops["index"])
    row = Places(index).of(op)
    if np.any(row < 0):
        raise HistoryError("mops.parquet has a row without its operation: write the history again from its journal")
    never = constant(NEVER, len(op))

    def of_op(name: str, missing: int = NEVER) -> Int64s:
        if name not in ops.column_names or ops[name].null_count == len(index):
            return never
        column: Int64s = integers(ops[name], missing)[row]
        return column

    writes = SourceWrites(
        op=op,
        outcome=integers(ops["outcome"], INFO)[row].astype(np.int8),
        key=integers(mops["key"])[is_write],
        value=integers(mops["value"], NEVER)[is_write],
        position=of_op("commit_ts"),
        ordinal=count_so_far(codes(op), np.ones(len(op), np.bool_)) - 1,
        epoch=of_op("epoch"),
        span=constant(-1, len(op)),
        invoke_seq=of_op("invoke_seq", 0),
        complete_seq=of_op("complete_seq"),
        txn=of_op("txn"),
        version=never,
    )
    return writes, row


def _write_count(mops: pq.ParquetFile, group: int) -> int:
    table = mops.read_row_group(group, columns=["f"], use_threads=False)
    return int(np.count_nonzero(integers(table["f"], 0) != READ))


def _is_chosen(file: pq.ParquetFile, group: int, log: StreamLog) -> Bools:
    """True for the rows of that row group that belong to the log's subscribers, and to none of the spans left out."""
    is_chosen: Bools = np.ones(file.metadata.row_group(group).num_rows, np.bool_)
    if len(log.chosen) < len(log.subscribers):
        table = file.read_row_group(group, columns=["subscriber"], use_threads=False)
        is_chosen &= _ids(table["subscriber"], log.chosen) >= 0
    if log.left_out:
        table = file.read_row_group(group, columns=["span"], use_threads=False)
        is_chosen &= _ids(table["span"], log.left_out) < 0
    return is_chosen


def _column(table: pa.Table, name: str, texts: tuple[str, ...] | None, count: int) -> Int64s:
    """A column of the log as numbers; for text, places in `texts`."""
    if name not in table.column_names or table[name].null_count == count:
        return constant(NEVER if texts is None else -1, count)
    return integers(table[name], NEVER) if texts is None else _ids(table[name], texts)


def _least(group: Int64s, number: Int64s) -> tuple[Int64s, Int64s]:
    """Each group, ascending, with its least number."""
    order = ascending(group, number)
    order = order[first_of_each(group[order])]
    return group[order], number[order]


def _homes(key: Int64s, span: Int64s) -> tuple[Int64s, Int64s]:
    """Each key, ascending, with its one partition; -1 if it has several, or already -1."""
    keys, least = _least(key, span)
    _, most = _least(key, -span)
    return keys, np.where(least == -most, least, -1)


def _lookup(keys: Int64s, values: Int64s, wanted: Int64s, default: int) -> Int64s:
    if len(keys) == 0:
        return constant(default, len(wanted))
    return np.append(values, default)[Places(keys).of(wanted)]


def _ids(column: pa.ChunkedArray, texts: tuple[str, ...]) -> Int64s:
    """The place of each text in `texts`; -1 for null and for any other. The column must be dictionary-encoded."""
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], pa.dictionary(pa.int32(), pa.string()))
    known = {text: place for place, text in enumerate(texts)}
    place = np.array([*(known.get(text.as_py(), -1) for text in whole.dictionary), -1], np.int64)
    if len(place) == 2 and not whole.null_count:
        return constant(int(place[0]), len(whole))
    return place[integers(whole.indices, -1)]
