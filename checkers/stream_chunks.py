"""Where streams come from: the events of a subscriber, and the writes of the source, from a history directory.

The position of a write is what its operation reported (`commit_ts`), else what a delivery of one of the operation's
values tells. An operation of unclear outcome counts only if one of its values was delivered. A snapshot's row tells no
position: it is that of the snapshot.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from checkers.files import DAMAGE, damaged, ints_of
from checkers.stream_index import codes, count_so_far
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
from harness.core.promises import StreamContract


@dataclass(frozen=True, slots=True)
class StreamLog:
    """The unit of work: events of some subscribers, who are judged together. Ids are places in the two lists of all."""

    directory: str
    chosen: tuple[str, ...]
    subscribers: tuple[str, ...]
    spans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """What deliveries tell of the source: the least position of each operation, and the partition of each key.

    `op` and `key` ascend. Only operations are here that reported no position, or have an unclear outcome. `span` is -1
    for a key that came on several partitions.
    """

    op: Int64s
    position: Int64s
    key: Int64s
    span: Int64s


def stream_logs(history: Path, contract: StreamContract) -> tuple[StreamLog, ...]:
    """One log for each subscriber; one for all, where a watermark binds more than one. Raises HistoryError."""
    path = history / "events.parquet"
    found: dict[str, set[str]] = {"subscriber": set(), "span": set()}
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(columns=list(found)):
                for name, values in found.items():
                    values.update(value for value in pc.unique(batch[name]).to_pylist() if value is not None)
    except DAMAGE as problem:
        raise damaged(path, problem) from problem
    subscribers, spans = tuple(sorted(found["subscriber"])), tuple(sorted(found["span"]))
    if contract.wm_scope in ("session", "subscriber"):
        return tuple(StreamLog(str(history), (name,), subscribers, spans) for name in subscribers)
    return (StreamLog(str(history), subscribers, subscribers, spans),) if subscribers else ()


def read_deliveries(log: StreamLog) -> Deliveries:
    """The events of a log, in order of receipt. Raises HistoryError if the file is damaged."""
    path = Path(log.directory) / "events.parquet"
    columns = [field.name for field in fields(Deliveries)]
    try:
        table = pq.read_table(
            path,
            columns=columns,
            filters=[("subscriber", "in", list(log.chosen))],
            page_checksum_verification=True,
            use_threads=False,
        )
    except DAMAGE as problem:
        raise damaged(path, problem) from problem
    table = table.sort_by("seq")
    texts = {"subscriber": log.subscribers, "span": log.spans, "kind": KINDS}
    numbers = {
        name: _ids(table[name], texts[name]) if name in texts else ints_of(table[name], NEVER) for name in columns
    }
    kind = numbers.pop("kind").astype(np.int8)
    return Deliveries(kind=kind, **numbers)


def read_writes(history: Path) -> SourceWrites:
    """All writes of the source, by operation and in the order of each. Raises HistoryError if a file is damaged."""
    ops_path, mops_path = history / "ops.parquet", history / "mops.parquet"
    parts: list[SourceWrites] = []
    try:
        with (
            pq.ParquetFile(ops_path, page_checksum_verification=True) as ops,
            pq.ParquetFile(mops_path, page_checksum_verification=True) as mops,
        ):
            for group in range(ops.num_row_groups):
                names = ["index", "outcome", "commit_ts", "epoch", "invoke_seq", "complete_seq", "txn"]
                op_table = ops.read_row_group(group, columns=names, use_threads=False)
                mop_table = mops.read_row_group(group, columns=["op", "f", "key", "value"], use_threads=False)
                parts.append(_writes(op_table, mop_table))
    except DAMAGE as problem:
        raise damaged(history, problem) from problem
    return concatenated(parts)


def concatenated(parts: Iterable[SourceWrites]) -> SourceWrites:
    """The writes of several chunks as one."""
    chunks = [*parts, _writes_of(np.zeros(0, np.int64), np.zeros(0, np.int8))]
    outcome = np.concatenate([chunk.outcome for chunk in chunks])
    names = [field.name for field in fields(SourceWrites) if field.name != "outcome"]
    columns = {name: np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in names}
    return SourceWrites(outcome=outcome, **columns)


def placement(deliveries: Deliveries, writes: SourceWrites) -> Placement:
    """What these deliveries tell of the source. A value that two operations wrote to one key tells nothing."""
    is_event = np.isin(deliveries.kind, (ROW, BACKFILL))
    possible = np.flatnonzero(writes.outcome != FAIL)
    what = codes(
        np.append(deliveries.key[is_event], writes.key[possible]),
        np.append(deliveries.value[is_event], writes.value[possible]),
    )
    shown, written = what[: int(is_event.sum())], what[int(is_event.sum()) :]
    owner = np.full(int(what.max(initial=-1)) + 1, -1, np.int64)
    owner[written] = possible
    owner[np.bincount(written, minlength=len(owner)) > 1] = -1
    write, position = owner[shown], deliveries.position[is_event]
    is_telling = (write >= 0) & (position != NEVER) & (deliveries.value[is_event] != NEVER)
    is_telling &= deliveries.kind[is_event] == ROW
    write, position = write[is_telling], position[is_telling]
    is_asked = (writes.outcome[write] == INFO) | (writes.position[write] == NEVER)
    op, least = _least(writes.op[write[is_asked]], position[is_asked])
    has_span = is_event & (deliveries.span >= 0)
    key, span = _homes(deliveries.key[has_span], deliveries.span[has_span])
    return Placement(op, least, key, span)


def merged(placements: Iterable[Placement]) -> Placement:
    """What the deliveries of all subscribers tell together."""
    parts = list(placements)
    op, position = _least(np.concatenate([p.op for p in parts]), np.concatenate([p.position for p in parts]))
    key, span = _homes(np.concatenate([p.key for p in parts]), np.concatenate([p.span for p in parts]))
    return Placement(op, position, key, span)


def placed(writes: SourceWrites, known: Placement) -> SourceWrites:
    """The writes with the positions and partitions that deliveries told; none for what must not count (module text)."""
    told = _lookup(known.op, known.position, writes.op, NEVER)
    position = np.where(writes.position == NEVER, told, writes.position)
    is_unobserved: Bools = (writes.outcome == INFO) & (told == NEVER)
    return replace(
        writes,
        position=np.where(is_unobserved, NEVER, position),
        span=_lookup(known.key, known.span, writes.key, -1),
    )


def _writes(ops: pa.Table, mops: pa.Table) -> SourceWrites:
    """The writes of one chunk."""
    is_write = ints_of(mops["f"], 0) != READ
    op = ints_of(mops["op"], 0)[is_write]
    index = ints_of(ops["index"], 0)
    row = np.searchsorted(index, op)
    if len(op) and (row.max() >= len(index) or not np.array_equal(index[row], op)):
        raise HistoryError("mops.parquet has a row without its operation: write the history again from its journal")
    return replace(
        _writes_of(op, ints_of(ops["outcome"], INFO)[row].astype(np.int8)),
        key=ints_of(mops["key"], 0)[is_write],
        value=ints_of(mops["value"], NEVER)[is_write],
        position=ints_of(ops["commit_ts"], NEVER)[row],
        epoch=ints_of(ops["epoch"], NEVER)[row],
        invoke_seq=ints_of(ops["invoke_seq"], 0)[row],
        complete_seq=ints_of(ops["complete_seq"], NEVER)[row],
        txn=ints_of(ops["txn"], NEVER)[row],
    )


def _writes_of(op: Int64s, outcome: Int8s) -> SourceWrites:
    """Writes of which no more is known yet than their operations, numbered inside each."""
    never = np.full(len(op), NEVER, np.int64)
    ordinal = count_so_far(codes(op), np.ones(len(op), np.bool_)) - 1
    return SourceWrites(
        op=op,
        outcome=outcome,
        key=never,
        value=never,
        position=never,
        ordinal=ordinal,
        epoch=never,
        span=np.full(len(op), -1, np.int64),
        invoke_seq=never,
        complete_seq=never,
        txn=never,
        version=never,
    )


def _least(group: Int64s, number: Int64s) -> tuple[Int64s, Int64s]:
    """Each group, ascending, with its least number."""
    order = np.lexsort((number, group))
    groups, first = np.unique(group[order], return_index=True)
    return groups, number[order][first]


def _homes(key: Int64s, span: Int64s) -> tuple[Int64s, Int64s]:
    """Each key, ascending, with its one partition; -1 if it has several, or was said to."""
    keys, least = _least(key, span)
    _, most = _least(key, -span)
    return keys, np.where(least == -most, least, -1)


def _lookup(keys: Int64s, values: Int64s, wanted: Int64s, default: int) -> Int64s:
    if len(keys) == 0:
        return np.full(len(wanted), default, np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], default)


def _ids(column: pa.ChunkedArray, texts: tuple[str, ...]) -> Int64s:
    """The place of each text in `texts`, -1 for null and for any other."""
    return ints_of(pc.index_in(column, value_set=pa.array(texts, pa.string())), -1)
