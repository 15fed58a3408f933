"""Messages of kernels as bytes, in as few as their numbers need: whatever travels between tasks is copied ten times.

Pickle, with a form of its own for what most of the bytes are: that of a class is beside it, and `carry` makes it known.
Whoever receives a message has the very same columns.
"""

import pickle
from collections.abc import Callable
from io import BytesIO
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from checkers.graph.edges import OPEN_END, Edges, Int32s
from harness.core.columns import Bools, Int8s, Int64s

T = TypeVar("T")
Ints = NDArray[np.signedinteger[Any]]
Lives = tuple[Ints, int]
Bits = tuple[NDArray[np.uint8], int]
_NARROWER: Final = (np.int8, np.int16, np.int32)


def carry(kind: type[T], form: Callable[[T], tuple[Callable[..., T], tuple[object, ...]]]) -> None:
    """Let messages of that class travel in that form: what makes the message again, and from what.

    The module of the class calls this, so whoever has such a message has its form.
    """
    _FORMS[kind] = form


def blob_of(message: object) -> memoryview:
    """The message as bytes."""
    buffer = BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.dispatch_table = _FORMS
    pickler.dump(message)
    return buffer.getbuffer()


def narrow(values: Int64s | Int32s | Int8s) -> Ints:
    """The same numbers in the smallest type that holds them all."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for kind in _NARROWER:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind, copy=False)
    return values


def steps(values: Int64s | Int32s) -> Ints:
    """From each value to the next, the first one from 0: small numbers, where a column ascends."""
    differences = values.astype(np.int64)
    differences[1:] -= values[:-1]
    return narrow(differences)


def sums(steps_: Ints) -> Int64s:
    """What `steps` was given."""
    return np.cumsum(steps_, dtype=np.int64)


def lives(op: Int32s, after: Int32s) -> Lives:
    """How long after its index each operation ends, and the number that stands for one without an end."""
    is_open = after == OPEN_END
    length = after - op
    none = int(length.min(initial=0, where=~is_open)) - 1
    length[is_open] = none
    return narrow(length), none


def ends(op: Int32s, of_op: Lives) -> Int32s:
    """The ends of those operations."""
    length, none = of_op
    after = op + length.astype(np.int32)
    after[length == none] = OPEN_END
    return after


def bits(flags: Bools) -> Bits:
    """Eight flags in a byte, and how many they are."""
    return np.packbits(flags), len(flags)


def flags(packed: Bits) -> Bools:
    """What `bits` was given."""
    eights, count = packed
    return np.unpackbits(eights, count=count).view(np.bool_)


def _of_edges(edges: Edges) -> tuple[Callable[..., Edges], tuple[object, ...]]:
    source, target = edges.source, edges.target
    source_life, target_life = lives(source, edges.source_after), lives(target, edges.target_after)
    return _edges, (narrow(source), narrow(target - source), source_life, target_life, edges.kinds)


def _edges(source: Ints, gap: Ints, source_life: Lives, target_life: Lives, kinds: Int8s) -> Edges:
    source = source.astype(np.int32)
    target = source + gap.astype(np.int32)
    return Edges(source, target, ends(source, source_life), ends(target, target_life), kinds)


_FORMS: Final[dict[type, Callable[[Any], Any]]] = {Edges: _of_edges}
