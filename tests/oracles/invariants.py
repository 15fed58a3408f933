"""The definitions of the simple checks, word for word: every pair, every subset, no arithmetic on ranks but `precedes`.

Each answers with what is wrong, by operation or element, so that a test can compare more than whether anything is.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, permutations

from checkers.invariants.operations import Op
from harness.core.columns import FAIL, INFO
from harness.core.record import Json


def precedes(one: Op, other: Op) -> bool:
    """Had the first ended before the other began?"""
    return one.after <= other.number


def impossible_counts(ops: Sequence[Op]) -> set[int]:
    """Reads of a counter between no two sums of what may have been added."""
    wrong = set()
    adds = [op for op in ops if op.f == "add" and op.outcome != FAIL]
    for read in (op for op in ops if op.f == "read" and op.is_ok):
        certain = [add for add in adds if add.is_ok and precedes(add, read)]
        maybe = [add for add in adds if add not in certain and add.number < read.after]
        sums = [sum(_amount(each) for each in (*certain, *some)) for some in subsets(maybe)]
        if not min(sums) <= _amount_of(read.value) <= max(sums):
            wrong.add(read.number)
    return wrong


def subsets(ops: Sequence[Op]) -> Iterator[tuple[Op, ...]]:
    """All subsets of a few operations."""
    return chain.from_iterable(combinations(ops, size) for size in range(len(ops) + 1))


def _amount(op: Op) -> int:
    return _amount_of(op.argument)


def _amount_of(value: Json) -> int:
    assert isinstance(value, int)
    return value


def gone(ops: Sequence[Op]) -> tuple[set[str], set[str]]:
    """The lost elements of a set, and the stale ones."""
    lost: set[str] = set()
    stale: set[str] = set()
    reads = [op for op in ops if op.f == "read" and op.is_ok]
    for element in {str(op.argument) for op in ops if op.f == "add"}:
        showing = [read for read in reads if element in map(str, _values(read.value))]
        lacking = [read for read in reads if read not in showing]
        adds = [op for op in ops if op.f == "add" and op.is_ok and str(op.argument) == element]
        known = (*adds, *showing)
        late = [read for read in lacking if any(precedes(op, read) for op in known)]
        if late and max(late) == max(lacking):
            (lost if not showing or max(showing) < max(late) else stale).add(element)
    return lost, stale


def _values(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def forked(ops: Sequence[Op]) -> bool:
    """Are there two reads of the same keys neither of which contains the other?"""
    views = [{mop.key: len(mop.elements or ()) for mop in op.mops or ()} for op in ops if op.is_ok]
    return any(
        one.keys() == two.keys() and any(one[key] > two[key] for key in one) and any(one[key] < two[key] for key in one)
        for one, two in combinations(views, 2)
    )


def skewed(ops: Sequence[Op]) -> bool:
    """Are there two transactions that read two keys, append to one each, and miss each other's element?"""
    parts = []
    for op in (op for op in ops if op.is_ok and op.mops is not None):
        reads = {mop.key: mop.elements for mop in op.mops or () if mop.elements is not None}
        (target, element) = next((mop.key, mop.element) for mop in op.mops or () if mop.element is not None)
        parts.append((reads, target, element))
    return any(
        reads.keys() == others.keys() and target != other and element not in others[target] and mine not in reads[other]
        for (reads, target, element), (others, other, mine) in permutations(parts, 2)
    )


def reversed_reads(ops: Sequence[Op]) -> set[int]:
    """Reads that show a write, and lack one that had succeeded before that began."""
    writes = [op for op in ops if op.f == "write"]
    return {
        read.number
        for read in ops
        if read.f == "read" and read.is_ok
        for later in writes
        for earlier in writes
        if later.argument in _values(read.value)
        and earlier.is_ok
        and precedes(earlier, later)
        and earlier.argument not in _values(read.value)
    }


def unfounded(ops: Sequence[Op]) -> bool:
    """Is there a moment at which more of a value had come out of a queue than anybody had begun to put in?"""
    for moment in (op.after for op in ops if op.f == "dequeue" and op.is_ok):
        out = [op.value for op in ops if op.f == "dequeue" and op.is_ok and op.after <= moment]
        into = [op.argument for op in ops if op.f == "enqueue" and op.outcome != FAIL and op.number < moment]
        if any(out.count(value) > into.count(value) for value in out):
            return True
    return False


def surely_lost(ops: Sequence[Op]) -> int:
    """How many acknowledged values cannot have come out, whatever the dequeues of unclear outcome took."""
    out = [op.value for op in ops if op.f == "dequeue" and op.is_ok]
    unclear = sum(op.f == "dequeue" and op.outcome == INFO for op in ops)
    missing = 0
    for op in ops:
        if op.f == "enqueue" and op.is_ok:
            if op.argument in out:
                out.remove(op.argument)
            else:
                missing += 1
    return max(0, missing - unclear)


def went_back(ops: Sequence[Op]) -> set[int]:
    """Reads by which a process lacks what its last read of that key had shown."""
    wrong = set()
    for one, two in combinations(ops, 2):
        between = [op for op in ops if one < op < two and op.process == one.process]
        if one.process == two.process and not between:
            (first,), (second,) = one.mops or (), two.mops or ()
            if not set(first.elements or ()) <= set(second.elements or ()):
                wrong.add(two.number)
    return wrong
