"""The rows that a chunk of transactions sends to a partition of keys, and their wire form."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from checkers.engine.wire import Bits, Ints, Lives, bits, carry, ends, flags, lives, narrow, steps, sums
from checkers.graph.edges import Int32s
from checkers.graph.sightings import Report
from harness.core.columns import Bools, Int8s, Int64s


@dataclass(frozen=True, slots=True)
class KeyRows:
    """The rows of one chunk about some of the keys. Operations are named by index; `after` as in Transactions.

    The elements of list i are elements[list_start[i]:list_start[i + 1]]. Read j saw the first read_length[j] elements
    of list read_list[j]. `is_update`: the transaction read the key before it appended to it. `is_final`: it appended no
    more to that key. `is_again`: it had appended to it before. `is_foreseen`: it read the element before it appended
    it. The appends of one transaction keep their order.
    """

    list_key: Int64s
    list_op: Int32s
    list_start: Int64s
    elements: Int64s
    read_list: Int32s
    read_op: Int32s
    read_after: Int32s
    read_length: Int32s
    is_update: Bools
    append_key: Int64s
    append_value: Int64s
    append_op: Int32s
    append_after: Int32s
    append_outcome: Int8s
    is_final: Bools
    is_again: Bools
    is_foreseen: Bools
    report: Report


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


carry(KeyRows, _of_rows)
