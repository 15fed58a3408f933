"""Collections: the elements that were added, and the reads that showed them. Shared by sets and causal order.

A plain history adds single values (f is add, write or insert), and a read returns a list or a set. If it has several
collections, as in [key, value], they are kept apart only if the reads name theirs as well: [key, [values]]. In
transactions over lists each key is a collection: an append adds to it, and a read reads it.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from checkers.invariants.operations import Op, Token, collection, keyed, token
from harness.core.columns import FAIL, NEVER, OK
from harness.core.record import Json

PUTS: Final = ("add", "write", "insert")
PLAIN: Final = "the set"


class Put(NamedTuple):
    """An attempt to add an element. `after` is NEVER unless it certainly happened."""

    number: int
    after: int
    outcome: int
    element: Token


class Read(NamedTuple):
    """A successful read and the elements that it showed."""

    number: int
    after: int
    elements: tuple[Token, ...]
    ended: int = NEVER  # The place of its completion in the journal.


class Members(NamedTuple):
    """One collection: all attempts to add, and all reads, by index."""

    puts: list[Put]
    reads: list[Read]


def collections(operations: Sequence[Op]) -> dict[Token, Members]:
    """The collections of a history, by name."""
    found: defaultdict[Token, Members] = defaultdict(lambda: Members([], []))
    is_keyed = _is_keyed(operations)
    for op in operations:
        puts, reads = op.appends, op.reads
        if op.mops is None and op.f in PUTS:
            puts = [_target(op.given, is_keyed=is_keyed)]
        elif op.mops is None and op.f == "read" and op.is_ok:
            reads = _plain_reads(op, is_keyed=is_keyed)
        until = op.after if op.outcome == OK else NEVER
        for name, element in puts:
            found[name].puts.append(Put(op.number, until, op.outcome, element))
        for name, elements in reads:
            found[name].reads.append(Read(op.number, op.after, elements, op.ended))
    return found


def _is_keyed(operations: Sequence[Op]) -> bool:
    """True if every read that was answered with something names its collection."""
    reads = [op.value for op in operations if op.mops is None and op.f == "read" and op.is_ok]
    shown = [read for read in reads if not _is_nothing(read)]
    return bool(shown) and all(keyed(read) is not None for read in shown)


def _is_nothing(read: Json) -> bool:
    """True for null, and for [key, null]: of a collection that nobody has added to yet there may be no more to say."""
    return read is None or (isinstance(read, list) and len(read) == 2 and read[1] is None)


def _plain_reads(op: Op, *, is_keyed: bool) -> list[tuple[Token, tuple[Token, ...]]]:
    name, values = PLAIN, collection(op.value)
    if is_keyed:
        key, values = keyed(op.value) or (None, None)
        name = str(token(key))
    return [] if values is None else [(name, tuple(map(token, values)))]


def _target(value: Json, *, is_keyed: bool) -> tuple[Token, Token]:
    if is_keyed and isinstance(value, list) and len(value) == 2:
        return str(token(value[0])), token(value[1])
    return PLAIN, token(value)


def is_failed(put: Put) -> bool:
    """True if the attempt certainly did not happen."""
    return put.outcome == FAIL
