"""Slow, obvious twins of the kernels of cuts and freshness: all pairs of operations, over records."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from harness.core.record import Complete, Evidence, Invoke, Json, MicroOp

LOCKS = ("shared", "exclusive")


@dataclass(frozen=True)
class Op:
    """An ok operation: when it was invoked and answered, what it did, and its epoch if it wrote."""

    index: int
    invoked: int
    answered: int
    mops: tuple[MicroOp, ...]
    epoch: int | None

    def appends(self, key: object) -> list[Json]:
        return [mop.value for mop in self.mops if mop.f == "append" and mop.key == key]

    def reads(self, key: object) -> list[list[Json]]:
        return [mop.value for mop in self.mops if mop.f == "r" and mop.key == key and isinstance(mop.value, list)]

    def holds(self, key: object) -> bool:
        """Did it read that key under lock only?"""
        locks = [mop.lock for mop in self.mops if mop.f == "r" and mop.key == key]
        return bool(locks) and all(lock in LOCKS for lock in locks)


def ops(records: Sequence[Evidence]) -> list[Op]:
    """The ok operations."""
    invoked = {record.index: at for at, record in enumerate(records) if isinstance(record, Invoke)}
    return [
        Op(record.index, invoked[record.index], at, record.mops or (), record.epoch if record.commit_ts else None)
        for at, record in enumerate(records)
        if isinstance(record, Complete) and record.outcome == "ok"
    ]


def keys(every: Sequence[Op]) -> list[object]:
    return sorted({mop.key for op in every for mop in op.mops}, key=str)


def order(every: Sequence[Op], key: object) -> list[Json]:
    """The longest read of a key, the earliest if there are several."""
    reads = [(op.index, seen) for op in every for seen in op.reads(key)]
    return max((seen for _, seen in sorted(reads, key=lambda read: read[0])), key=len, default=[])


def edges(records: Sequence[Evidence], *, is_any_lock: bool = False) -> Iterator[tuple[str, Op, Op]]:
    """Every pair of writers of which the first precedes the second, and why. `is_any_lock`: rw of every read, too."""
    every = ops(records)
    writers = [op for op in every if op.epoch is not None]
    orders = {key: order(every, key) for key in keys(every)}
    for a, b in product(writers, writers):
        if a is b:
            continue
        if a.answered < b.invoked:
            yield "rt", a, b
        for key, versions in orders.items():
            place = {element: at for at, element in enumerate(versions)}
            before = [place[element] for element in a.appends(key) if element in place]
            after = [place[element] for element in b.appends(key) if element in place]
            if before and after and min(before) < max(after):
                yield "ww", a, b
            if any(
                seen == versions[: len(seen)] and element in seen for element in a.appends(key) for seen in b.reads(key)
            ):
                yield "wr", a, b
            reads = a.reads(key) if is_any_lock or a.holds(key) else []
            if any(seen == versions[: len(seen)] and after and max(after) >= len(seen) for seen in reads):
                yield "rw", a, b


def broken(records: Sequence[Evidence], *, is_any_lock: bool = False) -> dict[str, int]:
    """For each kind of edge that leads back to an older epoch, the greatest fall."""
    falls: dict[str, int] = {}
    for kind, a, b in edges(records, is_any_lock=is_any_lock):
        fall = (a.epoch or 0) - (b.epoch or 0)
        if fall > 0:
            falls[kind] = max(falls.get(kind, 0), fall)
    return falls


def stale(records: Sequence[Evidence]) -> set[int]:
    """The operations with a read that misses what it must show."""
    every = ops(records)
    return {op.index for op in every for at in range(len(op.mops)) if _is_stale(every, op, at)}


def _is_stale(every: Sequence[Op], op: Op, at: int) -> bool:
    read = op.mops[at]
    if read.f != "r" or not isinstance(read.value, list):
        return False
    seen, key = read.value, read.key
    earlier = [other for other in every if other.answered < op.invoked]
    if any(element not in seen for other in earlier for element in other.appends(key)):
        return True
    own = [mop.value for mop in op.mops[:at] if mop.f == "append" and mop.key == key]
    if own and own[-1] not in seen:
        return True
    versions = order(every, key)
    if seen != versions[: len(seen)]:
        return False
    shown = [other for each in earlier for other in each.reads(key) if other == versions[: len(other)]]
    return any(len(other) > len(seen) for other in shown)
