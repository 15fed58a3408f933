"""The tasks of the watermark graph: from the files of a stream's log and its source to edges, and back to events.

Edges with watermarks are kept beside the partitions in which those of the clients are inferred, so that one certificate
covers both (checkers/graph/certificate.py).
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial, reduce
from pathlib import Path

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from checkers.columns.arrow import integers
from checkers.columns.blocks import Block, by_part
from checkers.columns.facts import Facts
from checkers.columns.files import opened
from checkers.columns.index import ascending, is_kind
from checkers.columns.runs import first_of_each
from checkers.columns.spreads import Spread
from checkers.columns.table import concat, empty, take
from checkers.engine.datasets import Noted
from checkers.graph.certificate import Region
from checkers.graph.edges import NO_IMPLICIT, OPEN_END, Edges, ImplicitRw, Inference, Int32s, Members, all_edges
from checkers.graph.sightings import Report
from checkers.history.streams import Placement, StreamLog, placement_by
from checkers.history.version_ranks import read_beside
from checkers.transactions.inferred import Summary as PartitionSummary
from checkers.transactions.inferred import summary as partition_summary
from checkers.watermarks.blocks import (
    Pairs,
    block_of,
    blocks,
    by_marks,
    edges_of,
    inner_edges,
    once,
    packed,
    pairs_once,
    repeated,
)
from checkers.watermarks.edges import Links, Quiet, once_each, with_quiet
from checkers.watermarks.generations import Entered
from checkers.watermarks.nodes import marks_of, units_of
from checkers.watermarks.numbering import Contents, Numbering, Watermarks, watermarks
from checkers.watermarks.order_elsewhere import NOTHING_RECEIVED, Received, places, received
from checkers.watermarks.reads import NO_NODE, Readers
from checkers.watermarks.versions import UNKNOWN, with_partitions
from harness.core.columns import BACKFILL, NEVER, ROW, Bools, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract

# The columns of events that these tasks read.
_NAMES = ("seq", "ns", "subscriber", "session", "kind", "span", "key", "value", "position", "ordinal")


class StreamPart(Struct, frozen=True):
    """Log number `number`, and the directory of its source's operations."""

    number: int
    log: StreamLog
    source: str


class Known(Struct, frozen=True):
    """Facts that follow from all logs together: the placement, and an order of versions that no other source orders.

    `placement` is None if there is only one log, which has all the facts itself. `shared` has what tasks in one process
    have read of the source, for the tasks of other logs.
    """

    placement: Placement | None = None
    agreement: Received = NOTHING_RECEIVED
    shared: Facts = field(default_factory=Facts)


class Summary(Struct, frozen=True, kw_only=True):
    """The results for one log that the driver needs. `counts` are facts about the log, `orders` about the source."""

    marks: Watermarks
    counts: dict[str, int]
    orders: dict[str, int]
    entered: Entered  # Both are empty unless the history is one of stretches.
    passing: Entered


class Placed(Struct, frozen=True, kw_only=True):
    """The nodes and numbers of the w watermarks of all logs: those of log i begin at begin[i]."""

    begin: Int64s
    node: Int64s
    numbering: Numbering
    readers: Readers


class Detail(Struct, frozen=True, kw_only=True):
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


class Derived(Struct, frozen=True, kw_only=True):
    """The contribution of one log: edges lead from `into.op` to `into.mark`, and from `out.mark` to `out.op`.

    `quiet` has more edges, by operation; no edge is in both. `chains` are watermarks, each with the next one of its
    chain.
    """

    part: StreamPart
    chains: tuple[Int64s, Int64s]
    into: Pairs
    out: Pairs
    quiet: Quiet


class _Condensed(Struct, frozen=True):
    """The result for one block of keys. Edges are packed int64; those of `new` may repeat."""

    into: Int64s
    out: Int64s
    quiet: Quiet
    new: Int64s  # newly contained operations, once for each key
    contents: Contents
    orders: Counter[str]
    entered: Entered
    passing: Entered


def placement_of(part: StreamPart, threads: int = 1, shared: Facts | None = None) -> Placement:
    """The placement that the deliveries of one log give to the source's writes, in `threads` threads."""
    return placement_by(part.log, Path(part.source), threads=threads, shared=shared)


def received_of(part: StreamPart, contract: StreamContract, known: Known) -> Received:
    """The versions that one log shows in an order which no other source gives."""
    return received(part.number, *_read(part, contract, known), contract)


def derived(
    part: StreamPart, contract: StreamContract, known: Known, threads: int, *, is_of_stretches: bool
) -> Noted[Derived, Summary]:
    """The contribution of a log and its summary, in `threads` threads."""
    deliveries, writes = _read(part, contract, known, threads)
    marks = marks_of(deliveries, units_of(deliveries, contract), is_cut_known=contract.cut != "unknown")
    look = partial(_condensed, deliveries, writes, contract, places(known.agreement, part.number, len(writes.op)))
    parts = list(by_part(look, blocks(deliveries, writes), threads=threads))
    of_marks = partial(by_marks, count=len(marks.rows), threads=threads)
    quiet = _united([each.quiet for each in parts])
    into = concat(list(of_marks(pairs_once, [each.into for each in parts])))
    out = concat(list(of_marks(pairs_once, [each.out for each in parts])))
    into = _beside(into, quiet.into, quiet.first, len(marks.rows))
    out = _beside(out, quiet.out, quiet.last, len(marks.rows))
    torn = np.concatenate(list(of_marks(repeated, [each.new for each in parts])))
    contents = reduce(Contents.beside, (each.contents for each in parts))
    orders = sum((each.orders for each in parts), Counter[str]())
    counts = {
        "rows": int(np.count_nonzero(is_kind(deliveries.kind, (ROW, BACKFILL)))),
        "in-edges": len(into.op) + quiet.into.size(),
        "out-edges": len(out.op) + quiet.out.size(),
    }
    return Noted(
        Derived(part=part, chains=marks.pairs(), into=into, out=out, quiet=quiet),
        Summary(
            marks=watermarks(part.number, deliveries, marks, contents, torn, contract),
            counts=counts,
            orders={name: orders[name] for name in parts[0].orders},
            entered=concat([each.entered for each in parts]) if is_of_stretches else empty(Entered),
            passing=concat([each.passing for each in parts]) if is_of_stretches else empty(Entered),
        ),
    )


def of_nodes(inference: Inference, *, places: Placed) -> Noted[Inference, PartitionSummary]:
    """The same dependencies, with nodes by number."""
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
    return _noted(numbered(item, places=places))


def numbered(item: Derived, *, places: Placed, region: Region | None = None) -> Inference:
    """The edges of one log with nodes by number, chains included: those inside the region, or all that are not implied.

    Without a region the edges that real time implies are left out, by rule 2 of checkers/graph/certificate.py: an
    edge into a watermark, if the operation had ended before it; and one out of it, if the operation begins after the
    first end among all that the watermark leads to, by which the watermark has to end. The edge to that end stays, so
    ends and windows are the same.
    """
    node, quiet = places.node[places.begin[item.part.number] :], item.quiet
    columns = (item.into.op, item.out.op, quiet.into.number, quiet.out.number)
    ops = np.arange(max(int(column.max(initial=-1)) for column in columns) + 1)
    op_ends = places.numbering.of_end(_ends(Path(item.part.source), ops))
    op = _Lives(places.numbering.of_op(ops).astype(np.int32), op_ends.astype(np.int32))
    mark = _Lives(places.numbering.number.astype(np.int32)[node], places.numbering.end.astype(np.int32)[node])
    into, out = _implied_neither(item, op, mark) if region is None else _inside(item, op, mark, region)
    one, next_one = item.chains
    chains = _edges_between(mark, one, mark, next_one)
    every = [_edges_between(op, into.op, mark, into.mark), _edges_between(mark, out.mark, op, out.op)]
    every.append(take(chains, chains.source != chains.target))
    return Inference(all_edges(every), NO_IMPLICIT, Report((), Counter()), ())


class _Lives(Struct, frozen=True):
    """The number and the end of each operation, or of each watermark of a log."""

    number: Int32s
    end: Int32s


def _edges_between(one: _Lives, source: Int32s | Int64s, other: _Lives, target: Int32s | Int64s) -> Edges:
    return Edges(
        source=one.number[source],
        target=other.number[target],
        source_after=one.end[source],
        target_after=other.end[target],
        kinds=np.zeros(len(source), np.int8),
    )


def _implied_neither(item: Derived, op: _Lives, mark: _Lives) -> tuple[Pairs, Pairs]:
    """The edges into watermarks and out of them that real time does not imply."""
    into, out, quiet = item.into, item.out, item.quiet
    into = take(into, op.end[into.op] > mark.number[into.mark])
    row, place = quiet.into.below(mark.number[quiet.first], op.end[quiet.into.number])
    into = concat([into, Pairs.between(quiet.into.number[row], quiet.first[place])])
    first_end = np.full(len(mark.number), OPEN_END, np.int32)
    np.minimum.at(first_end, out.mark, op.end[out.op])
    first_end[quiet.last] = -quiet.out.highest(-op.end[quiet.out.number], -first_end[quiet.last])
    out = take(out, first_end[out.mark] > op.number[out.op])
    row, place = quiet.out.above(first_end[quiet.last], op.number[quiet.out.number])
    return into, concat([out, Pairs.between(quiet.out.number[row], quiet.last[place])])


def _inside(item: Derived, op: _Lives, mark: _Lives, region: Region) -> tuple[Pairs, Pairs]:
    """The edges into watermarks and out of them between nodes of the region."""
    is_op, is_mark = (region.has(each.number, each.end) for each in (op, mark))

    def chosen(pairs: Pairs, spread: Spread, marks: Int64s) -> Pairs:
        spread = take(spread, is_op[spread.number])
        row, place = spread.among(is_mark[marks])
        kept = take(pairs, is_op[pairs.op] & is_mark[pairs.mark])
        return concat([kept, Pairs.between(spread.number[row], marks[place])])

    quiet = item.quiet
    return chosen(item.into, quiet.into, quiet.first), chosen(item.out, quiet.out, quiet.last)


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
    deliveries, writes = _read(part, contract, known)
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

    block = block_of(deliveries, writes, op)
    edges = with_quiet(edges_of(deliveries, writes, contract, block, elsewhere), writes)
    return [of(kept(edges.into), is_into=True), of(kept(edges.out), is_into=False)]


def _read(
    part: StreamPart, contract: StreamContract, known: Known, threads: int = 1
) -> tuple[Deliveries, SourceWrites]:
    read = read_beside(
        part.log,
        Path(part.source),
        known.placement,
        names=_NAMES,
        has_times=False,
        threads=threads,
        shared=None if known.placement is None else known.shared,
    )
    return with_partitions(*read, is_position_global=contract.is_position_global)


def _condensed(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, elsewhere: Int64s, block: Block
) -> _Condensed:
    edges = inner_edges(deliveries, writes, contract, block, elsewhere)
    quiet = edges.quiet.of(writes.op[block.writes])
    return _Condensed(
        # Made distinct in each part already, which saves memory until all parts are there.
        into=once(packed(edges.into)),
        out=once(packed(edges.out)),
        quiet=quiet,
        new=packed(edges.new),
        contents=Contents.of(edges, quiet),
        orders=Counter(edges.order.counts),
        entered=_entered(edges.new, writes, block),
        passing=_entered(edges.passing, writes, block),
    )


def _entered(links: Links, writes: SourceWrites, block: Block) -> Entered:
    return Entered(mark=links.mark, op=links.op, stretch=writes.key[block.writes[links.version]])


def _united(parts: Sequence[Quiet]) -> Quiet:
    """The edges of the quiet keys of all blocks, each once: an operation may have written several keys."""
    count = len(parts[0].first)
    into, out = (concat(list(each)).united(count) for each in zip(*((one.into, one.out) for one in parts), strict=True))
    return replace(parts[0], into=into, out=out)


def _beside(pairs: Pairs, spread: Spread, marks: Int64s, count: int) -> Pairs:
    """The pairs that the spread over `marks`, of `count` watermarks, does not have."""
    place = np.full(count, -1, np.int64)
    place[marks] = np.arange(len(marks))
    return take(pairs, ~spread.has(pairs.op.astype(np.int64), place[pairs.mark], len(marks)))


def _came(links: Links, deliveries: Deliveries) -> Int64s:
    """The journal position of each edge's row; UNKNOWN for a session's opening, which is no event."""
    row = np.maximum(links.row, 0)
    is_event = (links.row >= 0) & is_kind(deliveries.kind[row], (ROW, BACKFILL)) if len(deliveries.kind) else row > 0
    return np.where(is_event, deliveries.seq[row] if len(deliveries.seq) else row, UNKNOWN)


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
