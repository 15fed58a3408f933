"""Collections: the elements that were put in, and the reads that showed them. Shared by sets and causal order.

A plain history puts in single values (f is add, write or insert), and a read returns a list or a set. If it has several
collections, as in [key, value], they are kept apart only if the reads name theirs as well: [key, [values]]. In
transactions over lists each key is a collection, an append puts in, a read reads.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from checkers.invariants.operations import Op, Token, collection, token
from harness.core.columns import FAIL, NEVER, OK
from harness.core.record import Json

PUTS: Final = ("add", "write", "insert")
PLAIN: Final = "the set"


class Put(NamedTuple):
    """An attempt to put an element in. `after` is NEVER unless that certainly happened."""

    number: int
    after: int
    outcome: int
    element: Token


class Read(NamedTuple):
    """A successful read and the elements that it showed."""

    number: int
    after: int
    elements: tuple[Token, ...]


class Members(NamedTuple):
    """One collection: all attempts to put in, and all reads, by index."""

    puts: list[Put]
    reads: list[Read]


def collections(operations: Sequence[Op]) -> dict[Token, Members]:
    """The collections of a history by name."""
    found: dict[Token, Members] = {}
    is_keyed = _is_keyed(operations)
    for op in operations:
        for name, what in _parts(op, is_keyed=is_keyed):
            members = found.setdefault(name, Members([], []))
            if isinstance(what, Put):
                members.puts.append(what)
            else:
                members.reads.append(what)
    return found


def _is_keyed(operations: Sequence[Op]) -> bool:
    """True if every read names its collection."""
    reads = [collection(op.value) for op in operations if op.mops is None and op.f == "read" and op.is_ok]
    return bool(reads) and all(_keyed(each) is not None for each in reads)


def _keyed(read: list[Json] | None) -> tuple[Json, list[Json]] | None:
    """Key and members of a read such as [key, [values]]."""
    if read is None or len(read) != 2:
        return None
    values = collection(read[1])
    return None if values is None else (read[0], values)


def _parts(op: Op, *, is_keyed: bool) -> Iterator[tuple[Token, Put | Read]]:
    until = op.after if op.outcome == OK else NEVER
    if op.mops is not None:
        for mop in op.mops:
            if mop.element is not None:
                yield mop.key, Put(op.number, until, op.outcome, mop.element)
            elif mop.elements is not None and op.is_ok:
                yield mop.key, Read(op.number, op.after, mop.elements)
    elif op.f in PUTS:
        name, value = _target(op.asked if op.asked is not None else op.value, is_keyed=is_keyed)
        yield name, Put(op.number, until, op.outcome, token(value))
    elif op.f == "read" and op.is_ok:
        name, values = PLAIN, collection(op.value)
        if is_keyed and (keyed := _keyed(values)) is not None:
            name, values = str(token(keyed[0])), keyed[1]
        if values is not None:
            yield name, Read(op.number, op.after, tuple(map(token, values)))


def _target(value: Json, *, is_keyed: bool) -> tuple[str, Json]:
    if is_keyed and isinstance(value, list) and len(value) == 2:
        return str(token(value[0])), value[1]
    return PLAIN, value


def is_failed(put: Put) -> bool:
    """True if it certainly did not happen."""
    return put.outcome == FAIL
