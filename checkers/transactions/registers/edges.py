"""The second half of the check of registers: dependencies and anomalies of all transactions on some registers.

Theory of operation. Versions and their order: `versions`, `order`.
1. wr: from the writer of a version to those that read it, at first or again.
2. ww: from the writer of a version to that of a later one. rw: from its readers to the writer of a later one.
3. A reader of a register's initial state precedes every writer of it. These rw stay implicit, and so do
   those of any version with many readers and many later versions: their number is readers times writers.
4. Edges that follow only from a timed order have kinds of their own, which count in models with that order.
5. Failed operations are no nodes. An unclear operation is one: if it did not take effect, no read shows its writes, no
   edge leads away from it, and so it is in no cycle. If a read shows one of its writes, all have taken effect.
"""

from collections import Counter
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns.index import ascending
from checkers.columns.runs import expand, ordered
from checkers.columns.table import take
from checkers.graph.edges import (
    RW,
    RW_BY_PROCESS,
    RW_BY_REALTIME,
    WR,
    WW,
    WW_BY_PROCESS,
    WW_BY_REALTIME,
    Edges,
    ImplicitRw,
    Inference,
    Int32s,
    Members,
    all_edges,
)
from checkers.graph.sightings import Report, union
from checkers.history.registers import Order
from checkers.transactions.registers.anomalies import anomalies
from checkers.transactions.registers.order import Before, orders, uncrowded
from checkers.transactions.registers.rows import RegisterRows, Touches
from checkers.transactions.registers.versions import NOBODY, Registers, resolved
from harness.core.columns import OK, Bools, Int64s

# A version with r readers and w later writers has r * w edges: stored if they are at most this many times r + w.
_SPARSE: Final = 4
_TIMED: Final = ("timed-process", "timed-realtime")


def infer_registers(rows: RegisterRows, order: Order, *, is_declared: bool = False) -> Inference:
    """The edges and anomalies that follow from the rows of all chunks about the registers of one partition.

    `is_declared`: what all registers held at first is declared.
    """
    registers, left_out = resolved(rows, is_declared=is_declared)
    if order.commits:
        registers, crowded = uncrowded(registers)
        left_out += crowded
    known = orders(registers, order)
    readers = _Readers(registers)
    is_wide = _wide(registers, readers, known.given)
    narrow = take(known.given, ~is_wide[known.given.earlier])
    timed = (
        _timed(registers, readers, known.process, WW_BY_PROCESS, RW_BY_PROCESS),
        _without_implied(_timed(registers, readers, known.real_time, WW_BY_REALTIME, RW_BY_REALTIME)),
    )
    plain = (
        _wr(registers, readers),
        _between_writers(registers, known.given, WW),
        _from_readers(registers, readers, narrow, RW),
    )
    implicit = _implicit(registers, readers, known.given, is_wide)
    tally = Counter({name: len(edges.source) for name, edges in zip(("wr", "ww", "rw"), plain, strict=True)})
    tally["rw"] += len(implicit.readers.op)
    tally |= Counter({name: len(edges.source) for name, edges in zip(_TIMED, timed, strict=True)})
    report = union((registers.rows.report, anomalies(registers, known, is_declared=is_declared), Report((), tally)))
    return Inference(
        all_edges([*plain, *timed]),
        implicit,
        report,
        left_out,
        {kind: np.array([tally[kind] > 0]) for kind in ("ww", "wr", "rw")},
    )


class _Reads(Struct, frozen=True):
    """The reads of ok transactions, except from themselves, sorted by version."""

    version: Int64s
    op: Int32s
    after: Int32s


class _Readers:
    """For each version its readers: `count` rows of `reads` from row `start` on, by the version's number.

    A transaction that reads a register again and sees another version, which is not its own, has read both.
    """

    def __init__(self, registers: Registers) -> None:
        touches, odd = registers.rows.touches, registers.rows.odd
        external = np.flatnonzero((touches.outcome == OK) & (registers.read_version >= 0))
        again = np.flatnonzero((registers.odd_version >= 0) & ~_is_own(registers))
        reads = _Reads(
            np.concatenate((registers.read_version[external], registers.odd_version[again])),
            np.concatenate((touches.op[external], odd.op[again])),
            np.concatenate((touches.after[external], odd.after[again])),
        )
        self.reads = take(reads, ordered(reads.version)[0])
        self.count = np.bincount(reads.version, minlength=registers.size)
        self.start = np.cumsum(self.count) - self.count


def _is_own(registers: Registers) -> Bools:
    """True for the reads that are not external and show what their own transaction wrote at another place."""
    rows, version = registers.rows, registers.odd_version
    passed, final = np.append(rows.passing.op, NOBODY), np.append(rows.touches.op, NOBODY)
    result: Bools = (passed[registers.passer[version]] == rows.odd.op) | (
        final[registers.writer[version]] == rows.odd.op
    )
    return result


def _wide(registers: Registers, readers: _Readers, pairs: Before) -> Bools:
    """True for the versions whose rw stay implicit."""
    later = np.bincount(pairs.earlier, minlength=registers.size)
    result: Bools = readers.count * later > _SPARSE * (readers.count + later)
    result[registers.count :] = True
    return result


def _wr(registers: Registers, readers: _Readers) -> Edges:
    writer = registers.writer[readers.reads.version]
    reader = np.flatnonzero(registers.is_vertex[writer])
    return _edges(registers.rows.touches, writer[reader], readers.reads, reader, WR)


def _between_writers(registers: Registers, pairs: Before, kind: int) -> Edges:
    source, target = registers.writer[pairs.earlier], registers.writer[pairs.later]
    is_edge = registers.is_vertex[source] & registers.is_vertex[target]
    touches = registers.rows.touches
    return _edges(touches, source[is_edge], touches, target[is_edge], kind)


def _from_readers(registers: Registers, readers: _Readers, pairs: Before, kind: int) -> Edges:
    pairs = take(pairs, registers.is_vertex[registers.writer[pairs.later]])
    count = readers.count[pairs.earlier]
    source = expand(readers.start[pairs.earlier], count)
    target = np.repeat(registers.writer[pairs.later], count)
    return _edges(readers.reads, source, registers.rows.touches, target, kind)


def _timed(registers: Registers, readers: _Readers, pairs: Before, ww: int, rw: int) -> Edges:
    return all_edges([_between_writers(registers, pairs, ww), _from_readers(registers, readers, pairs, rw)])


def _without_implied(edges: Edges) -> Edges:
    """The edges, without those that real time implies anyway."""
    return take(edges, edges.source_after > edges.target)


def _edges(sources: Touches | _Reads, source: Int64s, targets: Touches | _Reads, target: Int64s, kind: int) -> Edges:
    """The edges between the operations of those rows, without those from an operation to itself."""
    kinds = np.full(len(source), kind, np.int8)
    edges = Edges(sources.op[source], targets.op[target], sources.after[source], targets.after[target], kinds)
    return take(edges, edges.source != edges.target)


def _implicit(registers: Registers, readers: _Readers, given: Before, is_wide: Bools) -> ImplicitRw:
    """The implicit rw: those of wide versions, and those of initial states."""
    wide = take(given, is_wide[given.earlier] & (given.earlier < registers.count))
    writes = np.flatnonzero(registers.write_version >= 0)
    group = np.concatenate((wide.earlier, registers.count + registers.touch_code[writes]))
    writer = np.concatenate((registers.writer[wide.later], writes))
    is_pair = registers.is_vertex[writer] & (readers.count[group] > 0)
    group, writer = group[is_pair], writer[is_pair]
    order = ascending(group, registers.op(writer))
    group, writer = group[order], writer[order]
    has_writer = np.zeros(registers.size, np.bool_)
    has_writer[group] = True
    reads, touches = take(readers.reads, has_writer[readers.reads.version]), registers.rows.touches
    return ImplicitRw(
        Members(reads.version.astype(np.int32), reads.op, reads.after),
        Members(group.astype(np.int32), touches.op[writer], touches.after[writer]),
    )
