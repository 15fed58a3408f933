"""Combines batches of rows into the chunks of a history: the same row groups as `Operations` writes.

Rows wait in order of completion until there are enough for a chunk, which is ordered by index. A value that needs a
name gets its id when its chunk is written: first all keys of the chunk, then its values, then the elements read.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from harness.core.columns import GROUP_ELEMENTS, GROUP_OPS, NAMED, Int64s
from harness.record.formats.edn.digest import Batch
from harness.record.formats.parquet.parquet import HistoryWriter
from harness.record.formats.parquet.schema import SCHEMAS

# Not `empty_table`, which loads pandas: a third of a second in each process that finds it.
_NO_TABLES: Final = (pa.Table.from_batches([], SCHEMAS["ops"]), pa.Table.from_batches([], SCHEMAS["mops"]))


class Stitcher:
    """Takes batches, and writes chunks."""

    def __init__(self, writer: HistoryWriter) -> None:
        self._writer = writer
        self._waiting: list[tuple[pa.Table, pa.Table, Int64s]] = []
        self._row_count = self._element_count = 0
        self._texts: dict[str, int] = {}  # Values that need names, and their numbers by first appearance.
        self._ids = np.empty(0, np.int64)  # The ids of those numbers; -1: not assigned yet.

    def take(self, batch: Batch, *, first_seq: int = 0) -> None:
        """Add rows. Their journal positions begin at `first_seq`."""
        ops = batch.ops
        for name in ("invoke_seq", "complete_seq"):
            place = ops.schema.get_field_index(name)
            column = ops.column(place).combine_chunks()
            shifted = pa.array(column.fill_null(0).to_numpy() + first_seq, mask=column.is_null().to_numpy(False))
            ops = ops.set_column(place, ops.schema.field(place), shifted)
        self._waiting.append((ops, self._numbered(batch), batch.elements))
        self._row_count += len(ops)
        self._element_count += int(batch.elements.sum())

    def flush(self) -> None:
        """Write the full chunks. Later rows must have completed after all rows added so far."""
        if self._row_count < GROUP_OPS and self._element_count < GROUP_ELEMENTS:
            return
        ops, mops, elements = self._together()
        order = np.argsort(_numbers(ops, "complete_seq"), kind="stable")
        while full := _full(elements[order]):
            self._write(ops, mops, order[:full])
            order = order[full:]
        self._waiting, self._row_count, self._element_count = [], len(order), int(elements[order].sum())
        self._waiting.append((*_chosen(ops, mops, order), elements[order]))

    def finish(self) -> None:
        """Write the remaining rows, and the operations that never completed, as the last chunk."""
        ops, mops, _ = self._together()
        self._write(ops, mops, np.arange(len(ops)))

    def _together(self) -> tuple[pa.Table, pa.Table, Int64s]:
        every = [(*_NO_TABLES, np.empty(0, np.int64)), *self._waiting]
        ops, mops, elements = zip(*every, strict=True)
        return pa.concat_tables(ops).combine_chunks(), pa.concat_tables(mops).combine_chunks(), np.concatenate(elements)

    def _write(self, ops: pa.Table, mops: pa.Table, rows: Int64s) -> None:
        rows = rows[np.argsort(_numbers(ops, "index")[rows], kind="stable")]
        ops, mops = _chosen(ops, mops, rows)
        if self._texts:
            mops = _renamed(mops, self._given(mops))
        self._writer.add_chunk(ops, mops)

    def _numbered(self, batch: Batch) -> pa.Table:
        """The batch's micro-operations, with this history's numbers for named values."""
        if not batch.names:
            return batch.mops
        numbers = [self._texts.setdefault(text, len(self._texts)) for text in batch.names]
        return _renamed(batch.mops, np.array(numbers, np.int64) + NAMED)

    def _given(self, mops: pa.Table) -> Int64s:
        """The ids of all numbers, after assigning ids to those in this chunk."""
        new = np.full(len(self._texts) - len(self._ids), -1, np.int64)
        self._ids = np.concatenate([self._ids, new])
        seen = np.concatenate([_numbers(mops, "key"), _numbers(mops, "value"), _elements(mops)])
        seen = seen[seen >= NAMED] - NAMED
        numbers, first = np.unique(seen[self._ids[seen] < 0], return_index=True)
        numbers, texts = numbers[np.argsort(first)], list(self._texts)
        self._ids[numbers] = self._writer.names.ids_of_texts([texts[number].encode() for number in numbers.tolist()])
        return self._ids


def _full(elements: Int64s) -> int:
    """The number of rows in the next chunk; 0 if there are not enough."""
    is_full = np.cumsum(elements) >= GROUP_ELEMENTS
    is_full[GROUP_OPS - 1 :] = True
    return int(is_full.argmax()) + 1 if is_full.any() else 0


def _chosen(ops: pa.Table, mops: pa.Table, rows: Int64s) -> tuple[pa.Table, pa.Table]:
    """Those rows of ops, and their rows of mops, grouped in the order of ops."""
    owner = _numbers(mops, "op")
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    counts = np.diff(np.append(starts, len(owner)))
    order = np.argsort(owner[starts])
    starts, counts, owners = starts[order], counts[order], owner[starts][order]
    index = _numbers(ops, "index")[rows]
    place = np.searchsorted(owners, index)
    has = owners[np.minimum(place, len(owners) - 1)] == index if len(owners) else np.zeros(len(index), np.bool_)
    place = place[has]
    ends = np.cumsum(counts[place])
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts[place], counts[place])
    taken = np.repeat(starts[place], counts[place]) + within
    return ops.take(rows).combine_chunks(), mops.take(taken).combine_chunks()


def _renamed(mops: pa.Table, ids: Int64s) -> pa.Table:
    """The same micro-operations, with ids from NAMED on replaced by `ids`."""
    for name in ("key", "value"):
        place = mops.schema.get_field_index(name)
        column = mops.column(place).combine_chunks()
        changed = _replaced(column.fill_null(0).to_numpy(), ids)
        mops = mops.set_column(
            place, mops.schema.field(place), pa.array(changed, mask=column.is_null().to_numpy(False))
        )
    place = mops.schema.get_field_index("read")
    reads = mops.column(place).combine_chunks()
    lengths = reads.value_lengths().fill_null(0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    elements = pa.array(_replaced(_elements(mops), ids))
    return mops.set_column(
        place, mops.schema.field(place), pa.ListArray.from_arrays(offsets, elements, mask=reads.is_null())
    )


def _replaced(numbers: Int64s, ids: Int64s) -> Int64s:
    is_named = numbers >= NAMED
    if not is_named.any():
        return numbers
    changed = numbers.copy()
    changed[is_named] = ids[numbers[is_named] - NAMED]
    return changed


def _numbers(table: pa.Table, name: str) -> Int64s:
    """The non-null values of a column."""
    return np.asarray(table[name].drop_null().to_numpy(), np.int64)


def _elements(mops: pa.Table) -> Int64s:
    """The elements of all lists read, in order."""
    return np.asarray(mops["read"].combine_chunks().flatten().to_numpy(), np.int64)
