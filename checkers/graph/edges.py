"""Dependencies between transactions as arrays: the form that all later steps take.

A node is an operation with its index and its end (`after` of harness/core/columns.py in four bytes): u precedes v in
real time iff after[u] <= index[v]. Watermarks in the graph are nodes with the same two numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from checkers.columns.runs import expand, spans
from checkers.columns.table import concat, empty
from checkers.graph.sightings import Report, Sighting
from harness.core.columns import Bools, Int8s, Int64s

Int32s = NDArray[np.int32]
OPEN_END: Final = np.iinfo(np.int32).max  # The end of an operation that may take effect at any time.

WW, WR, RW = 1, 2, 4  # Kinds of edges, as bits.
# The same from a timed order of versions, for models with process order or real time (registers.order, rule 6).
WW_BY_PROCESS, RW_BY_PROCESS, WW_BY_REALTIME, RW_BY_REALTIME = 8, 16, 32, 64
# Steps of a cycle that are no dependencies. They are never stored as edges.
PROCESS, REALTIME = 128, 256
IN, OUT, CHAIN = 512, 1024, 2048  # Into a watermark, out of one, and from one to the next.


class Edges(Struct, frozen=True):
    """Edges: `source` must precede `target`. Columns of shape (n,); an edge may occur twice; none leads to itself."""

    source: Int32s
    target: Int32s
    source_after: Int32s
    target_after: Int32s
    kinds: Int8s


def all_edges(parts: Sequence[Edges]) -> Edges:
    """The edges of all parts, one after the other; `parts` may be empty."""
    return concat([empty(Edges), *parts])


class Members(Struct, frozen=True):
    """Operations, each as a member of a group."""

    group: Int32s
    op: Int32s
    after: Int32s


class ImplicitRw(Struct, frozen=True):
    """Implicit rw edges: every reader of a group precedes every other writer of it.

    A group is a version of a key. Its readers saw it; its writers made later versions (for a list: appended elements
    that no read shows). As single edges they would be readers times writers. Writers are sorted by group and index,
    readers by group.
    """

    readers: Members
    writers: Members

    def pairs(self, *, first: Int64s, count: Int64s) -> Edges:
        """Edges from each reader to `count` writers from row `first` on, without edges from an operation to itself."""
        readers, writers = self.readers, self.writers
        source, target = np.repeat(np.arange(len(first)), count), expand(first, count)
        is_other = readers.op[source] != writers.op[target]
        source, target = source[is_other], target[is_other]
        kinds = np.full(len(source), RW, np.int8)
        return Edges(readers.op[source], writers.op[target], readers.after[source], writers.after[target], kinds)

    def writer_spans(self) -> tuple[Int64s, Int64s]:
        """For each reader, the first row of its group's writers and the one after the last."""
        return spans(self.writers.group.astype(np.int64), self.readers.group.astype(np.int64))

    def beside(self, other: "ImplicitRw") -> "ImplicitRw":
        """The groups of both. Those of `other` get new numbers, above all of this one's."""
        base = np.int32(max(self.readers.group.max(initial=-1), self.writers.group.max(initial=-1)) + 1)
        readers, writers = (replace(each, group=each.group + base) for each in (other.readers, other.writers))
        return ImplicitRw(concat([self.readers, readers]), concat([self.writers, writers]))


NO_IMPLICIT: Final = ImplicitRw(empty(Members), empty(Members))


class Inference(Struct, frozen=True):
    """The edges that follow from the keys of one partition. `left_out` counts, by reason, keys that give no edges.

    `kinds`: for each kind of edge the generations that have one, shape (generations,); empty if nobody asks for it.
    """

    edges: Edges
    implicit: ImplicitRw
    report: Report
    left_out: tuple[Sighting, ...]
    kinds: Mapping[str, Bools] = field(default_factory=dict)
