"""The models that need the order of versions: for a total one each is the absence of cycles in a graph of two layers.

Theory of operation. Base edges are reads and what the model adds: sessions, or real time. With the order of versions
come ww, from each version's writer to the next one's, and rw, from a version's readers to the next one's writer.
- serializable: base, ww and rw have no cycle,
- snapshot isolation: nor have base and ww, each followed by at most one rw,
- prefix consistency: nor have ww, and base followed by at most one rw.
- parallel snapshot isolation: nor has any cycle of base and ww exactly one rw more,
- update atomic: nor does a transaction miss a write of one that it sees by one step of base or ww (`updates`).
A transaction is two nodes: one that steps of base (and for snapshot isolation ww) enter, and rw may leave; and one that
all others enter and leave. The first leads to the second. So a cycle of the model is a cycle of this graph.

Source: Cerone, Gotsman and Yang, Algebraic Laws for Weak Consistency, CONCUR 2017; the two nodes as in Viper, EuroSys
2023. Parallel snapshot isolation has no graph of its own: `polygraph` follows the steps of the serializable one. In
that of update atomic each rw leads to a writer that is seen, by a step of its own: these two are a cycle.
"""

from enum import Enum
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.axioms.execution import INITIAL, Execution, Pairs
from checkers.axioms.moments import has_moments
from checkers.axioms.updates import missed
from checkers.columns.index import ascending
from checkers.columns.runs import distinct, first_of_each
from checkers.columns.table import concat, empty, take
from checkers.graph.edges import OPEN_END, PROCESS, REALTIME, RW, WR, WW
from checkers.graph.paths import MOMENT, Steps, cycle_labels, time_steps
from harness.core.columns import Bools, Int64s


class Level(Enum):
    """A model that needs the order of versions. The value is an anomaly that breaks it and no weaker model."""

    PREFIX = "prefix-violation"
    UPDATE = "G-UA"
    PARALLEL = "G-single"
    SNAPSHOT = "G-nonadjacent"
    SERIAL = "G2-item"


LAYERED: Final = (Level.PREFIX, Level.SNAPSHOT)  # A transaction has two nodes.
CALM: Final = (Level.UPDATE, Level.PARALLEL)  # A cycle that breaks it has at most one rw.


class Chains(Struct, frozen=True):
    """A total order of the versions of each key: the rows of installs by key, then from the first version to the last.

    `is_next` is True for a row whose version is known to come right after that of the row before it.
    """

    row: Int64s
    is_next: Bools


class Layers(Struct, frozen=True):
    """The graph of a level. Its nodes are the transactions, the entrances of transactions, and moments.

    `earlier` and `later` are, for each step, the rows of installs whose order it assumes; -1 for none.
    """

    steps: Steps
    earlier: Int64s
    later: Int64s
    size: int


def chains(execution: Execution, guess: Int64s) -> Chains:
    """The versions of each key in their known order; where that is unknown, by the guessed moments (installs,)."""
    installs = execution.installs
    row = ascending(installs.key, installs.rank, guess)
    return Chains(row, ~first_of_each(installs.key[row]))


def base(execution: Execution, order: int, level: Level | None = None) -> Steps:
    """The steps of reads, and of sessions (`order` PROCESS) or real time (REALTIME).

    With real time the nodes from n on are moments. For update atomic the known ww belong to it: the versions that
    transactions leave do not show where an inner one stands, which a read may. Of other models the search decides that,
    and the ww of a declared order belong to it.
    """
    views = take(execution.views, execution.views.writer != INITIAL)
    reads = Steps(views.writer, views.reader, np.full(len(views.writer), WR))
    if level is Level.UPDATE:
        versions = execution.versions
        return concat([reads, Steps(versions.source, versions.target, np.full(len(versions.source), WW))])
    declared = execution.declared
    reads = concat([reads, Steps(declared.source, declared.target, np.full(len(declared.source), WW))])
    if order == REALTIME:
        end = np.minimum(execution.end, OPEN_END)
        return concat([reads, time_steps(execution.op, end)])
    pairs = execution.sessions if order == PROCESS else empty(Pairs)
    return concat([reads, Steps(pairs.source, pairs.target, np.full(len(pairs.source), PROCESS))])


def is_ordered(history: Execution, order: int) -> bool:
    """True if reads, known versions and that order of time alone have no cycle: there is no G0 and no G1c."""
    if order == REALTIME and has_moments(history):
        return True  # In a third of the time.
    known, versions = base(history, order), history.versions
    source = np.concatenate((known.source, versions.source))
    target = np.concatenate((known.target, versions.target))
    return len(distinct(cycle_labels(source, target, 2 * len(history.op)))) == 2 * len(history.op)


def layers(execution: Execution, known: Steps, order: Chains, level: Level) -> Layers:
    """The graph of that level, made of its base steps and of the steps that this order of versions adds."""
    size = len(execution.op)
    writes = _writes(execution, order)
    if level is Level.UPDATE:
        return _updates(execution, known, order, writes)
    misses = _misses(execution, order)
    # What a step into the first node of a transaction adds: nothing if there is only one.
    enters = size if level in LAYERED else 0
    source = known.source + (known.source >= size) * size
    is_plain = (known.kind == WW) & (level is Level.PREFIX)  # As for the ww below.
    target = known.target + np.where(known.target < size, np.where(is_plain, 0, enters), size)
    nodes = np.arange(size if enters else 0)
    steps = [
        Steps(source, target, known.kind),
        Steps(writes[0], writes[1] + (enters if level is Level.SNAPSHOT else 0), np.full(len(writes[0]), WW)),
        Steps(misses[0] + enters, misses[1], np.full(len(misses[0]), RW)),
        Steps(nodes + size, nodes, np.full(len(nodes), MOMENT)),
    ]
    no_pair, none = np.full(len(source), -1), np.full(len(nodes), -1)
    earlier, later = (np.concatenate((no_pair, writes[at], misses[at], none)) for at in (2, 3))
    return Layers(concat(steps), earlier, later, size)


def _updates(
    execution: Execution, known: Steps, order: Chains, writes: tuple[Int64s, Int64s, Int64s, Int64s]
) -> Layers:
    """The graph of update atomic. It has no order of time: all its nodes are transactions."""
    found = missed(execution, places(order))
    by_write = np.flatnonzero(found.seen >= 0)
    columns = (
        (known.source, known.target, np.full(len(known.source), -1), np.full(len(known.source), -1), WR),
        (*writes, WW),
        (found.writer[by_write], found.reader[by_write], found.seen[by_write], found.own[by_write], WW),
        (found.reader, found.writer, found.read, found.left, RW),
    )
    steps = concat([Steps(source, target, np.full(len(source), kind)) for source, target, _, _, kind in columns[1:]])
    steps = concat([known, steps])
    earlier, later = (np.concatenate([each[at] for each in columns]) for at in (2, 3))
    return Layers(steps, earlier, later, len(execution.op))


def places(order: Chains) -> Int64s:
    """For each row of installs its place in that order."""
    place = np.empty(len(order.row), np.int64)
    place[order.row] = np.arange(len(order.row))
    return place


def _writes(execution: Execution, order: Chains) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """The ww steps: source, target, and the pair of installs."""
    later = np.flatnonzero(order.is_next)
    one, other = order.row[later - 1], order.row[later]
    writer = execution.installs.writer
    return writer[one], writer[other], one, other


def _misses(execution: Execution, order: Chains) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """The rw steps: source, target, and the pair of installs; -1 for the initial version, which is always earlier."""
    views, installs = execution.views, execution.installs
    place = places(order)
    keys = installs.key[order.row]
    earlier = views.install
    following = np.append(place, 0)[earlier] + 1
    of_first = np.flatnonzero(earlier < 0)
    following[of_first] = np.searchsorted(keys, views.key[of_first])
    exists = np.append(keys, -1)[following] == views.key
    reader, earlier, later = views.reader[exists], earlier[exists], order.row[following[exists]]
    target = installs.writer[later]
    is_other = target != reader
    return reader[is_other], target[is_other], earlier[is_other], later[is_other]
