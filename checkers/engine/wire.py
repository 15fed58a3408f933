"""Messages of kernels as few bytes: everything that travels between tasks is copied ten times.

Pickle, with compact forms for the classes that make up most of the bytes. The module of a class registers its form with
`carry`. The receiver of a message gets identical columns.
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
    """Register the wire form of a class: a function that makes the message again, and its arguments.

    The module of the class calls this, so every process with such a message has its form.
    """
    _FORMS[kind] = form


def blob_of(message: object) -> bytes:
    """The message as bytes."""
    buffer = BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.dispatch_table = _FORMS
    pickler.dump(message)
    return buffer.getvalue()


def narrow(values: Int64s | Int32s | Int8s) -> Ints:
    """The same numbers in the smallest integer type that holds them all."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for kind in _NARROWER:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind, copy=False)
    return values


def steps(values: Int64s | Int32s) -> Ints:
    """The differences between neighbours, the first from 0: these are small numbers if a column ascends."""
    differences = values.astype(np.int64)
    differences[1:] -= values[:-1]
    return narrow(differences)


def sums(steps_: Ints) -> Int64s:
    """The inverse of `steps`."""
    return np.cumsum(steps_, dtype=np.int64)


def lives(op: Int32s, after: Int32s) -> Lives:
    """The duration of each operation, from its index to its end, and the number that stands for "no end"."""
    is_open = after == OPEN_END
    length = after - op
    none = int(length.min(initial=0, where=~is_open)) - 1
    length[is_open] = none
    return narrow(length), none


def ends(op: Int32s, of_op: Lives) -> Int32s:
    """The ends of those operations, restored from the result of `lives`."""
    length, none = of_op
    after = op + length.astype(np.int32)
    after[length == none] = OPEN_END
    return after


def bits(flags: Bools) -> Bits:
    """Flags packed eight to a byte, and the number of flags."""
    return np.packbits(flags), len(flags)


def flags(packed: Bits) -> Bools:
    """The inverse of `bits`."""
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
