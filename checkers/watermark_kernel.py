"""What each task of the watermark graph does: a stream's log beside its source, from files to edges and back to events.

Edges with watermarks join those of the client in the partitions in which these are inferred, so that one certificate
covers both (checkers/slices.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkers.chunks import Chunk, Source
from checkers.edges import OPEN_END, Edges, Int32s, Tail, all_edges
from checkers.files import DAMAGE, damaged, ints_of
from checkers.register_order import Order
from checkers.shares import Share, infer, shares
from checkers.stream_chunks import Placement, StreamLog, placed, read_deliveries, read_writes, told_by
from checkers.stream_ranks import read_ranked
from checkers.versions import Inference
from checkers.watermark_bounds import Numbering, Watermarks, watermarks
from checkers.watermark_edges import Links, WatermarkEdges, watermark_edges
from checkers.watermark_versions import UNKNOWN
from harness.core.columns import BACKFILL, NEVER, OK, READ, ROW, Bools, Deliveries, Int8s, Int64s, SourceWrites
from harness.core.promises import StreamContract

NO_NODE = -1


@dataclass(frozen=True, slots=True)
class StreamPart:
    """The log of that number, and the directory of the operations that stand beside it."""

    number: int
    log: StreamLog
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the driver must know of one log. `counts` are facts about it, `orders` about the source."""

    marks: Watermarks
    counts: dict[str, int]
    orders: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where the w watermarks of all logs stand: those of log i begin at begin[i]."""

    begin: Int64s
    node: Int64s
    numbering: Numbering
    readers: "Readers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Operations that only read, as of a position: by `op`, ascending, the node of the watermarks of that position.

    Where no watermark has it, that is NO_NODE: such a read has no place in real time, and none here.
    """

    op: Int64s
    node: Int64s

    def of(self, op: Int32s) -> tuple[Bools, Int64s]:
        """Which of those operations are readers, and their nodes."""
        if not len(self.op):
            return np.zeros(len(op), np.bool_), np.full(len(op), NO_NODE, np.int64)
        at = np.minimum(np.searchsorted(self.op, op), len(self.op) - 1)
        is_reader: Bools = self.op[at] == op
        return is_reader, np.where(is_reader, self.node[at], NO_NODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """Edges between operations and watermarks with all that a sentence needs, e of them.

    `mark` counts over all logs. `came` is the journal position of the event that shows the version, UNKNOWN if none.
    """

    is_into: bool
    op: Int64s
    mark: Int64s
    key: Int64s
    value: Int64s
    came: Int64s


def placement_of(part: StreamPart) -> Placement:
    """What the deliveries of one log tell of the source."""
    return told_by(part.log, Path(part.source))


def summary(part: StreamPart, contract: StreamContract, known: Placement) -> Summary:
    """What the driver must know of one log."""
    deliveries, _, edges = _derived(part, contract, known)
    is_event = np.isin(deliveries.kind, (ROW, BACKFILL))
    return Summary(
        marks=watermarks(part.number, deliveries, edges, contract),
        counts={"rows": int(is_event.sum()), "in-edges": len(edges.into.op), "out-edges": len(edges.out.op)},
        orders=edges.order.counts,
    )


def route(
    item: Source | StreamPart,
    *,
    partitions: int,
    nothing: int,
    contract: StreamContract,
    known: Placement,
    places: Placed,
) -> Iterator[tuple[int, Share | Edges]]:
    """A chunk's share of each partition of keys; of a stream, its edges, by number, for one of the partitions."""
    if isinstance(item, StreamPart):
        yield item.number % partitions, _numbered(item, contract, known, places)
    else:
        yield from shares(item, partitions=partitions, nothing=nothing)


def gather(parts: Sequence[Share | Edges], *, order: Order, places: Placed) -> Inference:
    """All that follows from the shares of one partition, by number, with the edges of streams that were sent there."""
    inference = infer([part for part in parts if isinstance(part, Share)], order=order)
    streams = [part for part in parts if isinstance(part, Edges)]
    edges, tail = inference.edges, inference.tail
    sources = _both(places, edges.source, edges.source_after)
    targets = _both(places, edges.target, edges.target_after)
    numbered = Edges(sources[0], targets[0], sources[1], targets[1], edges.kinds).only(sources[2] & targets[2])
    reader, writer = _both(places, tail.reader, tail.reader_after), _both(places, tail.writer, tail.writer_after)
    newer = Tail(
        tail.reader_group[reader[2]],
        reader[0][reader[2]],
        reader[1][reader[2]],
        tail.writer_group,
        writer[0],
        writer[1],
    )
    return replace(inference, edges=all_edges([numbered, *streams]), tail=newer)


def as_of(source: Source) -> tuple[Int64s, Int64s]:
    """The operations of a chunk that only read, and did so as of a position: with these positions, ascending."""
    if not isinstance(source, Chunk):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    table = _row_group(Path(source.directory) / "ops.parquet", source.group, ["index", "outcome", "read_ts"])
    if table["read_ts"].null_count == table.num_rows:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    steps = _row_group(Path(source.directory) / "mops.parquet", source.group, ["op", "f"])
    index, position = ints_of(table["index"], -1), ints_of(table["read_ts"], NEVER)
    writing = ints_of(steps["op"], -1)[ints_of(steps["f"], READ) != READ]
    is_meant = (ints_of(table["outcome"], OK) == OK) & (position != NEVER) & ~np.isin(index, writing)
    return index[is_meant], position[is_meant]


def details(
    part: StreamPart, *, contract: StreamContract, known: Placement, begin: Int64s, op: Int64s, mark: Int64s
) -> tuple[Detail, Detail]:
    """The edges of one log between those operations and those watermarks: into these, and out of them."""
    deliveries, writes, edges = _derived(part, contract, known)
    first = int(begin[part.number])

    def of(links: Links, *, is_into: bool) -> Detail:
        kept = links.only(np.isin(links.op, op) & np.isin(links.mark + first, mark))
        return Detail(
            is_into=is_into,
            op=kept.op,
            mark=kept.mark + first,
            key=writes.key[kept.version],
            value=writes.value[kept.version],
            came=_came(kept, deliveries),
        )

    return of(edges.into, is_into=True), of(edges.out, is_into=False)


def invoked_before(chunk: Chunk, *, seq: Int64s) -> Int64s:
    """How many operations of a chunk had been invoked before each of those journal positions, which ascend."""
    table = _row_group(Path(chunk.directory) / "ops.parquet", chunk.group, ["invoke_seq"])
    return np.searchsorted(np.sort(ints_of(table["invoke_seq"], NEVER)), seq)


def _row_group(path: Path, group: int, columns: list[str]) -> pa.Table:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read_row_group(group, columns=columns, use_threads=False)
    except DAMAGE as problem:
        raise damaged(path, problem) from problem


def _derived(
    part: StreamPart, contract: StreamContract, known: Placement
) -> tuple[Deliveries, SourceWrites, WatermarkEdges]:
    deliveries, source = read_deliveries(part.log), Path(part.source)
    writes = read_ranked(source, placed(read_writes(source), known))
    return deliveries, writes, watermark_edges(deliveries, writes, contract)


def _came(links: Links, deliveries: Deliveries) -> Int64s:
    """The journal position of each edge's row; a session's opening shows nothing itself."""
    row = np.maximum(links.row, 0)
    is_event = (links.row >= 0) & np.isin(deliveries.kind[row], (ROW, BACKFILL)) if len(deliveries.kind) else row > 0
    return np.where(is_event, deliveries.seq[row] if len(deliveries.seq) else row, UNKNOWN)


def _numbered(part: StreamPart, contract: StreamContract, known: Placement, places: Placed) -> Edges:
    """The edges of one log by number, chains included."""
    _, _, edges = _derived(part, contract, known)
    node = places.node[places.begin[part.number] :]
    number, end = places.numbering.number, places.numbering.end
    ops = np.unique(np.concatenate((edges.into.op, edges.out.op)))
    after = _ends(Path(part.source), ops)
    pairs = edges.marks.pairs()

    def op(links: Links) -> tuple[Int64s, Int64s]:
        return places.numbering.of_op(links.op), places.numbering.of_end(after[np.searchsorted(ops, links.op)])

    def mark(numbers: Int64s) -> tuple[Int64s, Int64s]:
        return number[node[numbers]], end[node[numbers]]

    return all_edges(
        [
            _edges(op(edges.into), mark(edges.into.mark)),
            _edges(mark(edges.out.mark), op(edges.out)),
            _edges(mark(pairs[0]), mark(pairs[1])),
        ]
    )


def _edges(source: tuple[Int64s, Int64s], target: tuple[Int64s, Int64s]) -> Edges:
    kinds: Int8s = np.zeros(len(source[0]), np.int8)
    columns = [each.astype(np.int32) for each in (source[0], target[0], source[1], target[1])]
    edges = Edges(columns[0], columns[1], columns[2], columns[3], kinds)
    return edges.only(edges.source != edges.target)


def _ends(source: Path, op: Int64s) -> Int64s:
    """The ends of those operations, ascending; OPEN_END for those without."""
    result = np.full(len(op), OPEN_END, np.int64)
    path = source / "ops.parquet"
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=["index", "after"], use_threads=False)
                index, after = ints_of(table["index"], -1), ints_of(table["after"], NEVER)
                at = np.searchsorted(op, index)
                inside = np.flatnonzero(at < len(op))
                inside = inside[op[at[inside]] == index[inside]]
                result[at[inside]] = np.minimum(after[inside], OPEN_END)
    except DAMAGE as problem:
        raise damaged(path, problem) from problem
    return result


def _both(places: Placed, op: Int32s, end: Int32s) -> tuple[Int32s, Int32s, Bools]:
    """Numbers and ends of operations, those of readers by their nodes; and which of them have a place."""
    numbering = places.numbering
    number, after = numbering.of_op(op.astype(np.int64)), numbering.of_end(end.astype(np.int64))
    is_reader, node = places.readers.of(op)
    is_placed = is_reader & (node != NO_NODE)
    number[is_placed], after[is_placed] = numbering.number[node[is_placed]], numbering.end[node[is_placed]]
    return number.astype(np.int32), after.astype(np.int32), is_placed | ~is_reader
