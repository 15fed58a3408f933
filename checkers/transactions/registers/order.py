"""The order of a register's versions, from each source that can give one.

Theory of operation.
1. The *initial state* comes before every version; that needs no edge here.
2. *Writes follow reads*: what a transaction wrote comes after what it read.
3. *Commits*: final writes in the order that the system itself reports. Writes at one position have none among them, but
   all come after those at lower ones.
4. *Process* and *real time*: if a transaction that left version v ended before another began that met version w,
   v comes before w. For real time all pairs count: v before w iff the least end of those that left v is at most the
   greatest index of those that met w. Not all pairs are kept, but paths over those that are kept reach the same
   versions: from v, in the order of ends, to the next version u that was last met after v's end, and to all versions
   that were met before u's end.
5. A source that is *given* orders versions for every model. If it closes a cycle of versions, that is an anomaly, and
   the source is not used for that register. Source: jepsen.rw-register.
6. An order that is only *timed* holds for models with process order or real time. Were v not before w, dependencies
   would lead from the second transaction to the first: together with the order of time a cycle with one rw. So a cycle
   with such an edge proves no more than if the edge were an rw followed by the order of time. A value without a known
   writer has no place in a timed order, as the history lacks its write.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns.runs import codes, distinct, expand, next_places, ordered
from checkers.columns.table import concat, distinct_by, empty, ordered_by, take
from checkers.graph.edges import OPEN_END, Int32s
from checkers.graph.paths import components, cycle_labels
from checkers.graph.sightings import Sighting, seen
from checkers.history.registers import Order, Trust
from checkers.transactions.registers.rows import ABSENT, without
from checkers.transactions.registers.versions import Registers
from harness.core.columns import FAIL, NEVER, OK, Bools, Int64s

_HIGH: Final = 32  # The register is in the high bits and an index in the low ones, so one column sorts by both.


class Before(Struct, frozen=True):
    """Pairs of versions: `earlier[i]` comes before `later[i]`. Columns of shape (n,), no pair twice."""

    earlier: Int64s
    later: Int64s


class VersionCycle(Struct, frozen=True):
    """Versions of one register in a cycle, each before the next, and the source of order that closed it."""

    versions: Int64s
    source: str


class Orders(Struct, frozen=True):
    """The known pairs for every model, those by process order, those by real time; and the cycles of versions."""

    given: Before
    process: Before
    real_time: Before
    cycles: tuple[VersionCycle, ...]


def orders(registers: Registers, order: Order) -> Orders:
    """The order of all versions by those sources."""
    given, cycles = empty(Before), list[VersionCycle]()
    for source, more in _given(registers, order):
        new, found = _without_cycles(registers, given, more, source)
        given = union(given, new)
        cycles += found
    is_included = _has_writer(registers)
    return Orders(
        given,
        by_process(registers, is_included) if order.process is Trust.TIMED else empty(Before),
        by_real_time(registers, is_included) if order.real_time is Trust.TIMED else empty(Before),
        tuple(cycles),
    )


def _given(registers: Registers, order: Order) -> Iterator[tuple[str, Before]]:
    everything = np.ones(registers.size, np.bool_)
    if order.commits:
        yield "commits", by_commits(registers)
    if order.writes_follow_reads:
        yield "writes-follow-reads", by_reads(registers)
    if order.process is Trust.GIVEN:
        yield "process", by_process(registers, everything)
    if order.real_time is Trust.GIVEN:
        yield "real-time", by_real_time(registers, everything)


def _has_writer(registers: Registers) -> Bools:
    """True for the versions whose writer is known and may have happened."""
    result: Bools = registers.is_vertex[registers.writer[:-1]]
    result[registers.count :] = False  # The initial state comes first, whenever it was read.
    return result


def uncrowded(registers: Registers) -> tuple[Registers, tuple[Sighting, ...]]:
    """The registers without those of which too many writes share their positions, and a sighting of these."""
    touches, (rows, _, _, crowded) = registers.rows.touches, _committed(registers)
    if not len(crowded):
        return registers, ()
    rows = rows[np.isin(registers.touch_code[rows], crowded)]
    found = seen("equal-commits", len(crowded), op=touches.op[rows].astype(np.int64), key=touches.key[rows])
    return Registers(without(registers.rows, registers.keys[crowded])), found


def by_commits(registers: Registers) -> Before:
    """The pairs of final writes at neighbouring positions. Equal positions have no order."""
    rows, one, other, _ = _committed(registers)
    return _pairs(registers, registers.write_version[rows[one]], registers.write_version[rows[other]])


def _committed(registers: Registers) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """The touches with final writes and positions, in the order of commits; and what `next_places` says of them.

    An unclear write counts only if a read shows it: with a position alone it may have failed.
    """
    touches = registers.rows.touches
    is_read = np.zeros(registers.size + 1, np.bool_)
    is_read[registers.read_version[touches.outcome == OK]] = True
    is_read[registers.odd_version] = True
    has_happened = (touches.outcome == OK) | ((touches.outcome != FAIL) & is_read[registers.write_version])
    rows = np.flatnonzero((registers.write_version >= 0) & (touches.commit != NEVER) & has_happened)
    rows = rows[np.lexsort((touches.commit[rows], registers.touch_code[rows]))]
    return rows, *next_places(registers.touch_code[rows], touches.commit[rows])


def by_reads(registers: Registers) -> Before:
    """The pairs of what a transaction read and what it wrote."""
    touches = registers.rows.touches
    rows = np.flatnonzero((touches.outcome == OK) & (touches.read != ABSENT) & (touches.write != ABSENT))
    return _pairs(registers, registers.read_version[rows], registers.write_version[rows])


def by_process(registers: Registers, is_included: Bools) -> Before:
    """The pairs of the version that a process left in a register, and the one that it met there the next time."""
    touches = registers.rows.touches
    rows = np.flatnonzero((touches.outcome == OK) & is_included[registers.last] & is_included[registers.first])
    _, process = codes(touches.process[rows])
    pair = process * max(1, len(registers.keys)) + registers.touch_code[rows]
    order, pair = ordered(pair)
    rows = rows[order]
    # A process runs one operation at a time. If a history shows two as concurrent, they have no order.
    is_next = (pair[1:] == pair[:-1]) & (touches.after[rows[:-1]] <= touches.op[rows[1:]])
    return _pairs(registers, registers.last[rows[:-1][is_next]], registers.first[rows[1:][is_next]])


def by_real_time(registers: Registers, is_included: Bools) -> Before:
    """The pairs by real time that are kept (theory of operation 4).

    O(n log n), plus n times the operations in flight at a time.
    """
    left, met = registers.spans
    source = np.flatnonzero((left != OPEN_END) & is_included)
    base = registers.code << _HIGH
    source = source[ordered(base[source] + left[source])[0]]
    target = np.flatnonzero((met >= 0) & is_included)
    order, heights = ordered(base[target] + met[target])
    target = target[order]
    # No dependency leads away from a version without a writer, so paths do not go over it.
    stations = np.where(_has_writer(registers), met, -1)
    following = _next(registers.code[source], left[source], stations[source])
    stop = np.where(following >= 0, left[source[following]], OPEN_END)
    first = np.searchsorted(heights, base[source] + left[source])
    last = np.maximum(first, np.searchsorted(heights, base[source] + stop))
    near = Before(np.repeat(source, last - first), target[expand(first, last - first)])
    # `near` has the pair with the next version, unless that was met again after its own end.
    apart = np.flatnonzero((following >= 0) & (met[source[following]] >= stop))
    pairs = concat([near, Before(source[apart], source[following[apart]])])
    return take(pairs, pairs.earlier != pairs.later)


def _next(code: Int64s, left: Int32s, met: Int32s) -> Int64s:
    """For each version the place of the next one of its register that was last met at or after this one's end; or -1.

    Versions are sorted by code, then by end.
    """
    result = np.full(len(code), -1, np.int64)
    waiting, ahead = np.arange(len(code)), 1
    while len(waiting):
        waiting = waiting[waiting + ahead < len(code)]
        candidate = waiting + ahead
        is_same = code[candidate] == code[waiting]
        waiting, candidate = waiting[is_same], candidate[is_same]
        is_met = met[candidate] >= left[waiting]
        result[waiting[is_met]] = candidate[is_met]
        waiting = waiting[~is_met]
        ahead += 1
    return result


def _pairs(registers: Registers, earlier: Int64s, later: Int64s) -> Before:
    """Those pairs of versions, each once, without pairs of a version with itself."""
    pair = distinct((earlier * registers.size + later)[earlier != later])
    return Before(pair // max(1, registers.size), pair % max(1, registers.size))


def union(one: Before, other: Before) -> Before:
    """The pairs of both, each once, ascending."""
    if not len(one.earlier) or not len(other.earlier):
        return other if not len(one.earlier) else one
    return ordered_by(distinct_by(concat([one, other])), "earlier", "later")


def _without_cycles(
    registers: Registers, known: Before, more: Before, source: str
) -> tuple[Before, list[VersionCycle]]:
    """The pairs of a source for registers where it closes no cycle, and the cycles of the other registers."""
    first = np.arange(registers.count)
    both = union(known, more)
    earlier = np.concatenate((both.earlier, registers.count + registers.code[: registers.count]))
    later = np.concatenate((both.later, first))
    # With the initial states in front, few pairs lead backwards: values mostly grow with time.
    keys, size = len(registers.keys), registers.size
    found = components(cycle_labels((earlier + keys) % size, (later + keys) % size, size))
    groups = [np.sort((group - keys) % size) for group in found]
    is_bad = np.zeros(len(registers.keys), np.bool_)
    for group in groups:
        is_bad[registers.code[group]] = True
    cycles = [VersionCycle(group, source) for group in groups]
    return take(more, ~is_bad[registers.code[more.earlier]]), cycles
