"""A certificate, slice by slice, that a graph of any size has no cycle; where it has none, the rest to search.

Theory of operation. Real time orders operations at no cost: u precedes v iff end(u) <= index(v). Cycles of dependencies
and real time are sought.
1. A shortest cycle of four or more nodes has no chord, so nodes of it that are not neighbours overlap in time, and the
   lifetimes of its edges, from the lesser index to the greater end, have a moment in common (intervals that meet in
   pairs meet in a point). So the set of all edges that live at some moment contains the whole cycle. Shorter cycles:
   any two edges share a node.
2. A *slice* is a range of indexes. It gets every edge whose lifetime touches it. An edge that real time implies is left
   out; one that real time contradicts is a cycle by itself, and needs no slice.
3. In a slice every node gets a moment: at least its index, and later than those of all its sources. If such moments
   exist before every node's end, they are an order that obeys all edges and real time: no cycle.
4. Otherwise let moments grow for a limited number of rounds. Each edge that is still unmet spans an interval of moments
   (target to source), and so does each node that is past its end (end to moment). A cycle cannot leave the union of
   these: at each moment that it passes backwards, one of its steps goes back. Nodes inside are suspects.
5. A *window* is the hull of the lifetimes of suspects, or of an edge by rule 2. Every node of every cycle, shortest or
   not, has a lifetime that touches a window. (Take a cycle through x. If something on it lies wholly before or after x,
   the part of the cycle from there to x closes with real time; if not, all of it overlaps x. In both cases the nodes
   that overlap x, with x or with two nodes around it, contain a shortest cycle, whose window touches x.) So the
   residual graph is that of all nodes which touch a window, with all their edges, the implied ones too.
6. An operation without a certain end must still precede its successors: its end is the least end of theirs. One
   without successors is in no cycle.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.runs import codes, expand, first_of_each, groups, meets, merged, ordered, spans
from checkers.columns.table import concat, empty, ordered_by, take
from checkers.graph.edges import OPEN_END, Edges, ImplicitRw, Inference, Int32s, all_edges
from harness.core.columns import Bools, Int64s

SLICE_IDS: Final = 262_144
_ROUNDS: Final = 64
# A moment is index << _SHIFT plus the steps taken since: chains of concurrent operations cost no index.
_SHIFT: Final = 20


class Ends(Struct, frozen=True):
    """Operations without a certain end that have successors, ascending, and their ends by rule 6.

    `last` is the greatest index of all operations: moments after it do not matter.
    """

    op: Int64s
    end: Int64s
    last: int


class Windows(Struct, frozen=True):
    """Half-open intervals of indexes, ascending, disjoint."""

    start: Int64s
    stop: Int64s


class Region(Struct, frozen=True):
    """The windows and the ends of rule 6, which say together which nodes the residual graph has."""

    windows: Windows
    known: Ends

    def has(self, op: Int32s, after: Int32s) -> Bools:
        """True for operations, with those ends in the history, that touch a window."""
        return _touches(op, _end(op, after, self.known), self.windows)


class SliceShare(Struct, frozen=True):
    """The edges and windows that one partition of keys contributes to one slice."""

    edges: Edges
    windows: Windows


def open_sources(inference: Inference) -> Edges:
    """Edges from operations without a certain end, for rule 6. Implicit ones have none: their sources are reads."""
    return take(inference.edges, inference.edges.source_after == OPEN_END)


def last_index(inference: Inference) -> int:
    """The greatest index of the partition's operations; 0 if it has none."""
    edges, implicit = inference.edges, inference.implicit
    columns = (edges.source, edges.target, implicit.readers.op, implicit.writers.op)
    return max(int(column.max(initial=0)) for column in columns)


def ends(parts: Sequence[Edges], *, last: int) -> Ends:
    """The ends of operations without a certain end by rule 6; `parts` hold all edges that start at such operations."""
    edges = all_edges(parts)
    edges = _leading_on(ordered_by(edges, "source"))
    begins = np.flatnonzero(first_of_each(edges.source))
    op, end = edges.source[begins].astype(np.int64), np.full(len(begins), OPEN_END, np.int64)
    pending = np.flatnonzero(edges.target_after == OPEN_END)
    place, _ = _found(op, edges.target[pending])  # All are found: each has an edge of its own.
    target_end = edges.target_after.astype(np.int64)
    while True:
        target_end[pending] = end[place]
        lower = np.minimum.reduceat(target_end, begins)
        if np.array_equal(lower, end):
            return Ends(op, end, last)
        end = lower


def _leading_on(edges: Edges) -> Edges:
    """The edges, which ascend by source, without those to open-ended operations that have no edge of their own.

    Removing edges can make more of these, so only the edges to operations that just lost their last one are removed
    next: a chain of n such operations takes n steps, and each step its own edges. No cycle passes through a removed
    edge.
    """
    is_first = first_of_each(edges.source)
    source, begins = np.cumsum(is_first) - 1, np.flatnonzero(is_first)
    left = np.diff(begins, append=len(source))  # The number of edges that each source still has.
    pending = np.flatnonzero(edges.target_after == OPEN_END)
    place, leads = _found(edges.source[begins], edges.target[pending])
    removed, pending = pending[~leads], pending[leads]
    order, target = ordered(place[leads])
    is_kept = np.ones(len(source), np.bool_)
    while len(removed):
        is_kept[removed] = False
        lost, count = np.unique(source[removed], return_counts=True)
        left[lost] -= count
        start, stop = spans(target, lost[left[lost] == 0])
        removed = pending[order[expand(start, stop - start)]]
    return take(edges, is_kept)


def route(inference: Inference, *, known: Ends, slice_ids: int) -> Iterator[tuple[int, SliceShare]]:
    """Pairs of a slice and its edges from one partition, by rules 2 and 6.

    Windows that are already known go to slice 0.
    """
    stored, (backward, stale) = inference.edges, _backward(_ended(inference.implicit, known))
    (certain, pending), (more_certain, more_pending) = (_undecided(edges, known) for edges in (stored, backward))
    windows = union([stale, certain, more_certain])
    if len(windows.start):
        yield 0, SliceShare(all_edges([]), windows)
    edges = all_edges([pending, more_pending])
    lifetime = _hulls(edges)
    first, last = lifetime.start // slice_ids, np.minimum(lifetime.stop - 1, known.last) // slice_ids
    at, row = expand(first, last - first + 1), np.repeat(np.arange(len(first)), last - first + 1)
    for number, rows in enumerate(groups(at, known.last // slice_ids + 1)):
        if len(rows):
            yield number, SliceShare(take(edges, row[rows]), union([]))


def certify(shares: Sequence[SliceShare]) -> Windows:
    """The windows of one slice: none if it has no cycle. Cost: about ten passes over the edges."""
    edges = all_edges([share.edges for share in shares])
    index, place = codes(np.concatenate((edges.source, edges.target)).astype(np.int64))
    source, target = place[: len(edges.source)], place[len(edges.source) :]
    end = np.zeros(len(index), np.int64)
    end[source], end[target] = edges.source_after, edges.target_after
    moment = index << _SHIFT
    is_unmet = _advance(moment, source, target)
    past = np.flatnonzero(moment >= end << _SHIFT)
    start, stop = merged(
        np.concatenate((moment[target[is_unmet]], end[past] << _SHIFT)),
        np.concatenate((moment[source[is_unmet]], moment[past])) + 1,
    )
    group = np.searchsorted(stop, moment, side="right")
    suspect = np.flatnonzero(meets(moment, moment + 1, of_start=start, of_stop=stop))
    hull_start = np.full(len(stop), OPEN_END, np.int64)
    hull_stop = np.zeros(len(stop), np.int64)
    np.minimum.at(hull_start, group[suspect], index[suspect])
    np.maximum.at(hull_stop, group[suspect], _stop(index, end)[suspect])
    return union([*(share.windows for share in shares), Windows(hull_start, hull_stop)])


def union(parts: Sequence[Windows]) -> Windows:
    """The union of all windows."""
    every = concat([empty(Windows), *parts])
    return Windows(*merged(every.start, every.stop))


def before(windows: Windows, stop: int) -> Windows:
    """The parts of the windows below `stop`."""
    kept = take(windows, windows.start < stop)
    return Windows(kept.start, np.minimum(kept.stop, stop))


def inside(inference: Inference, *, windows: Windows, known: Ends) -> Edges:
    """The edges of one partition between nodes that touch a window, by rule 5: the residual graph."""
    implicit = _implicit_inside(inference.implicit, windows, known)
    first, stop = implicit.writer_spans()
    stored = take(inference.edges, _is_inside(inference.edges, windows, known))
    return all_edges([stored, implicit.pairs(first=first, count=stop - first)])


def inside_count(inference: Inference, *, windows: Windows, known: Ends) -> int:
    """An upper bound on the number of edges that `inside` returns, without building them."""
    first, stop = _implicit_inside(inference.implicit, windows, known).writer_spans()
    return int(np.count_nonzero(_is_inside(inference.edges, windows, known))) + int((stop - first).sum())


def _backward(implicit: ImplicitRw) -> tuple[Edges, Windows]:
    """The implicit edges that real time does not imply, and windows for those that it contradicts.

    Writers are sorted by index. Those invoked after a reader's end follow by real time. A prefix of the rest, all of
    which ended before the reader began, needs only one window: that of the first, which contains those of the others.
    """
    readers, writers = implicit.readers, implicit.writers
    first, _ = implicit.writer_spans()
    # Groups in the high half make one ascending column of all groups' indexes.
    high = np.int64(1) << 32
    writer_base, reader_base = writers.group * high, readers.group * high
    due = np.searchsorted(writer_base + writers.op, reader_base + readers.after)
    reach = np.maximum.accumulate(writer_base + writers.after)
    live = np.clip(np.searchsorted(reach, reader_base + readers.op, side="right"), first, due)
    stale = np.flatnonzero(live > first)
    windows = merged(writers.op[first[stale]].astype(np.int64), readers.after[stale].astype(np.int64))
    return implicit.pairs(first=live, count=due - live), Windows(*windows)


def _hulls(edges: Edges) -> Windows:
    """The lifetimes of edges, possibly overlapping."""
    start = np.minimum(edges.source, edges.target).astype(np.int64)
    stop = np.maximum(_stop(edges.source, edges.source_after), _stop(edges.target, edges.target_after))
    return Windows(start, stop)


def _stop(op: Int32s | Int64s, end: Int32s | Int64s) -> Int64s:
    """The ends of lifetimes, which include the operation's own index even if rule 6 gives it an earlier end."""
    return np.maximum(end.astype(np.int64), op.astype(np.int64) + 1)


def _end(op: Int32s, after: Int32s, known: Ends) -> Int32s:
    """The ends of operations by rule 6; OPEN_END for those from which no path leads to an operation with an end."""
    result = after.copy()
    rows = np.flatnonzero(after == OPEN_END)
    place, is_known = _found(known.op, op[rows])
    result[rows] = np.where(is_known, np.append(known.end, OPEN_END)[place], OPEN_END)
    return result


def _found(ascending: Int32s | Int64s, op: Int32s) -> tuple[Int64s, Bools]:
    """The places of operations in an ascending array, and True for those that are in it."""
    place = np.searchsorted(ascending, op)
    is_there: Bools = np.append(ascending, -1)[place] == op
    return place, is_there


def _undecided(edges: Edges, known: Ends) -> tuple[Windows, Edges]:
    """Windows of edges that are cycles by themselves; and the edges that slices decide, with the ends of rule 6.

    If no path leads from an operation to one with an end, all cycles through it are of operations without an end. An
    operation without a successor is in no cycle.
    """
    source_after = _end(edges.source, edges.source_after, known)
    target_after = _end(edges.target, edges.target_after, known)
    is_alive = (target_after != OPEN_END) | (source_after == OPEN_END)
    endless = np.flatnonzero(is_alive & (target_after == OPEN_END))
    is_alive[endless] = _found(known.op, edges.target[endless])[1]
    # Certain cycles come first: by rule 6 an operation may have to end before it begins, which would imply its edges.
    is_certain = (target_after <= edges.source) | (target_after == OPEN_END)
    is_pending = is_alive & ~is_certain & (source_after > edges.target)
    ended = replace(edges, source_after=source_after, target_after=target_after)
    return _hulls(take(ended, is_alive & is_certain)), take(ended, is_pending)


def _ended(implicit: ImplicitRw, known: Ends) -> ImplicitRw:
    """The implicit edges with the ends of rule 6, without writers that are in no cycle. All readers have an end."""
    writers = replace(implicit.writers, after=_end(implicit.writers.op, implicit.writers.after, known))
    return ImplicitRw(implicit.readers, take(writers, writers.after != OPEN_END))


def _touches(op: Int32s, end: Int32s, windows: Windows) -> Bools:
    return meets(op.astype(np.int64), _stop(op, end), of_start=windows.start, of_stop=windows.stop)


def _is_inside(edges: Edges, windows: Windows, known: Ends) -> Bools:
    source_end = _end(edges.source, edges.source_after, known)
    target_end = _end(edges.target, edges.target_after, known)
    return _touches(edges.source, source_end, windows) & _touches(edges.target, target_end, windows)


def _implicit_inside(implicit: ImplicitRw, windows: Windows, known: Ends) -> ImplicitRw:
    """The readers and writers that touch a window, with the ends from the history."""
    readers, writers = implicit.readers, implicit.writers
    end = _end(writers.op, writers.after, known)
    is_inside = _touches(writers.op, end, windows) & (end != OPEN_END)
    return ImplicitRw(take(readers, _touches(readers.op, readers.after, windows)), take(writers, is_inside))


def _advance(moment: Int64s, source: Int64s, target: Int64s) -> Bools:
    """Move each node's moment past its sources, in place. Returns True for edges still unmet after the last round."""
    active = np.arange(len(source))
    for _ in range(_ROUNDS):
        due = moment[source[active]] + 1
        late = due > moment[target[active]]
        if not late.any():
            break
        later = target[active[late]]
        np.maximum.at(moment, later, due[late])
        is_later = np.zeros(len(moment), np.bool_)
        is_later[later] = True
        active = np.flatnonzero(is_later[source])  # Only edges from a node that got later can have become late.
    result: Bools = moment[source] >= moment[target]
    return result
