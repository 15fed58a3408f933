"""Large histories of list-append made in NumPy, a slice at a time: so many processes, aborts and anomalies as you like.

Each operation takes effect at a moment between its ends, so the history is strictly serializable until something is
planted. Ten keys are active at a time, and each gets 32 elements, as in Elle's own measurements.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from checkers.columns.runs import expand
from checkers.history.transactions import select
from harness.core.columns import (
    APPEND,
    FAIL,
    GROUP_ELEMENTS,
    GROUP_OPS,
    INFO,
    NEVER,
    NOTHING,
    OK,
    READ,
    UNKNOWN,
    WRITE,
    Bools,
    Int8s,
    Int64s,
    Transactions,
)
from harness.record.formats.parquet.schema import SCHEMAS

ACTIVE_KEYS, PROCESSES = 10, 20
PLANTED_KEY: Final = 1 << 40  # From here up keys belong to planted anomalies.


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a history is like. `planted` is how many of each of G-single, G1c and G2-item are in each slice."""

    count: int
    seed: int = 7
    key_elements: int = 32
    fail_permille: int = 10
    info_permille: int = 10
    stale_permille: int = 0  # So many of a thousand reads miss the newest element of their key.
    planted: int = 0

    def slice_ops(self) -> int:
        """How many operations a row group can hold: a transaction reads 5/8 of a key's elements."""
        return min(GROUP_OPS, int(GROUP_ELEMENTS * 0.9 / (0.625 * self.key_elements)))


def transactions(count: int, seed: int, *, stale_permille: int = 0) -> Transactions:
    """A history of `count` transactions in one piece."""
    shape = Shape(count=count, seed=seed, fail_permille=50, info_permille=20, stale_permille=stale_permille)
    return next(slices(shape, slice_ops=count))


def slices(shape: Shape, *, slice_ops: int | None = None) -> Iterator[Transactions]:
    """The history, so many transactions at a time. Memory: that of one slice."""
    lanes = _Lanes(shape)
    step = slice_ops or shape.slice_ops()
    for number, first in enumerate(range(0, shape.count, step)):
        whole = lanes.next(np.arange(first, min(first + step, shape.count)))
        yield _planted(whole, shape.planted, number) if shape.planted else whole


class _Lanes:
    """The ten active keys from slice to slice: how many elements a lane has had, and those of its key of now."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._draw = np.random.default_rng(shape.seed)
        self._had = np.zeros(ACTIVE_KEYS, np.int64)
        self._recent = [np.empty(0, np.int64) for _ in range(ACTIVE_KEYS)]
        self._asked = np.zeros(ACTIVE_KEYS, np.int64)
        self._unclear = np.zeros(PROCESSES, np.int64)

    def next(self, index: Int64s) -> Transactions:
        """The transactions of those indexes, which take effect before all that come later."""
        shape, draw, count = self._shape, self._draw, len(index)
        effect = index + draw.random(count) * np.minimum(PROCESSES - 2, index[-1] + 1 - index)
        end = effect + draw.random(count) * (index + PROCESSES - effect)
        unsure = (shape.fail_permille / 1000, shape.info_permille / 1000)
        outcome = draw.choice(np.array([OK, FAIL, INFO], np.int8), count, p=(1 - sum(unsure), *unsure))
        happens = (outcome == OK) | ((outcome == INFO) & (draw.random(count) < 0.5))
        mop_count = draw.integers(1, 5, count)

        order = np.argsort(effect)
        owner = np.repeat(order, mop_count[order])  # From here on micro-operations stand in the order of their effect.
        size = len(owner)
        mop_start = np.concatenate(([0], np.cumsum(mop_count)))
        lane = draw.integers(0, ACTIVE_KEYS, size)
        is_append = draw.random(size) < 0.5
        value = self._values(lane, is_append)
        had, start, kept = self._versions(lane, is_append & happens[owner], value)

        is_known = ~is_append & (outcome[owner] == OK)
        length = np.where(is_known, had % shape.key_elements, 0)
        length -= is_known & (length > 0) & (draw.random(size) * 1000 < shape.stale_permille)
        back = np.argsort(owner, kind="stable")
        lengths = length[back]
        after = np.minimum(np.maximum(np.ceil(end).astype(np.int64), index + 1), shape.count)
        return Transactions(
            index=index,
            process=self._processes(index, outcome),
            outcome=outcome,
            after=np.where(outcome == INFO, NEVER, after),
            mop_start=mop_start,
            f=np.where(is_append, APPEND, READ).astype(np.int8)[back],
            key=(lane + ACTIVE_KEYS * (had // shape.key_elements))[back],
            value=np.where(is_append, value, 0)[back],
            is_known=is_known[back],
            element_start=np.concatenate(([0], np.cumsum(lengths))),
            elements=kept[expand(start[back], lengths)],
        )

    def _values(self, lane: Int64s, is_append: Bools) -> Int64s:
        """What each micro-operation appends: the number of appends asked of its lane, successful or not."""
        value = np.empty(len(lane), np.int64)
        for number in range(ACTIVE_KEYS):
            rows = np.flatnonzero(lane == number)
            value[rows] = self._asked[number] + np.cumsum(is_append[rows])
            self._asked[number] += int(np.count_nonzero(is_append[rows]))
        return value

    def _versions(self, lane: Int64s, stays: Bools, value: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """For each micro-operation how many elements its lane had, and where those of its key begin in the third."""
        had, start = np.empty(len(lane), np.int64), np.empty(len(lane), np.int64)
        pools, base, size = [], 0, self._shape.key_elements
        for number in range(ACTIVE_KEYS):
            rows = np.flatnonzero(lane == number)
            new = stays[rows]
            had[rows] = self._had[number] + np.cumsum(new) - new
            pool = np.concatenate((self._recent[number], value[rows[new]]))
            first = self._had[number] - len(self._recent[number])
            start[rows] = base + had[rows] - had[rows] % size - first
            self._had[number] += int(np.count_nonzero(new))
            self._recent[number] = pool[self._had[number] - self._had[number] % size - first :]
            pools.append(pool)
            base += len(pool)
        return had, start, np.concatenate(pools)

    def _processes(self, index: Int64s, outcome: Int8s) -> Int64s:
        """Twenty threads in turn; each takes a new number after an operation without a clear answer."""
        thread = index % PROCESSES
        first = int(index[0]) // PROCESSES
        rounds = int(index[-1]) // PROCESSES - first + 1
        unclear = np.zeros(rounds * PROCESSES, np.int64)
        unclear[index - first * PROCESSES] = outcome == INFO
        table = unclear.reshape(rounds, PROCESSES)
        before = (self._unclear + np.cumsum(table, axis=0) - table).reshape(-1)[index - first * PROCESSES]
        self._unclear = self._unclear + table.sum(axis=0)
        return thread + PROCESSES * before


def registers_of(whole: Transactions) -> Transactions:
    """The same history on registers: each append is a write, and each read shows the last element of its list."""
    length = np.diff(whole.element_start)
    last = np.append(whole.elements, 0)[np.maximum(whole.element_start[1:], 1) - 1]
    seen = np.where(whole.is_known, np.where(length > 0, last, NOTHING), UNKNOWN)
    return replace(
        whole,
        f=np.where(whole.f == APPEND, WRITE, READ).astype(np.int8),
        value=np.where(whole.f == READ, seen, whole.value),
        is_known=np.zeros(len(whole.f), np.bool_),
        element_start=np.zeros(len(whole.f) + 1, np.int64),
        elements=np.empty(0, np.int64),
    )


def _planted(whole: Transactions, count: int, number: int) -> Transactions:
    """The slice with micro-operations on keys of their own added to ok transactions that stand side by side."""
    is_ok = whole.outcome == OK
    pairs = np.flatnonzero(is_ok[:-1] & is_ok[1:])
    pairs = pairs[:: max(1, len(pairs) // (3 * count))][: 3 * count]
    pairs = pairs[np.diff(pairs, prepend=-2) > 1]
    rows = [
        (int(pair) + at, f, key, read)
        for turn, pair in enumerate(pairs.tolist())
        for at, f, key, read in _cycle(turn % 3, PLANTED_KEY + 2 * (turn + number * 3 * count))
    ]
    owner = np.array([row for row, _, _, _ in rows], np.int64)
    order = np.argsort(owner, kind="stable")
    at = whole.mop_start[owner + 1][order]
    f = np.array([f for _, f, _, _ in rows], np.int8)[order]
    length = np.array([max(0, read) for _, _, _, read in rows], np.int64)[order]
    lengths = np.insert(np.diff(whole.element_start), at, length)
    added = np.bincount(owner, minlength=len(whole.index))
    return replace(
        whole,
        mop_start=whole.mop_start + np.concatenate(([0], np.cumsum(added))),
        f=np.insert(whole.f, at, f),
        key=np.insert(whole.key, at, np.array([key for _, _, key, _ in rows], np.int64)[order]),
        value=np.insert(whole.value, at, np.where(f == APPEND, 1, 0)),
        is_known=np.insert(whole.is_known, at, f == READ),
        element_start=np.concatenate(([0], np.cumsum(lengths))),
        elements=np.insert(whole.elements, np.repeat(whole.element_start[at], length), 1),
    )


def _cycle(kind: int, key: int) -> list[tuple[int, int, int, int]]:
    """G-single, G1c or G2-item between two transactions: which of them, what it does, how many elements it reads."""
    one, other = key, key + 1
    match kind:
        case 0:
            return [(0, APPEND, one, 0), (0, APPEND, other, 0), (1, READ, one, 1), (1, READ, other, 0)]
        case 1:
            return [(0, APPEND, one, 0), (0, READ, other, 1), (1, APPEND, other, 0), (1, READ, one, 1)]
        case _:
            return [(0, READ, one, 0), (0, APPEND, other, 0), (1, READ, other, 0), (1, APPEND, one, 0)]


def write(directory: Path, whole: Transactions) -> None:
    """The history as a folder of Parquet files, in row groups of GROUP_OPS."""
    rows = np.arange(len(whole.index))
    write_slices(directory, (select(whole, rows[at : at + GROUP_OPS]) for at in range(0, len(rows), GROUP_OPS)))


def write_slices(directory: Path, parts: Iterator[Transactions]) -> None:
    """A history as a folder of Parquet files, each slice a row group."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in SCHEMAS.keys() - {"ops", "mops"}:
        pq.write_table(SCHEMAS[name].empty_table(), directory / f"{name}.parquet")
    with (
        pq.ParquetWriter(
            directory / "ops.parquet", SCHEMAS["ops"], compression="zstd", write_page_checksum=True
        ) as ops,
        pq.ParquetWriter(
            directory / "mops.parquet", SCHEMAS["mops"], compression="zstd", write_page_checksum=True
        ) as mops,
    ):
        for part in parts:
            ops.write_table(_ops(part), row_group_size=len(part.index))
            mops.write_table(_mops(part), row_group_size=max(1, len(part.f)))


def halves(whole: Transactions) -> list[Transactions]:
    """The same history in two chunks."""
    middle = len(whole.index) // 2
    return [select(whole, np.arange(middle)), select(whole, np.arange(middle, len(whole.index)))]


def _ops(part: Transactions) -> pa.Table:
    count = len(part.index)
    end = np.where(part.after == NEVER, part.index + PROCESSES, part.after)
    columns = {
        "index": part.index,
        "process": part.process,
        "outcome": part.outcome,
        "f": pa.array(["txn"]).take(pa.array(np.zeros(count, np.int8))),
        "intended_ns": part.index * 1000,
        "invoke_ns": part.index * 1000,
        "complete_ns": end * 1000,
        "after": part.after,
        "invoke_seq": 2 * part.index,
        "complete_seq": 2 * part.index + 1,
        "is_txn": np.ones(count, np.bool_),
        "has_result": part.outcome == OK,
    }
    return _table("ops", columns, count)


def _mops(part: Transactions) -> pa.Table:
    counts = np.diff(part.mop_start)
    offsets = pa.array(part.element_start.astype(np.int32), mask=np.append(~part.is_known, False))
    columns = {
        "op": np.repeat(part.index, counts),
        "position": expand(np.zeros(len(counts), np.int64), counts).astype(np.int32),
        "f": part.f,
        "key": part.key,
        # Of reads only those of registers have a value, from 1 up.
        "value": pa.array(part.value, mask=(part.f == READ) & (part.is_known | (part.value <= 0))),
        "read": pa.ListArray.from_arrays(offsets, pa.array(part.elements)),
    }
    return _table("mops", columns, len(part.f))


def _table(name: str, columns: dict[str, object], count: int) -> pa.Table:
    """The columns as that table; those that are not given are null."""
    schema = SCHEMAS[name]
    return pa.table(
        {field.name: columns.get(field.name, pa.nulls(count, field.type)) for field in schema}, schema=schema
    )
