"""Epochs that are not consistent cuts: a transaction must not precede one of an earlier epoch (guarantee G5).

Theory of operation. An edge leads from a to b, both ok, both writers with an epoch, if
1. ww: b appended to a key after a did, as the longest read of the key shows;
2. wr: b read what a appended, with or without a lock;
3. rt: a had been answered before b was invoked;
4. rw: a read a key under a lock that it held until commit, and did not see what b appended.
Then epoch(a) <= epoch(b). The kernels are linear but for sorting. Along the versions of a key it suffices to compare
with the highest epoch of all earlier versions, and with the lowest of all later ones; over time, with the highest epoch
answered so far.

Not checked, because a correct system may differ: rw without a lock (specs: 230 such edges in 4820 transactions), and
transactions that wrote nothing, whose epoch is the current one of the node that answered them. Such a reader may see a
commit of the next epoch before its own coordinator has heard of that epoch. Appends that no read shows have no known
place, and are left out of ww.

Witnesses: ww between neighbours, wr and locked rw to the next version, between two writers with epochs. Real time is
checked, and not counted: nearly all of its edges lie far apart.
"""

from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns.runs import first_of_each, ordered
from checkers.columns.table import Join
from checkers.engine.protocol import Check, Context
from checkers.history.names import EpochName, Names, epoch_name
from checkers.history.stretches import ONCE, Weights
from checkers.history.troubles import Trouble, judgement
from checkers.transactions.acts import Acts, Writers, read_acts, versions_read
from checkers.transactions.list_versions import Versions
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import Bools, Int64s
from harness.core.verdict import Judgement

CHECKER: Final = "cuts"
NOT_CLOSED: Final = "cut-not-closed"
ANOMALIES: Final = {
    NOT_CLOSED: Anomaly(
        meaning="A watermark contains a change that depends on a change outside of it.",
        title="Epoch without its cause",
        cause=Cause.CUT,
    ),
}
KINDS: Final = ("ww", "wr", "rt", "rw")
NOBODY: Final = -1


class Broken(Struct, frozen=True, kw_only=True):
    """The worst edge of one kind that leads back to an earlier epoch.

    `count` versions, reads or operations have such an edge.

    `element` is the one that the edge is about: for ww and rw an append of `after`, for wr one of `before`; -1 for rt.
    """

    kind: str
    count: int
    before: int
    after: int
    key: int = NOBODY
    element: int = NOBODY
    behind: int = NOBODY  # For ww: the element that `before` appended.


class Closure(Struct, frozen=True, kw_only=True):
    """The broken edges, at most one of each kind, and the number of edges of each kind that were checked."""

    broken: tuple[Broken, ...]
    edges: dict[str, int]


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all epochs as cuts. Raises HistoryError if the history is damaged."""
    acts = context.facts.of((history, "acts"), partial(read_acts, history))
    found = closure(acts, Weights(context.stretches))
    unknown = {NOT_CLOSED: "duplicate-appends: an element was appended to one key twice"} if acts.has_duplicates else {}
    show = epoch_name(context.bounds.saved_bits)
    return judgement(
        CHECKER,
        ANOMALIES,
        (_trouble(acts.writers, edge, context.name, show) for edge in found.broken),
        {NOT_CLOSED: sum(found.edges.values())},
        unknown=unknown,
        facts={"edges": dict(found.edges), "writers": len(acts.writers.index)},
        scope=(),
    )


def closure(acts: Acts, weights: Weights = ONCE) -> Closure:
    """The broken edges of all four kinds, and the number of edges of each kind that were checked."""
    along = _Along(acts.versions, acts.writers, weights)
    results = [_ww(along), _wr(along), (_rt(acts.writers), 0), _rw(along, _is_locked(acts))]
    return Closure(
        broken=tuple(broken for broken, _ in results if broken is not None),
        edges={kind: count for kind, (_, count) in zip(KINDS, results, strict=True) if kind != "rt"},
    )


class _Along:
    """The versions of all keys in order, each with its writer's epoch as a rank: 0 is the lowest epoch, -1 unknown."""

    def __init__(self, versions: Versions, writers: Writers, weights: Weights) -> None:
        self.versions, self.writers, self.weights = versions, writers, weights.of(versions.keys)
        self.epochs, rank = np.unique(writers.epoch, return_inverse=True)
        self.rank_of_row = np.append(rank, -1).astype(np.int64)  # The last one is for row -1, no epoch.
        self.op = np.append(versions.rows.appends.op.astype(np.int64), NOBODY)[versions.writer]
        self.rank = self.rank_of(self.op)
        self.span = len(self.epochs) + 1
        base = versions.order_code * self.span
        self.highest = np.maximum.accumulate(base + self.rank + 1) - base - 1  # Of this version and all before it.
        # The lowest of this version and all after it; span - 1 if none of them is known.
        height = np.where(self.rank < 0, self.span - 1, self.rank)
        self.lowest = np.minimum.accumulate((base + height)[::-1])[::-1] - base
        # The nearest places, backward and forward, with those ranks.
        here, nowhere = np.arange(len(self.rank)), len(self.rank)
        self.highest_at = np.maximum.accumulate(np.where(self.rank == self.highest, here, -1))
        self.lowest_at = np.minimum.accumulate(np.where(height == self.lowest, here, nowhere)[::-1])[::-1]

    def rank_of(self, op: Int64s) -> Int64s:
        """The rank of each operation's epoch; -1 if it has none."""
        return self.rank_of_row[self.writers.place(op)]

    def element(self, place: int) -> int:
        """The element appended at that place."""
        return int(self.versions.rows.appends.value[self.versions.writer[place]])

    def broken(
        self, kind: str, before: Int64s, after: Int64s, about: Int64s, behind: Int64s | None = None
    ) -> Broken | None:
        """The edge that leads back farthest; of equal ones the earliest.

        `about` and `behind` are places of versions.
        """
        if not len(before):
            return None
        fall = self.epochs[self.rank_of(before)] - self.epochs[self.rank_of(after)]
        worst = int(np.lexsort((before, after, -fall))[0])
        return Broken(
            kind=kind,
            count=len(before),
            before=int(before[worst]),
            after=int(after[worst]),
            key=int(self.versions.keys[self.versions.order_code[about[worst]]]),
            element=self.element(int(about[worst])),
            behind=NOBODY if behind is None else self.element(int(behind[worst])),
        )


def _ww(along: _Along) -> tuple[Broken | None, int]:
    if not len(along.rank):
        return None, 0
    is_known = ~first_of_each(along.versions.order_code) & (along.rank >= 0)
    neighbour = np.append(np.int64(NOBODY), along.op[:-1])
    edges = is_known & (np.append(-1, along.rank[:-1]) >= 0) & (neighbour != along.op)
    bad = np.flatnonzero(is_known & (np.append(-1, along.highest[:-1]) > along.rank))
    source = along.highest_at[bad - 1]
    count = along.weights.count(along.versions.order_code[edges])
    return along.broken("ww", along.op[source], along.op[bad], bad, source), count


def _wr(along: _Along) -> tuple[Broken | None, int]:
    last = _next_place(along.versions) - 1
    place, rank, reader, count = _read(along, last, along.versions.read_length > 0)
    bad = np.flatnonzero(along.highest[place] > rank)
    source = along.highest_at[place[bad]]
    return along.broken("wr", along.op[source], reader[bad], source), count


def _rw(along: _Along, is_locked: Bools) -> tuple[Broken | None, int]:
    versions = along.versions
    following = _next_place(versions)
    has_next = following < versions.order_start[versions.read_code + 1]
    place, rank, reader, count = _read(along, following, is_locked & has_next)
    bad = np.flatnonzero(along.lowest[place] < rank)
    target = along.lowest_at[place[bad]]
    return along.broken("rw", reader[bad], along.op[target], target), count


def _read(along: _Along, place: Int64s, is_usable: Bools) -> tuple[Int64s, Int64s, Int64s, int]:
    """Three columns, a row for each usable read: the place of its version, the reader's rank, and the reader.

    And the number of wr edges that these reads give.
    """
    reader = along.versions.rows.reads.op.astype(np.int64)
    rank = along.rank_of(reader)
    usable = np.flatnonzero(is_usable & (rank >= 0) & along.versions.is_version)
    place, reader = place[usable], reader[usable]
    is_edge = (along.rank[place] >= 0) & (along.op[place] != reader)
    count = along.weights.count(along.versions.read_code[usable[is_edge]])
    return place, rank[usable], reader, count


def _next_place(versions: Versions) -> Int64s:
    """For each read that shows a version, the place of the next version of its key."""
    return versions.order_start[versions.read_code] + versions_read(versions)


def _rt(writers: Writers) -> Broken | None:
    """The worst broken edge of real time: no invocation may get an epoch below the highest one already answered."""
    if not len(writers.index):
        return None
    order, after = ordered(writers.after)
    highest = np.maximum.accumulate(writers.epoch[order])
    answered = np.searchsorted(after, writers.index, side="right")
    before = np.where(answered > 0, highest[answered - 1], np.iinfo(np.int64).min)
    bad = np.flatnonzero(before > writers.epoch)
    if not len(bad):
        return None
    row = bad[np.lexsort((writers.index[bad], writers.epoch[bad] - before[bad]))[0]]
    known = order[: answered[row]]
    source = known[writers.epoch[known] == before[row]].min()
    return Broken(kind="rt", count=len(bad), before=int(writers.index[source]), after=int(writers.index[row]))


def _is_locked(acts: Acts) -> Bools:
    """True for each read of a version whose operation read that key only under a lock."""
    versions = acts.versions
    op, key = versions.rows.reads.op.astype(np.int64), versions.keys[versions.read_code]
    return Join((op, key), (acts.locked_op, acts.locked_key)).first >= 0


def _trouble(writers: Writers, edge: Broken, name: Names, show: EpochName) -> Trouble:
    epochs = writers.epoch[writers.place(np.array([edge.before, edge.after], np.int64))].tolist()
    return Trouble(
        NOT_CLOSED,
        f"{_reason(edge, name)}: T{edge.before} precedes T{edge.after}. But T{edge.before} has epoch "
        f"{show(epochs[0])}, and T{edge.after} the earlier epoch {show(epochs[1])}, which therefore contains "
        f"T{edge.after} without what came before it.",
        (edge.kind, edge.before, edge.after, edge.key, edge.element, *epochs),
        (edge.before, edge.after),
        group=edge.kind,
        count=edge.count,
    )


def _reason(edge: Broken, name: Names) -> str:
    before, after, key, element = f"T{edge.before}", f"T{edge.after}", name.key(edge.key), name(edge.element)
    match edge.kind:
        case "ww":
            return f"{after} appended {element} to {key} after {before} had appended {name(edge.behind)}"
        case "wr":
            return f"{after} read {key} with {element} in it, which {before} had appended"
        case "rw":
            return f"{before} read {key} under a lock until its commit, without {element}, which {after} appended"
        case _:
            return f"{before} had been answered before {after} was invoked"


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check, by_generation=True, of_stretches=True),)
