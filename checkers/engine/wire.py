"""Messages of kernels as bytes, in as few as their numbers need: whatever travels between tasks is copied ten times.

Pickle, with a form of its own for what most of the bytes are. Whoever receives a message has the very same columns.
"""

import pickle
from collections.abc import Callable
from io import BytesIO
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from checkers.graph.edges import OPEN_END, Edges, Int32s
from checkers.graph.sightings import Report
from checkers.transactions.list_rows import KeyRows
from checkers.watermarks.task import Pairs
from harness.core.columns import Bools, Int8s, Int64s

Ints = NDArray[np.signedinteger[Any]]
Lives = tuple[Ints, int]
Bits = tuple[NDArray[np.uint8], int]
_NARROWER: Final = (np.int8, np.int16, np.int32)


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


def _of_pairs(pairs: Pairs) -> tuple[Callable[..., Pairs], tuple[object, ...]]:
    return _pairs, (steps(pairs.op), steps(pairs.mark))  # They stand by watermark: steps of both are small.


def _pairs(op: Ints, mark: Ints) -> Pairs:
    return Pairs(sums(op).astype(np.int32), sums(mark).astype(np.int32))


def _of_rows(rows: KeyRows) -> tuple[Callable[..., KeyRows], tuple[object, ...]]:
    lists = (narrow(rows.list_key), narrow(rows.list_op), steps(rows.list_start), narrow(rows.elements))
    reads = (
        *(narrow(rows.read_list), steps(rows.read_op), lives(rows.read_op, rows.read_after)),
        *(narrow(rows.read_length), bits(rows.is_update)),
    )
    appends = (
        *(narrow(rows.append_key), narrow(rows.append_value), steps(rows.append_op)),
        *(lives(rows.append_op, rows.append_after), rows.append_outcome),
        *(bits(rows.is_final), bits(rows.is_again), bits(rows.is_foreseen)),
    )
    return _rows, (lists, reads, appends, rows.report)


def _rows(
    lists: tuple[Ints, Ints, Ints, Ints],
    reads: tuple[Ints, Ints, Lives, Ints, Bits],
    appends: tuple[Ints, Ints, Ints, Lives, Int8s, Bits, Bits, Bits],
    report: Report,
) -> KeyRows:
    list_key, list_op, list_steps, elements = lists
    read_list, read_steps, read_lives, read_length, is_update = reads
    append_key, append_value, append_steps, append_lives, append_outcome, is_final, is_again, is_foreseen = appends
    read_op, append_op = sums(read_steps).astype(np.int32), sums(append_steps).astype(np.int32)
    return KeyRows(
        list_key=list_key.astype(np.int64),
        list_op=list_op.astype(np.int32),
        list_start=sums(list_steps),
        elements=elements.astype(np.int64),
        read_list=read_list.astype(np.int32),
        read_op=read_op,
        read_after=ends(read_op, read_lives),
        read_length=read_length.astype(np.int32),
        is_update=flags(is_update),
        append_key=append_key.astype(np.int64),
        append_value=append_value.astype(np.int64),
        append_op=append_op,
        append_after=ends(append_op, append_lives),
        append_outcome=append_outcome,
        is_final=flags(is_final),
        is_again=flags(is_again),
        is_foreseen=flags(is_foreseen),
        report=report,
    )


_FORMS: Final[dict[type, Callable[[Any], Any]]] = {Edges: _of_edges, KeyRows: _of_rows, Pairs: _of_pairs}
