"""Independent on purpose: all that the definition of the watermark graph needs: types, Committed*, client's edges.

A *version* is the place of a write among the writes of the world.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import networkx as nx

from harness.core.columns import BACKFILL, FAIL, INFO, NEVER, OK, ROW
from harness.core.promises import StreamContract
from tests.worlds.streams.language import Event, Write

INITIAL = -1  # The version that was there before all writes.
Node = tuple[str, int]  # ("t", transaction), ("w", the first of the merged watermarks) or ("r", as-of read)
Chain = tuple[object, ...]
CLIENT = ("ww", "wr", "rw", "process", "rt")  # The first of them names a pair.


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a transaction read of a key: a value, NEVER for nothing."""

    key: int
    value: int
    is_locked: bool = False  # Was the lock kept until commit?


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """An operation of a client; its writes are those of the world with `op` = `index`, by their ordinals."""

    index: int
    process: int
    invoke: int
    complete: int  # NEVER if unclear.
    outcome: int
    reads: tuple[Read, ...] = ()
    as_of: int = NEVER  # The position at which it read.


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A source with its streams. `received` are the times of the events, on the clock of the transactions."""

    transactions: tuple[Transaction, ...]
    writes: tuple[Write, ...]
    log: tuple[Event, ...]
    received: tuple[int, ...]
    contract: StreamContract


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """`kind`: one of CLIENT, or in, out, chain, or side (from the read side of a transaction to its commit)."""

    source: Node
    target: Node
    kind: str
    chain: Chain | None = None
    key: int = NEVER
    is_locked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Using:
    """From which evidence edges are drawn."""

    versions: bool = True  # 2a, and the client's ww and rw.
    delivery: bool = True  # 2b.
    realtime: bool = True  # And the order of processes.


def behind(order: list[int], version: int) -> int | None:
    """What stands behind that version in an order of those of its key, if anything does."""
    if version != INITIAL and version not in order:
        return None
    place = 0 if version == INITIAL else order.index(version) + 1
    return order[place] if place < len(order) else None


class Source:
    """What is known of the source: Committed*, the order of versions, and the edges among transactions."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.writes = world.writes
        self.outcome = {t.index: t.outcome for t in world.transactions}
        shown = {self.shown(e) for e in world.log if e.kind in (ROW, BACKFILL)}
        read = {self.read(r) for t in world.transactions if t.outcome == OK for r in t.reads}
        self.observed = {self.writes[v].op for v in (shown | read) - {None, INITIAL} if v is not None}

    def is_committed(self, op: int) -> bool:
        return self.outcome[op] == OK or (self.outcome[op] == INFO and op in self.observed)

    @cached_property
    def committed(self) -> list[Transaction]:
        """Committed*."""
        return [t for t in self.world.transactions if self.is_committed(t.index)]

    def shown(self, event: Event) -> int | None:
        """The version that a row shows, None for a phantom and for a delete that fits several."""
        fits = self._fitting(event.key, event.value)
        placed = [v for v in fits if event.position != NEVER and self.writes[v].position == event.position]
        if event.value == NEVER and len(placed) > 1:
            placed = [v for v in placed if self.writes[v].ordinal == event.ordinal]
        return placed[0] if len(placed) == 1 else fits[0] if len(fits) == 1 else None

    def read(self, read: Read) -> int | None:
        """The version that was read. Nothing is the initial one only if the key was never deleted."""
        fits = self._fitting(read.key, read.value)
        if read.value == NEVER:
            return None if fits else INITIAL
        return fits[0] if len(fits) == 1 else None

    def _fitting(self, key: int, value: int) -> list[int]:
        return [v for v, w in enumerate(self.writes) if (w.key, w.value) == (key, value) and self.outcome[w.op] != FAIL]

    @cached_property
    def orders(self) -> dict[int, list[int]]:
        """Of each key the versions that have a place, in order."""
        ranked = [v for v, w in enumerate(self.writes) if self.is_committed(w.op) and w.version != NEVER]
        keys = sorted({w.key for w in self.writes})
        return {
            k: sorted((v for v in ranked if self.writes[v].key == k), key=lambda v: self.writes[v].version)
            for k in keys
        }

    def following(self, key: int, version: int) -> int | None:
        """The next known version behind that one."""
        return behind(self.orders.get(key, []), version)

    def told_elsewhere(self, key: int, subscriber: int) -> list[int]:
        """The versions of a key as another subscriber first received them, in the session that has most.

        Nobody tells if sessions contradict each other, if a watermark is of more than one subscriber, or if the stream
        may skip versions or orders none.
        """
        contract = self.world.contract
        is_told = contract.versions == "every" and contract.order_key != "none"
        if not is_told or contract.wm_scope in ("partition", "global"):
            return []
        sessions: dict[tuple[int, int], list[int]] = {}
        for event in self.world.log:
            version = self.shown(event) if (event.kind, event.key) == (ROW, key) else None
            result = sessions.setdefault((event.subscriber, event.session), [])
            if version is not None and version not in result:
                result.append(version)
        pairs = [pair for result in sessions.values() for pair in pairwise(result)]
        others = [result for (who, _), result in sorted(sessions.items()) if who != subscriber]
        return max(others, key=len, default=[]) if nx.is_directed_acyclic_graph(nx.DiGraph(pairs)) else []

    def edges(self, using: Using) -> Iterator[Edge]:
        """The client's edges; those of a transaction that reads as of a position leave from its read side."""
        if using.versions:
            for order in self.orders.values():
                for one, two in pairwise(order):
                    yield self._edge(self.writes[one].op, self.writes[two].op, "ww")
        for t in self.committed:
            yield from self._of_reads(t, using)
            for u in self.committed:
                # A read as of a position is of that moment, whenever it was asked for.
                is_late = t.outcome == OK and t.complete < u.invoke and self.node(u.index)[0] != "r"
                if using.realtime and is_late:
                    yield self._edge(t.index, u.index, "rt")
                    if t.process == u.process:
                        yield self._edge(t.index, u.index, "process")

    def _of_reads(self, t: Transaction, using: Using) -> Iterator[Edge]:
        is_as_of = t.as_of != NEVER
        reader: Node = ("r", t.index) if is_as_of else ("t", t.index)
        chain = ("read", t.index) if is_as_of else None
        for read in t.reads if t.outcome == OK else ():
            version = self.read(read)
            if version is None:
                continue
            if version != INITIAL:
                kind = "in" if is_as_of else "wr"
                writer = self.node(self.writes[version].op)
                yield Edge(source=writer, target=reader, kind=kind, chain=chain, key=read.key)
            following = self.following(read.key, version)
            if following is not None and using.versions:
                writer, kind = self.node(self.writes[following].op), "out" if is_as_of else "rw"
                locked = read.is_locked
                yield Edge(source=reader, target=writer, kind=kind, chain=chain, key=read.key, is_locked=locked)
        if is_as_of and self.node(t.index) != reader:
            yield Edge(source=reader, target=("t", t.index), kind="side", chain=chain)

    def node(self, op: int) -> Node:
        """A transaction is its own read side if it writes nothing and reads as of a position."""
        is_read = any(t.index == op and t.as_of != NEVER for t in self.world.transactions)
        return ("r", op) if is_read and all(w.op != op for w in self.writes) else ("t", op)

    def _edge(self, one: int, two: int, kind: str) -> Edge:
        return Edge(source=self.node(one), target=self.node(two), kind=kind)
