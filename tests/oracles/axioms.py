"""Independent on purpose: models by their axioms, decided by trying every order of commits. Plain loops.

An order of commits explains a history under a model if each external read shows the last version that is visible to it.
Sources: Biswas and Enea, OOPSLA 2019; for update atomic and parallel snapshot isolation Cerone, Bernardi and Gotsman,
CONCUR 2015.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from checkers.history.transactions import Append, Load, Operation, Read, Store
from harness.core.columns import FAIL, NOTHING, OK

Pairs = set[tuple[int, int]]
INITIAL = -1


class ExternalRead(NamedTuple):
    """What transaction `reader` read of `key` as its mop number `place`: what `writer` (or INITIAL) installed."""

    reader: int
    place: int
    key: int
    writer: int


class Facts(NamedTuple):
    """A history without its values. `timed` are the pairs of which one comes first in time."""

    ops: tuple[int, ...]
    timed: Pairs
    reads: tuple[ExternalRead, ...]
    writes: Pairs  # (operation, key)


def facts(operations: Sequence[Operation], time: str) -> Facts:
    """Who is committed, who came first in time, and who read from whom."""
    writers = {
        (mop.key, mop[1]): one.index
        for one in operations
        if one.outcome != FAIL
        for mop in one.mops
        if isinstance(mop, Append | Store)
    }
    seen = {
        (mop.key, value)
        for one in operations
        if one.outcome == OK
        for mop in one.mops
        for value in (mop.elements or () if isinstance(mop, Read) else (mop[1],))
        if isinstance(mop, Read | Load)
    }
    ops = [
        one
        for one in operations
        if one.outcome == OK
        or (one.outcome != FAIL and any((mop.key, mop[1]) in seen for mop in one.mops if not isinstance(mop, Read)))
    ]
    reads = tuple(read for one in ops if one.outcome == OK for read in _external(one, writers))
    writes = {(one.index, mop.key) for one in ops for mop in one.mops if isinstance(mop, Append | Store)}
    return Facts(tuple(one.index for one in ops), timed(ops, time), reads, writes)


def timed(live: Sequence[Operation], time: str) -> Pairs:
    """The pairs in an order of time: "" for none, "process" or "realtime"."""
    return {
        (a.index, b.index)
        for a in live
        for b in live
        if time and a.outcome == OK and a.after <= b.index
        if time == "realtime" or a.process == b.process
    }


def _external(one: Operation, writers: dict[tuple[int, int], int]) -> Iterator[ExternalRead]:
    """The external reads of the operation, as EXT has them for an append that observes the list that it extends.

    So a list that ends with all that the operation has appended to it shows what was there before.
    """
    written: dict[int, list[Append | Store]] = {}
    for place, mop in enumerate(one.mops):
        if isinstance(mop, Append | Store):
            written.setdefault(mop.key, []).append(mop)
            continue
        own = written.get(mop.key, [])
        if isinstance(mop, Load):
            if own:
                continue
            value = mop.value
        else:
            if mop.elements is None:
                continue
            rest = list(mop.elements)
            while own and rest and own[-1] == Append(mop.key, rest[-1]):
                own, rest = own[:-1], rest[:-1]
            if own:
                continue
            value = rest[-1] if rest else NOTHING
        yield ExternalRead(one.index, place, mop.key, INITIAL if value == NOTHING else writers[mop.key, value])


def _closed(pairs: Pairs) -> Pairs:
    result = set(pairs)
    while more := {(a, d) for a, b in result for c, d in result if b == c} - result:
        result |= more
    return result


def holds(operations: Sequence[Operation], model: str, time: str = "") -> bool:
    """True if some order of commits explains all external reads under that model, with that order of time."""
    known = facts(operations, time)
    base = {(read.writer, read.reader) for read in known.reads if read.writer not in {INITIAL, read.reader}}
    base |= known.timed
    for order in permutations(known.ops):
        at = {op: place for place, op in enumerate(order)}
        if any(at[a] >= at[b] for a, b in base) or not _fits_lists(operations, known, order):
            continue
        if explains(known, at, VISIBLE[model](known, base, at)):
            return True
    return False


def _fits_lists(operations: Sequence[Operation], known: Facts, order: Sequence[int]) -> bool:
    """True if each read of a list shows the first elements of what is appended in that order."""
    by_index = {one.index: one for one in operations}
    lists: dict[int, list[int]] = {}
    for op in order:
        for mop in by_index[op].mops:
            if isinstance(mop, Append):
                lists.setdefault(mop.key, []).append(mop.element)
    reads = [
        mop for op in known.ops if by_index[op].outcome == OK for mop in by_index[op].mops if isinstance(mop, Read)
    ]
    return all(
        read.elements is None or tuple(lists.get(read.key, [])[: len(read.elements)]) == read.elements for read in reads
    )


def explains(known: Facts, at: dict[int, int], is_visible: Callable[[int, ExternalRead], bool]) -> bool:
    """True if no visible writer of what a read shows comes after the one that it shows."""
    return not any(
        writer not in {read.writer, read.reader}
        and is_visible(writer, read)
        and (read.writer == INITIAL or at[writer] > at[read.writer])
        for read in known.reads
        for writer, key in known.writes
        if key == read.key
    )


Visible = Callable[[int, ExternalRead], bool]


def _nothing(known: Facts, base: Pairs, at: dict[int, int]) -> Visible:
    """Adya's PL-2: reads and the order of versions have no cycle, and no transaction must see more."""
    return lambda op, read: False


def _view(known: Facts, base: Pairs, at: dict[int, int]) -> Visible:
    del base, at
    return lambda writer, read: any(
        (other.reader, other.writer) == (read.reader, writer) and other.place < read.place for other in known.reads
    )


def _atomic(known: Facts, base: Pairs, at: dict[int, int]) -> Visible:
    del known, at
    return lambda writer, read: (writer, read.reader) in base


def _causal(known: Facts, base: Pairs, at: dict[int, int]) -> Visible:
    del known, at
    causes = _closed(base)
    return lambda writer, read: (writer, read.reader) in causes


def _parallel(known: Facts, base: Pairs, at: dict[int, int]) -> Visible:
    causes = _closed(base | _conflicts(known, at))
    return lambda writer, read: (writer, read.reader) in causes


def _update(known: Facts, base: Pairs, at: dict[int, int]) -> Visible:
    seen = base | _conflicts(known, at)
    return lambda writer, read: (writer, read.reader) in seen


def _prefix(known: Facts, base: Pairs, at: dict[int, int]) -> Visible:
    del known
    return lambda writer, read: any(b == read.reader and at[writer] <= at[a] for a, b in base)


def _snapshot(known: Facts, base: Pairs, at: dict[int, int]) -> Visible:
    return _prefix(known, base | _conflicts(known, at), at)


def _serial(known: Facts, base: Pairs, at: dict[int, int]) -> Visible:
    del known, base
    return lambda writer, read: at[writer] < at[read.reader]


def _conflicts(known: Facts, at: dict[int, int]) -> Pairs:
    return {(a, b) for a, key in known.writes for b, other in known.writes if key == other and at[a] < at[b]}


VISIBLE: dict[str, Callable[[Facts, Pairs, dict[int, int]], Visible]] = {
    "committed": _nothing,
    "non-monotonic-view": _view,
    "fractured-read": _atomic,
    "causal-violation": _causal,
    "update": _update,
    "parallel": _parallel,
    "prefix": _prefix,
    "snapshot": _snapshot,
    "serial": _serial,
}
