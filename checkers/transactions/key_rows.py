"""The tables of rows that a chunk of transactions sends to a partition of keys, and their serialized form."""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.runs import expand
from checkers.columns.table import concat, take
from checkers.engine.wire import Bits, Ints, Lives, bits, carry, ends, flags, lives, narrow, steps, sums
from checkers.graph.edges import Int32s
from checkers.graph.sightings import Report, union
from harness.core.columns import Bools, Int8s, Int64s


class ListRows(Struct, frozen=True):
    """The lists that are sent with all elements: those of list i are elements[start[i]:start[i] + length[i]]."""

    key: Int64s
    op: Int32s
    start: Int64s
    length: Int64s


class ReadRows(Struct, frozen=True):
    """Reads: read j showed the first length[j] elements of list of_list[j].

    `is_update`: the transaction read the key before it appended to it.
    """

    of_list: Int32s
    op: Int32s
    after: Int32s
    length: Int32s
    is_update: Bools


class AppendRows(Struct, frozen=True):
    """Appends. Those of one transaction stay in their order.

    `is_final`: it is the transaction's last append to that key. `is_again`: it is not the first one. `is_foreseen`: the
    transaction had read the element before it appended it.
    """

    key: Int64s
    value: Int64s
    op: Int32s
    after: Int32s
    outcome: Int8s
    is_final: Bools
    is_again: Bools
    is_foreseen: Bools


class KeyRows(Struct, frozen=True):
    """The rows of one chunk about some of the keys. Operations are named by index; `after` as in Transactions."""

    lists: ListRows
    elements: Int64s
    reads: ReadRows
    appends: AppendRows
    report: Report


def chosen(whole: KeyRows, lists: Int64s, reads: Int64s, appends: Int64s, report: Report) -> KeyRows:
    """The rows with those numbers, which ascend. `lists` must include all lists of `reads`."""
    some, read = take(whole.lists, lists), take(whole.reads, reads)
    return KeyRows(
        lists=replace(some, start=np.cumsum(some.length) - some.length),
        elements=whole.elements[expand(some.start, some.length)],
        reads=replace(read, of_list=np.searchsorted(lists, read.of_list).astype(np.int32)),
        appends=take(whole.appends, appends),
        report=report,
    )


def without(whole: KeyRows, keys: Int64s) -> KeyRows:
    """The rows about all other keys."""
    is_list, is_append = ~np.isin(whole.lists.key, keys), ~np.isin(whole.appends.key, keys)
    reads = np.flatnonzero(is_list[whole.reads.of_list])
    return chosen(whole, np.flatnonzero(is_list), reads, np.flatnonzero(is_append), whole.report)


def concatenated(parts: Sequence[KeyRows]) -> KeyRows:
    """The rows of several chunks as one, and the union of their reports."""
    lists, reads, list_count, element_count = [], [], 0, 0
    for part in parts:
        lists.append(replace(part.lists, start=part.lists.start + element_count))
        reads.append(replace(part.reads, of_list=part.reads.of_list + np.int32(list_count)))
        list_count, element_count = list_count + len(part.lists.key), element_count + len(part.elements)
    return KeyRows(
        lists=concat(lists),
        elements=np.concatenate([part.elements for part in parts]),
        reads=concat(reads),
        appends=concat([part.appends for part in parts]),
        report=union(part.report for part in parts),
    )


def _of_lists(rows: ListRows) -> tuple[Callable[..., ListRows], tuple[object, ...]]:
    return _lists, (narrow(rows.key), narrow(rows.op), narrow(rows.length))  # The parts follow each other.


def _lists(key: Ints, op: Ints, length: Ints) -> ListRows:
    lengths = length.astype(np.int64)
    return ListRows(key.astype(np.int64), op.astype(np.int32), np.cumsum(lengths) - lengths, lengths)


def _of_reads(rows: ReadRows) -> tuple[Callable[..., ReadRows], tuple[object, ...]]:
    life = lives(rows.op, rows.after)
    return _reads, (narrow(rows.of_list), steps(rows.op), life, narrow(rows.length), bits(rows.is_update))


def _reads(of_list: Ints, op_steps: Ints, life: Lives, length: Ints, is_update: Bits) -> ReadRows:
    op = sums(op_steps).astype(np.int32)
    return ReadRows(of_list.astype(np.int32), op, ends(op, life), length.astype(np.int32), flags(is_update))


def _of_appends(rows: AppendRows) -> tuple[Callable[..., AppendRows], tuple[object, ...]]:
    marks = [bits(each) for each in (rows.is_final, rows.is_again, rows.is_foreseen)]
    life = lives(rows.op, rows.after)
    return _appends, (narrow(rows.key), narrow(rows.value), steps(rows.op), life, rows.outcome, *marks)


def _appends(key: Ints, value: Ints, op_steps: Ints, life: Lives, outcome: Int8s, *marks: Bits) -> AppendRows:
    op = sums(op_steps).astype(np.int32)
    return AppendRows(key.astype(np.int64), value.astype(np.int64), op, ends(op, life), outcome, *map(flags, marks))


def _of_rows(rows: KeyRows) -> tuple[Callable[..., KeyRows], tuple[object, ...]]:
    return _rows, (rows.lists, narrow(rows.elements), rows.reads, rows.appends, rows.report)


def _rows(lists: ListRows, elements: Ints, reads: ReadRows, appends: AppendRows, report: Report) -> KeyRows:
    return KeyRows(lists, elements.astype(np.int64), reads, appends, report)


carry(ListRows, _of_lists)
carry(ReadRows, _of_reads)
carry(AppendRows, _of_appends)
carry(KeyRows, _of_rows)
