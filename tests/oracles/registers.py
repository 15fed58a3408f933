"""Independent on purpose: the slow, obvious twin of the check of registers. Plain loops, all pairs, all cycles."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import networkx as nx

from checkers.history.registers import Order, Trust
from checkers.history.transactions import Load, Operation, Store
from harness.core.columns import FAIL, NEVER, NOTHING, OK
from tests.oracles.serializability import Labels

Pairs = dict[int, set[tuple[int, int]]]  # For each key: one version comes before another.


class Touch(NamedTuple):
    """What an operation did to a register: its external read and its final write, None where it did not."""

    op: Operation
    key: int
    read: int | None
    write: int | None

    @property
    def met(self) -> int:
        return self.read if self.read is not None else self.left

    @property
    def left(self) -> int:
        assert self.write is not None or self.read is not None
        return self.write if self.write is not None else self.met


def on(operation: Operation, key: int) -> list[Load | Store]:
    """What an operation did to a register; what it read counts if it is ok."""
    kinds = (Load, Store) if operation.outcome == OK else Store
    return [mop for mop in operation.mops if isinstance(mop, kinds) and mop.key == key]


def keys_of(operations: Sequence[Operation]) -> list[int]:
    return sorted({mop.key for op in operations for mop in op.mops})


def touches(operations: Sequence[Operation]) -> list[Touch]:
    """One for each operation and register; of a value that was written twice no write counts."""
    result = []
    _, twice = ambiguous(operations)
    spare = spare_writes(operations)
    for op in operations:
        for key in keys_of([op]):
            mops = on(op, key)
            stores = [mop.value for mop in mops if isinstance(mop, Store)]
            first = mops[0].value if mops and isinstance(mops[0], Load) else None
            counts = bool(stores) and (key, stores[-1]) not in twice and (op.index, key, stores[-1]) not in spare
            last = stores[-1] if counts else None
            if first is not None or last is not None:
                result.append(Touch(op, key, first, last))
    return result


def ambiguous(operations: Sequence[Operation]) -> tuple[set[int], set[tuple[int, int]]]:
    """The registers of which nothing follows, and the values that were written twice."""
    writes = [(mop.key, mop.value) for op, mop in stores_of(operations)]
    twice = {write for write in writes if writes.count(write) + (write[1] == NOTHING) > 1}
    read = {pair for op in operations for pair in telling_reads(op)}
    return {key for key, _ in twice & read}, twice


def stores_of(operations: Sequence[Operation]) -> list[tuple[Operation, Store]]:
    """The writes that count, with their operations."""
    spare = spare_writes(operations)
    every = [(op, mop) for op in operations for mop in op.mops if isinstance(mop, Store)]
    return [(op, mop) for op, mop in every if (op.index, mop.key, mop.value) not in spare]


def spare_writes(operations: Sequence[Operation]) -> set[tuple[int, int, int]]:
    """Failed writes of values that an operation which did not fail wrote, too, or that were there at first."""
    every = [(op, mop.key, mop.value) for op in operations for mop in op.mops if isinstance(mop, Store)]
    others = {(key, value) for op, key, value in every if op.outcome != FAIL}
    return {
        (op.index, key, value)
        for op, key, value in every
        if op.outcome == FAIL and (value == NOTHING or (key, value) in others)
    }


def telling_reads(op: Operation) -> Iterator[tuple[int, int]]:
    """The reads that do not just show what the operation itself read or wrote before."""
    for key in keys_of([op]):
        mops = on(op, key)
        for place, mop in enumerate(mops):
            if isinstance(mop, Load) and (place == 0 or mops[place - 1].value != mop.value):
                yield key, mop.value


def foreign_reads(op: Operation) -> Iterator[tuple[int, int]]:
    """The telling reads, without those of its own values after it had used the register."""
    own = [tuple(mop) for mop in op.mops if isinstance(mop, Store)]
    for key, value in telling_reads(op):
        first = on(op, key)[0]
        if (key, value) not in own or (isinstance(first, Load) and first.value == value):
            yield key, value


def cleaned(operations: Sequence[Operation]) -> list[Operation]:
    """The operations without ambiguous registers."""
    keys, _ = ambiguous(operations)
    return [
        Operation(
            op.index,
            op.process,
            op.outcome,
            op.after,
            tuple(mop for mop in op.mops if mop.key not in keys),
            op.commit,
        )
        for op in operations
    ]


def ended_before(one: Operation, other: Operation) -> bool:
    return one.outcome == OK and one.after <= other.index


def by_real_time(all_touches: list[Touch]) -> Pairs:
    """All pairs of versions, one left before the other was met."""
    result: Pairs = {}
    for one in all_touches:
        for other in all_touches:
            if one.key == other.key and other.op.outcome != FAIL and ended_before(one.op, other.op):
                add_pair(result, one.key, one.left, other.met)
    return result


def by_process(all_touches: list[Touch]) -> Pairs:
    """Pairs of what a process left and what it met the next time."""
    result: Pairs = {}
    for one in all_touches:
        same = [each for each in all_touches if each.key == one.key and each.op.process == one.op.process]
        later = [each for each in same if each.op.index > one.op.index and each.op.outcome == OK]
        if one.op.outcome == OK and later:
            add_pair(result, one.key, one.left, min(later, key=lambda each: each.op.index).met)
    return result


def add_pair(pairs: Pairs, key: int, earlier: int, later: int) -> None:
    if earlier != later:
        pairs.setdefault(key, set()).add((earlier, later))


def by_reads(all_touches: list[Touch]) -> Pairs:
    result: Pairs = {}
    for touch in all_touches:
        if touch.op.outcome == OK and touch.read is not None and touch.write is not None:
            add_pair(result, touch.key, touch.read, touch.write)
    return result


def by_commits(all_touches: list[Touch]) -> Pairs:
    """All pairs of final writes that are ok, or that a read shows."""
    shown = {read for touch in all_touches if touch.op.outcome == OK for read in telling_reads(touch.op)}
    writes = [
        each
        for each in all_touches
        if each.write is not None
        and (each.op.outcome == OK or (each.op.outcome != FAIL and (each.key, each.write) in shown))
    ]
    result: Pairs = {}
    for one in writes:
        for other in writes:
            if one.key == other.key and one.op.commit < other.op.commit != NEVER:
                add_pair(result, one.key, one.left, other.left)
    return result


def initial(all_touches: list[Touch]) -> Pairs:
    result: Pairs = {}
    for touch in all_touches:
        for version in {touch.met, touch.left} - {NOTHING}:
            result.setdefault(touch.key, set()).add((NOTHING, version))
    return result


def given(all_touches: list[Touch], order: Order) -> tuple[Pairs, int]:
    """The order that counts for every model, and how many circles of versions there are."""
    sources = [
        (order.commits, by_commits(all_touches)),
        (order.writes_follow_reads, by_reads(all_touches)),
        (order.process is Trust.GIVEN, by_process(all_touches)),
        (order.real_time is Trust.GIVEN, by_real_time(all_touches)),
    ]
    known, circles = initial(all_touches), 0
    for is_used, pairs in sources:
        for key, new in pairs.items() if is_used else ():
            graph: nx.DiGraph[int] = nx.DiGraph([*known.get(key, set()), *new])
            sizes = [len(component) for component in nx.strongly_connected_components(graph)]
            circles += sum(size > 1 for size in sizes)
            if max(sizes) == 1:
                known[key] = known.get(key, set()) | new
    return known, circles


def labels(operations: Sequence[Operation], order: Order) -> tuple[Labels, int]:
    """Every pair of operations of which the first must precede the second, and why; and the circles of versions."""
    every = touches(operations)
    writers = {(each.key, each.write): each.op for each in every if each.write is not None and each.op.outcome != FAIL}
    result: Labels = {}

    def add(before: Operation | None, after: Operation | None, label: str) -> None:
        is_known = label.endswith("-realtime") and before and after and ended_before(before, after)
        if before and after and before.index != after.index and not is_known:
            result.setdefault((before.index, after.index), set()).add(label)

    def add_order(pairs: Pairs, suffix: str) -> None:
        for key, ordered in pairs.items():
            for earlier, later in ordered:
                add(writers.get((key, earlier)), writers.get((key, later)), "ww" + suffix)
                for op, *read in seen:
                    if read == [key, earlier]:
                        add(op, writers.get((key, later)), "rw" + suffix)

    seen = [(op, *read) for op in operations if op.outcome == OK for read in foreign_reads(op)]
    for op, key, value in seen:
        add(writers.get((key, value)), op, "wr")
    known, circles = given(every, order)
    add_order(known, "")
    if order.process is Trust.TIMED:
        add_order(
            by_process([each for each in every if {(each.key, each.met), (each.key, each.left)} <= set(writers)]),
            "-process",
        )
    if order.real_time is Trust.TIMED:
        timed = by_real_time(every).items()
        add_order(
            {key: {pair for pair in pairs if {(key, pair[0]), (key, pair[1])} <= set(writers)} for key, pairs in timed},
            "-realtime",
        )
    return result, circles


def others(operations: Sequence[Operation]) -> dict[str, int]:
    """How often each anomaly of single registers occurs, by the count of its finding."""
    clean = cleaned(operations)
    counts = {
        "internal": sum(op.outcome == OK and contradicts_itself(op) for op in operations),
        "G0": interleaved(clean),
        "missed-own-write": sum(op.outcome == OK and misses_its_own(op) for op in operations),
        "future-read": sum(future_reads(op, key) for op in clean if op.outcome == OK for key in keys_of([op])),
        **reads(clean),
        "lost-update": lost(clean),
    }
    return {name: count for name, count in counts.items() if count}


def contradicts_itself(op: Operation) -> bool:
    return any(
        isinstance(mop, Load) and mop.value != before.value
        for key in keys_of([op])
        for before, mop in pairwise(on(op, key))
    )


def interleaved(operations: Sequence[Operation]) -> int:
    """The number of pairs of operations, by register, of which each read the other's write before it wrote itself."""
    writers = {(mop.key, mop.value): op for op, mop in stores_of(operations)}
    met = set[tuple[int, int, int]]()
    for op in operations:
        told = set(telling_reads(op)) if op.outcome == OK else set()
        for at, mop in enumerate(op.mops):
            if isinstance(mop, Load) and (mop.key, mop.value) in told:
                writer = writers.get((mop.key, mop.value))
                is_followed = any(isinstance(each, Store) and each.key == mop.key for each in op.mops[at:])
                if is_followed and writer is not None and writer.index != op.index and writer.outcome != FAIL:
                    met.add((mop.key, op.index, writer.index))
    return sum((key, writer, reader) in met for key, reader, writer in met if reader < writer)


def misses_its_own(op: Operation) -> bool:
    """True if a read after an own write does not show what that wrote."""
    for key in keys_of([op]):
        last = None
        for mop in on(op, key):
            if isinstance(mop, Store):
                last = mop.value
            elif last is not None and mop.value != last:
                return True
    return False


def future_reads(op: Operation, key: int) -> int:
    """The number of reads of a value that the operation itself, and no other, writes only later.

    A read that repeats what the operation knew is not counted again.
    """
    count = 0
    mops = on(op, key)
    stored = [mop.value if isinstance(mop, Store) else None for mop in mops]
    for at, mop in enumerate(mops):
        is_new = at == 0 or mop.value != mops[at - 1].value
        if isinstance(mop, Load) and is_new and mop.value in stored[at:] and mop.value not in stored[:at]:
            count += 1
    return count


def reads(operations: Sequence[Operation]) -> dict[str, int]:
    """The reads that show what no other transaction may see; all registers are declared to be empty at first."""
    writes = {
        (mop.key, mop.value): (op, mop is [each for each in on(op, mop.key) if isinstance(each, Store)][-1])
        for op, mop in stores_of(operations)
    }
    counts = {"unwritten-read": 0, "G1a": 0, "G1b": 0}
    for op in operations:
        for key, value in telling_reads(op) if op.outcome == OK else ():
            if value == NOTHING:
                continue
            writer, is_final = writes.get((key, value), (None, True))
            counts["unwritten-read"] += writer is None
            counts["G1a"] += writer is not None and writer.outcome == FAIL
            counts["G1b"] += writer is not None and not is_final and writer.index != op.index
    return counts


def lost(operations: Sequence[Operation]) -> int:
    """How many versions were read by two or more ok operations that wrote to the register afterwards."""
    versions = [
        (each.key, each.read)
        for each in touches(operations)
        if each.op.outcome == OK and each.read is not None and each.write is not None
    ]
    return sum(versions.count(version) > 1 for version in set(versions))
