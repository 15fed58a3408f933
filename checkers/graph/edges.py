"""Dependencies between transactions as arrays: the one form in which all later steps take them.

A node is an operation with its index and its end (`after` of harness/core/columns.py in four bytes): u precedes v in
real time iff after[u] <= index[v]. Watermarks, when they join the graph, are nodes of the same two numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from checkers.columns.runs import expand, spans
from checkers.graph.sightings import Report, Sighting
from harness.core.columns import Bools, Int8s, Int64s

Int32s = NDArray[np.int32]
OPEN_END: Final = np.iinfo(np.int32).max  # The end of an operation that may take effect at any time.

WW, WR, RW = 1, 2, 4  # Kinds of edges, as bits.
# The same from a timed order of versions, for models with process order or real time (register_order, rule 6).
WW_BY_PROCESS, RW_BY_PROCESS, WW_BY_REALTIME, RW_BY_REALTIME = 8, 16, 32, 64
# Steps of a cycle that are no dependencies. They are never stored as edges.
PROCESS, REALTIME = 128, 256
IN, OUT, CHAIN = 512, 1024, 2048  # Into a watermark, out of one, and from one to the next.


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges: `source` must precede `target`. Columns of shape (n,); an edge may occur twice; none leads to itself."""

    source: Int32s
    target: Int32s
    source_after: Int32s
    target_after: Int32s
    kinds: Int8s

    def only(self, rows: Bools | Int64s) -> "Edges":
        """The edges of those rows."""
        return Edges(
            self.source[rows], self.target[rows], self.source_after[rows], self.target_after[rows], self.kinds[rows]
        )


def all_edges(parts: Sequence[Edges]) -> Edges:
    """The edges of all parts, one after the other."""
    nobody = np.empty(0, np.int32)
    parts = [Edges(nobody, nobody, nobody, nobody, np.empty(0, np.int8)), *parts]
    return Edges(
        np.concatenate([part.source for part in parts]),
        np.concatenate([part.target for part in parts]),
        np.concatenate([part.source_after for part in parts]),
        np.concatenate([part.target_after for part in parts]),
        np.concatenate([part.kinds for part in parts]),
    )


@dataclass(frozen=True, slots=True)
class Tail:
    """Implicit rw edges: every reader of a group precedes every other writer of it.

    A group is a version of a key. Its readers saw it; its writers made later versions (for a list, elements that nobody
    saw). Stored one by one the edges would be readers times writers. Writers are sorted by group and index, readers by
    group.
    """

    reader_group: Int32s
    reader: Int32s
    reader_after: Int32s
    writer_group: Int32s
    writer: Int32s
    writer_after: Int32s

    def pairs(self, reader: Int64s, *, first: Int64s, count: Int64s) -> Edges:
        """Edges from each of those readers (rows) to `count` writers from row `first` on, but not to itself."""
        source, target = np.repeat(reader, count), expand(first, count)
        is_other = self.reader[source] != self.writer[target]
        source, target = source[is_other], target[is_other]
        return Edges(
            self.reader[source],
            self.writer[target],
            self.reader_after[source],
            self.writer_after[target],
            np.full(len(source), RW, np.int8),
        )

    def writer_spans(self) -> tuple[Int64s, Int64s]:
        """For each reader, the first row of its group's writers and the one after the last."""
        return spans(self.writer_group.astype(np.int64), self.reader_group.astype(np.int64))

    def beside(self, other: "Tail") -> "Tail":
        """This tail and another, whose groups are numbered after those of this one."""
        base = np.int32(max(self.reader_group.max(initial=-1), self.writer_group.max(initial=-1)) + 1)
        return Tail(
            np.concatenate((self.reader_group, other.reader_group + base)),
            np.concatenate((self.reader, other.reader)),
            np.concatenate((self.reader_after, other.reader_after)),
            np.concatenate((self.writer_group, other.writer_group + base)),
            np.concatenate((self.writer, other.writer)),
            np.concatenate((self.writer_after, other.writer_after)),
        )


_NOBODY: Final = np.empty(0, np.int32)
NO_TAIL: Final = Tail(_NOBODY, _NOBODY, _NOBODY, _NOBODY, _NOBODY, _NOBODY)


@dataclass(frozen=True, slots=True)
class Inference:
    """The edges that follow for the keys of one partition. `left_out` counts, by reason, keys without edges."""

    edges: Edges
    tail: Tail
    report: Report
    left_out: tuple[Sighting, ...]
