"""The tasks of the watermark graph: from the files of a stream's log and its source to edges, and back to events.

Edges with watermarks are kept beside the partitions in which those of the clients are inferred, so that one certificate
covers both (checkers/graph/certificate.py).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path

import numpy as np

from checkers.columns.arrow import integers
from checkers.columns.blocks import Block, by_part
from checkers.columns.files import opened
from checkers.columns.index import ascending, is_kind
from checkers.columns.runs import first_of_each
from checkers.columns.table import concat, empty, take
from checkers.engine.datasets import Noted
from checkers.engine.wire import Ints, carry, steps, sums
from checkers.graph.edges import NO_IMPLICIT, OPEN_END, Edges, ImplicitRw, Inference, Int32s, Members, all_edges
from checkers.graph.sightings import Report
from checkers.history.registers import Order
from checkers.history.streams import Placement, StreamLog, placement_by
from checkers.history.version_ranks import read_beside
from checkers.transactions.check import Summary as PartitionSummary
from checkers.transactions.check import summary as partition_summary
from checkers.transactions.partition import Share, infer
from checkers.watermarks.blocks import block_of, blocks, by_marks, edges_of, inner_edges, once, packed, repeated
from checkers.watermarks.edges import Links, once_each
from checkers.watermarks.generations import Entered
from checkers.watermarks.nodes import marks_of, units_of
from checkers.watermarks.numbering import Contents, Numbering, Watermarks, watermarks
from checkers.watermarks.order_elsewhere import NOTHING_RECEIVED, Received, places, received
from checkers.watermarks.reads import NO_NODE, Readers
from checkers.watermarks.versions import UNKNOWN
from harness.core.columns import BACKFILL, NEVER, ROW, Bools, Deliveries, Int8s, Int64s, SourceWrites
from harness.core.promises import StreamContract

# The columns of events that these tasks read.
_NAMES = ("seq", "ns", "subscriber", "session", "kind", "span", "key", "value", "position", "ordinal")


@dataclass(frozen=True, slots=True)
class StreamPart:
    """Log number `number`, and the directory of its source's operations."""

    number: int
    log: StreamLog
    source: str


@dataclass(frozen=True, slots=True)
class Known:
    """Facts that follow from all logs together: the placement, and an order of versions that no other source orders.

    `placement` is None if there is only one log, which has all the facts itself.
    """

    placement: Placement | None = None
    agreement: Received = NOTHING_RECEIVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The results for one log that the driver needs. `counts` are facts about the log, `orders` about the source."""

    marks: Watermarks
    counts: dict[str, int]
    orders: dict[str, int]
    entered: Entered  # Both are empty unless the history is one of stretches.
    passing: Entered


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The nodes and numbers of the w watermarks of all logs: those of log i begin at begin[i]."""

    begin: Int64s
    node: Int64s
    numbering: Numbering
    readers: Readers


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """Edges between operations and watermarks with the facts that a sentence needs, e of them.

    `mark` counts over all logs. `came` is the journal position of the event that shows the version; UNKNOWN without
    one.
    """

    is_into: bool
    op: Int64s
    mark: Int64s
    key: Int64s
    value: Int64s
    came: Int64s


@dataclass(frozen=True, slots=True)
class Pairs:
    """Operations and watermarks of one log, by their numbers in it, in four bytes each."""

    op: Int32s
    mark: Int32s

    @classmethod
    def of(cls, pairs: Int64s) -> "Pairs":
        """The pairs that those packed int64 hold (checkers/watermarks/blocks.py)."""
        return cls((pairs & 0xFFFFFFFF).astype(np.int32), (pairs >> 32).astype(np.int32))


def _of_pairs(pairs: Pairs) -> tuple[Callable[..., Pairs], tuple[object, ...]]:
    return _pairs, (steps(pairs.op), steps(pairs.mark))  # Sorted by watermark: both columns have small differences.


def _pairs(op: Ints, mark: Ints) -> Pairs:
    return Pairs(sums(op).astype(np.int32), sums(mark).astype(np.int32))


carry(Pairs, _of_pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """The contribution of one log: edges lead from `into.op` to `into.mark`, and from `out.mark` to `out.op`.

    `chains` are watermarks, each with the next one of its chain.
    """

    part: StreamPart
    chains: tuple[Int64s, Int64s]
    into: Pairs
    out: Pairs


@dataclass(frozen=True, slots=True)
class _Condensed:
    """The result for one block of keys. Edges are packed int64; those of `new` may repeat."""

    into: Int64s
    out: Int64s
    new: Int64s  # newly contained operations, once for each key
    contents: Contents
    orders: Counter[str]
    entered: Entered
    passing: Entered


def placement_of(part: StreamPart, threads: int = 1) -> Placement:
    """The placement that the deliveries of one log give to the source's writes, in `threads` threads."""
    return placement_by(part.log, Path(part.source), threads=threads)


def received_of(part: StreamPart, contract: StreamContract, known: Known) -> Received:
    """The versions that one log shows in an order which no other source gives."""
    return received(part.number, *_read(part, known), contract)


def derived(
    part: StreamPart, contract: StreamContract, known: Known, threads: int, *, is_of_stretches: bool
) -> Noted[Derived, Summary]:
    """The contribution of a log and its summary, in `threads` threads."""
    deliveries, writes = _read(part, known, threads)
    marks = marks_of(deliveries, units_of(deliveries, contract), is_cut_known=contract.cut != "unknown")
    look = partial(_condensed, deliveries, writes, contract, places(known.agreement, part.number, len(writes.op)))
    parts = list(by_part(look, blocks(deliveries, writes), threads=threads))
    of_marks = partial(by_marks, count=len(marks.rows), threads=threads)
    into = concat(list(of_marks(_pairs_once, [each.into for each in parts])))
    out = concat(list(of_marks(_pairs_once, [each.out for each in parts])))
    torn = np.concatenate(list(of_marks(repeated, [each.new for each in parts])))
    contents = reduce(Contents.beside, (each.contents for each in parts))
    orders = sum((each.orders for each in parts), Counter[str]())
    rows = int(np.count_nonzero(is_kind(deliveries.kind, (ROW, BACKFILL))))
    return Noted(
        Derived(part=part, chains=marks.pairs(), into=into, out=out),
        Summary(
            marks=watermarks(part.number, deliveries, marks, contents, torn, contract),
            counts={"rows": rows, "in-edges": len(into.op), "out-edges": len(out.op)},
            orders={name: orders[name] for name in parts[0].orders},
            entered=concat([each.entered for each in parts]) if is_of_stretches else empty(Entered),
            passing=concat([each.passing for each in parts]) if is_of_stretches else empty(Entered),
        ),
    )


def gather(parts: Sequence[Share], *, order: Order, places: Placed) -> Noted[Inference, PartitionSummary]:
    """The dependencies that follow from the shares of one partition, with nodes by number."""
    inference = infer(parts, order=order)
    edges, readers, writers = inference.edges, inference.implicit.readers, inference.implicit.writers
    source, source_after, has_source = _renumbered(places, edges.source, edges.source_after)
    target, target_after, has_target = _renumbered(places, edges.target, edges.target_after)
    renumbered = take(Edges(source, target, source_after, target_after, edges.kinds), has_source & has_target)
    reader, reader_after, has_reader = _renumbered(places, readers.op, readers.after)
    writer, writer_after, _ = _renumbered(places, writers.op, writers.after)
    implicit = ImplicitRw(
        take(Members(readers.group, reader, reader_after), has_reader), Members(writers.group, writer, writer_after)
    )
    return _noted(replace(inference, edges=renumbered, implicit=implicit))


def required(item: Derived, *, places: Placed) -> Noted[Inference, PartitionSummary]:
    """The edges of one log that certificates need."""
    return _noted(numbered(item, places=places, is_whole=False))


def numbered(item: Derived, *, places: Placed, is_whole: bool = True) -> Inference:
    """The edges of one log with nodes by number, chains included.

    Without `is_whole` the edges that real time implies are left out, by rule 2 of checkers/graph/certificate.py: an
    edge into a watermark, if the operation had ended before it; and one out of it, if the operation begins after the
    first end among all that the watermark leads to, by which the watermark has to end. The edge to that end stays, so
    ends and windows are the same.
    """
    node = places.node[places.begin[item.part.number] :]
    ops = np.arange(max(int(pairs.op.max(initial=-1)) for pairs in (item.into, item.out)) + 1)
    numbers = places.numbering.of_op(ops).astype(np.int32)
    ends = places.numbering.of_end(_ends(Path(item.part.source), ops)).astype(np.int32)
    mark_numbers = places.numbering.number.astype(np.int32)[node]
    mark_ends = places.numbering.end.astype(np.int32)[node]
    into, out = item.into, item.out
    if not is_whole:
        into = take(into, ends[into.op] > mark_numbers[into.mark])
        out = take(out, _first_ends(out, ends[out.op], len(node))[out.mark] > numbers[out.op])
    one, next_one = item.chains
    edges = (
        Edges(numbers[into.op], mark_numbers[into.mark], ends[into.op], mark_ends[into.mark], _no_kinds(into.op)),
        Edges(mark_numbers[out.mark], numbers[out.op], mark_ends[out.mark], ends[out.op], _no_kinds(out.op)),
        Edges(mark_numbers[one], mark_numbers[next_one], mark_ends[one], mark_ends[next_one], _no_kinds(one)),
    )
    every = all_edges([*edges[:2], take(edges[2], edges[2].source != edges[2].target)])
    return Inference(every, NO_IMPLICIT, Report((), Counter()), ())


def _noted(inference: Inference) -> Noted[Inference, PartitionSummary]:
    """The inference with the summary that the driver needs.

    A watermark that leads to many operations with an end ends by the first of these ends: one edge is enough for that.
    """
    every = partition_summary(inference)
    edges = every.open_sources
    has_end = edges.target_after != OPEN_END
    rows = np.flatnonzero(has_end)
    rows = rows[ascending(edges.source[rows].astype(np.int64), edges.target_after[rows].astype(np.int64))]
    is_kept = ~has_end
    is_kept[rows[first_of_each(edges.source[rows])]] = True
    return Noted(inference, replace(every, open_sources=take(edges, is_kept)))


def details(
    part: StreamPart, *, contract: StreamContract, known: Known, begin: Int64s, op: Int64s, mark: Int64s
) -> list[Detail]:
    """The edges of one log from those operations, which ascend, into those watermarks, and out of these to them."""
    deliveries, writes = _read(part, known)
    elsewhere = places(known.agreement, part.number, len(writes.op))
    first = int(begin[part.number])

    def of(links: Links, *, is_into: bool) -> Detail:
        return Detail(
            is_into=is_into,
            op=links.op,
            mark=links.mark + first,
            key=writes.key[links.version],
            value=writes.value[links.version],
            came=_came(links, deliveries),
        )

    def kept(links: Links) -> Links:
        return once_each(take(links, np.isin(links.op, op) & np.isin(links.mark + first, mark)))

    edges = edges_of(deliveries, writes, contract, block_of(deliveries, writes, op), elsewhere)
    return [of(kept(edges.into), is_into=True), of(kept(edges.out), is_into=False)]


def _read(part: StreamPart, known: Known, threads: int = 1) -> tuple[Deliveries, SourceWrites]:
    return read_beside(part.log, Path(part.source), known.placement, names=_NAMES, has_times=False, threads=threads)


def _condensed(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, elsewhere: Int64s, block: Block
) -> _Condensed:
    edges = inner_edges(deliveries, writes, contract, block, elsewhere)
    return _Condensed(
        # Made distinct in each part already, which saves memory until all parts are there.
        into=once(packed(edges.into)),
        out=once(packed(edges.out)),
        new=packed(edges.new),
        contents=Contents.of(edges),
        orders=Counter(edges.order.counts),
        entered=_entered(edges.new, writes, block),
        passing=_entered(edges.passing, writes, block),
    )


def _entered(links: Links, writes: SourceWrites, block: Block) -> Entered:
    return Entered(mark=links.mark, op=links.op, stretch=writes.key[block.writes[links.version]])


def _pairs_once(pairs: Int64s) -> Pairs:
    return Pairs.of(once(pairs))


def _came(links: Links, deliveries: Deliveries) -> Int64s:
    """The journal position of each edge's row; UNKNOWN for a session's opening, which is no event."""
    row = np.maximum(links.row, 0)
    is_event = (links.row >= 0) & is_kind(deliveries.kind[row], (ROW, BACKFILL)) if len(deliveries.kind) else row > 0
    return np.where(is_event, deliveries.seq[row] if len(deliveries.seq) else row, UNKNOWN)


def _first_ends(out: Pairs, end: Int32s, count: int) -> Int32s:
    """For each of `count` watermarks the first end among the operations that it leads to; OPEN_END if there is none."""
    result = np.full(count, OPEN_END, np.int32)
    begins = np.flatnonzero(first_of_each(out.mark))
    if len(begins):
        result[out.mark[begins]] = np.minimum.reduceat(end, begins)
    return result


def _no_kinds(like: Int32s | Int64s) -> Int8s:
    return np.zeros(len(like), np.int8)


def _ends(source: Path, op: Int64s) -> Int64s:
    """The ends of those operations, which are the first ones of the history; OPEN_END for those without."""
    result = np.full(len(op), OPEN_END, np.int64)
    with opened(source / "ops.parquet") as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=["index", "after"], use_threads=False)
            index, after = integers(table["index"]), integers(table["after"], NEVER)
            inside = index < len(op)
            result[index[inside]] = np.minimum(after[inside], OPEN_END)
    return result


def _renumbered(places: Placed, op: Int32s, end: Int32s) -> tuple[Int32s, Int32s, Bools]:
    """Numbers and ends of operations, with those of their node for readers; and True for those that have a place."""
    numbering = places.numbering
    number, after = numbering.of_op(op.astype(np.int64)), numbering.of_end(end.astype(np.int64))
    is_reader, node = places.readers.of(op)
    is_placed = is_reader & (node != NO_NODE)
    number[is_placed], after[is_placed] = numbering.number[node[is_placed]], numbering.end[node[is_placed]]
    return number.astype(np.int32), after.astype(np.int32), is_placed | ~is_reader
