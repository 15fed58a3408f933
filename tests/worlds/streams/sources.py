"""Small random sources of every kind that streams are told of: each keeps exactly what its kind promises.

One step of one client at a time, on a clock of ticks. A transaction reads and then writes; what it reads and where it
stands in the order of versions is settled when it commits, by the rules of its kind:

locks       two-phase locking: it happens at its commit
timestamps  it happens at a time stamp from between its invocation and its commit
skewed      it happens at any time stamp: serializable, and not strictly
fresh       snapshot isolation, the snapshot is from its beginning
stale       snapshot isolation, the snapshot may be older than that
ssi         as fresh, but what would close a cycle is aborted
epochs      read committed: locked reads and writes happen at its commit, other reads before; epochs by commit
keys        as locks; the stream keeps only the order of each partition
uncut       as keys; its watermarks are of all partitions, and taken for cuts, which they are not
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import networkx as nx

from harness.core.columns import FAIL, INFO, NEVER, OK
from harness.core.draw import Stream
from tests.oracles.watermark_source import Read, Transaction
from tests.worlds.streams.language import Write

KINDS: Final = ("locks", "timestamps", "skewed", "ssi", "fresh", "stale", "epochs", "keys", "uncut")
SNAPSHOTS: Final = ("ssi", "fresh", "stale")
TICK: Final = 10  # Time between two steps, so that events of streams can fall between.


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What happened: transactions, their writes, and when each operation that committed did so."""

    transactions: tuple[Transaction, ...]
    writes: tuple[Write, ...]
    ready: dict[int, int]


@dataclass(kw_only=True)
class Running:
    """A transaction under way. `stamp` is where it stands in the order of versions, once it has committed."""

    index: int
    process: int
    invoke: int
    reads: list[tuple[int, bool]]
    writes: list[tuple[int, int]]
    ticks: list[int] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)  # The version of each key it read: the stamp of its writer, 0.
    snapshot: int = 0
    stamp: int = 0
    ready: int = NEVER
    complete: int = NEVER
    outcome: int = INFO
    is_forgotten: bool = False  # Its client has gone on without an answer.

    @property
    def written(self) -> set[int]:
        return {key for key, _ in self.writes}


@dataclass(kw_only=True)
class Simulation:
    """Clients that take turns."""

    draw: Stream
    kind: str
    count: int
    keys: int
    has_oddities: bool  # Unclear outcomes, deletes, several writes of one key.
    tick: int = 0
    all: list[Running] = field(default_factory=list)
    committed: list[Running] = field(default_factory=list)
    processes: int = 3

    def run(self) -> Source:
        """All that they did."""
        idle, busy = [0, 1, 2], list[Running]()
        while busy or (idle and len(self.all) < self.count):
            self.tick += TICK
            can_begin = bool(idle) and len(self.all) < self.count
            if can_begin and (not busy or self.draw.chance(1, 2)):
                busy.append(self._begun(idle.pop(self.draw.below(len(idle)))))
                continue
            t = busy[self.draw.below(len(busy))]
            t.ticks.append(self.tick)
            if t.complete == t.ready == NEVER and len(t.ticks) == 2:
                self._read_early(t)
            elif t.ready == NEVER and t.outcome != FAIL:
                if not t.is_forgotten and self.has_oddities and self.draw.chance(1, 6):
                    t.is_forgotten = True
                    idle.append(self._next_process())
                    if self.draw.chance(1, 3):
                        continue  # It commits later, and nobody hears of it.
                if not t.is_forgotten or self.draw.chance(2, 3):
                    self._commit(t)
                if t.is_forgotten:
                    t.outcome = INFO
                    busy.remove(t)
            else:
                t.complete = self.tick
                busy.remove(t)
                idle.append(t.process)
        return self._result()

    def _begun(self, process: int) -> Running:
        keys = self.draw.sample(range(self.keys), self.draw.choice([0, 1, 1, 2]))
        writes = (
            [] if self.draw.chance(1, 10) else self.draw.sample(range(self.keys), self.draw.choice([1, 1, 2, 2, 3]))
        )
        if self.has_oddities and writes and self.draw.chance(1, 5):
            writes.append(writes[0])
        index = len(self.all)
        valued = [
            (key, NEVER if self.has_oddities and self.draw.chance(1, 10) else 10 * (index + 1) + ordinal)
            for ordinal, key in enumerate(writes)
        ]
        t = Running(
            index=index,
            process=process,
            invoke=self.tick,
            reads=[(key, self._keeps_lock()) for key in keys],
            writes=valued,
            ticks=[self.tick],
            snapshot=self.draw.between(0, self.tick) if self.kind == "stale" else self.tick,
        )
        self.all.append(t)
        return t

    def _keeps_lock(self) -> bool:
        return self.kind in ("locks", "keys", "uncut") or (self.kind == "epochs" and self.draw.chance(1, 2))

    def _next_process(self) -> int:
        self.processes += 1
        return self.processes - 1

    def _newest(self, key: int, below: int) -> int:
        """The stamp of the newest version of a key below that one, 0 for the first."""
        return max((t.stamp for t in self.committed if key in t.written and t.stamp < below), default=0)

    def _read_early(self, t: Running) -> None:
        if self.kind == "epochs":
            t.seen |= {key: self._newest(key, NEVER) for key, is_locked in t.reads if not is_locked}

    def _commit(self, t: Running) -> None:
        t.stamp = self._stamp(t)
        seen = {key: self._newest(key, t.snapshot + 1 if self.kind in SNAPSHOTS else t.stamp) for key, _ in t.reads}
        t.seen = seen | t.seen
        if not self._may_commit(t):
            t.outcome = FAIL
            return
        t.outcome, t.ready = OK, self.tick
        self.committed.append(t)

    def _stamp(self, t: Running) -> int:
        match self.kind:
            case "timestamps":
                return self.draw.choice(t.ticks) + 1
            case "skewed":
                taken = {other.stamp for other in self.committed}
                return self.draw.choice([s for s in range(1, 2 * self.tick) if s not in taken])
            case _:
                return self.tick + 1

    def _may_commit(self, t: Running) -> bool:
        if self.kind in ("timestamps", "skewed"):  # Who read at a later stamp must not have missed this.
            later = [other for other in self.committed if other.stamp > t.stamp]
            return not any(t.written & set(other.seen) for other in later)
        if self.kind in SNAPSHOTS and any(self._newest(key, NEVER) > t.snapshot for key in t.written):
            return False
        return self.kind != "ssi" or nx.is_directed_acyclic_graph(self._dependencies([*self.committed, t]))

    def _dependencies(self, those: list[Running]) -> "nx.DiGraph[int]":
        graph: nx.DiGraph[int] = nx.DiGraph()
        for one in those:
            graph.add_edges_from((other.index, one.index) for other in those if other.stamp in one.seen.values())
            for other in those:
                overwrites = any(key in other.written and other.stamp > stamp for key, stamp in one.seen.items())
                if one is not other and (overwrites or (one.written & other.written and one.stamp < other.stamp)):
                    graph.add_edge(one.index, other.index)
        return graph

    def _result(self) -> Source:
        order = sorted(self.committed, key=lambda t: t.stamp)
        places, position = dict[int, int](), 1
        for before, t in pairwise([None, *order]):
            assert t is not None
            is_same_epoch = self.kind == "epochs" and before is not None and self.draw.chance(1, 2)
            position += 0 if is_same_epoch or before is None else self.draw.between(1, 2)
            places[t.index] = position
        return Source(
            transactions=tuple(self._transaction(t) for t in self.all),
            writes=tuple(w for t in self.all for w in self._writes(t, order, places)),
            ready={t.index: t.ready for t in self.committed},
        )

    def _writes(self, t: Running, order: list[Running], places: dict[int, int]) -> list[Write]:
        result = []
        for ordinal, (key, value) in enumerate(t.writes):
            before = [k for o in order if o.stamp < t.stamp for k, _ in o.writes] + [k for k, _ in t.writes[:ordinal]]
            is_there = t.index in places
            result.append(
                Write(
                    op=t.index,
                    outcome=t.outcome,
                    key=key,
                    value=value,
                    position=places.get(t.index, NEVER),
                    ordinal=ordinal,
                    epoch=places.get(t.index, NEVER) if self.kind == "epochs" else NEVER,
                    txn=900 + t.index,
                    version=before.count(key) + 1 if is_there else NEVER,
                )
            )
        return result

    def _transaction(self, t: Running) -> Transaction:
        values = {(o.stamp, key): value for o in self.committed for key, value in o.writes}
        reads = tuple(
            Read(key=key, value=values[t.seen[key], key] if t.seen[key] else NEVER, is_locked=is_locked)
            for key, is_locked in (t.reads if t.outcome == OK else ())
        )
        complete = t.complete if t.outcome != INFO else NEVER
        return Transaction(
            index=t.index, process=t.process, invoke=t.invoke, complete=complete, outcome=t.outcome, reads=reads
        )
