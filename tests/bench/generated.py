"""Large histories of list-append made in NumPy: as many processes, aborts and unclear answers as one likes.

Each operation takes effect at a moment between its ends, so the history is strictly serializable. Ten keys are active
at a time, and each gets 32 elements, as in Elle's own measurements.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkers.chunks import select
from checkers.ragged import expand
from harness.core.columns import APPEND, FAIL, GROUP_OPS, INFO, NEVER, OK, READ, Int64s, Transactions

ACTIVE_KEYS, KEY_ELEMENTS, PROCESSES = 10, 32, 20


def transactions(count: int, seed: int, *, stale_permille: int = 0) -> Transactions:
    """A history of `count` transactions; of the reads so many per thousand miss the newest element of their key."""
    draw = np.random.default_rng(seed)
    index = np.arange(count)
    effect = index + draw.random(count) * (PROCESSES - 2)
    end = effect + draw.random(count) * (index + PROCESSES - effect)
    outcome = draw.choice(np.array([OK, FAIL, INFO], np.int8), count, p=(0.93, 0.05, 0.02))
    happens = (outcome == OK) | ((outcome == INFO) & (draw.random(count) < 0.5))
    mop_count = draw.integers(1, 5, count)

    order = np.argsort(effect)
    owner = np.repeat(order, mop_count[order])  # From here on micro-operations stand in the order of their effect.
    size = len(owner)
    lane = draw.integers(0, ACTIVE_KEYS, size)
    is_append = draw.random(size) < 0.5
    by_lane = np.argsort(lane, kind="stable")
    counts = np.empty(size, np.int64)
    stays = (is_append & happens[owner])[by_lane]
    begin = np.searchsorted(lane[by_lane], np.arange(ACTIVE_KEYS + 1))
    running = np.cumsum(stays) - stays
    base = np.concatenate([np.cumsum(stays) - stays, [0]])[np.minimum(begin[:-1], size - 1)]
    counts[by_lane] = running - base[lane[by_lane]]
    key = lane + ACTIVE_KEYS * (counts // KEY_ELEMENTS)
    value = np.arange(size)  # Unique, and close together within a key.
    kept = value[by_lane][stays]

    is_known = ~is_append & (outcome[owner] == OK)
    length = np.where(is_known, counts % KEY_ELEMENTS, 0)
    misses = is_known & (length > 0) & (draw.random(size) * 1000 < stale_permille)
    start = base[lane] + counts - counts % KEY_ELEMENTS
    length = length - misses

    back = np.argsort(owner, kind="stable")
    lengths = length[back]
    return Transactions(
        index=index,
        process=_processes(index, outcome),
        outcome=outcome,
        after=np.where(outcome == OK, np.minimum(np.ceil(end).astype(np.int64), count), NEVER),
        mop_start=np.concatenate(([0], np.cumsum(mop_count))),
        f=np.where(is_append, APPEND, READ).astype(np.int8)[back],
        key=key[back],
        value=np.where(is_append, value, 0)[back],
        is_known=is_known[back],
        element_start=np.concatenate(([0], np.cumsum(lengths))),
        elements=kept[expand(start[back], lengths)],
    )


def write(directory: Path, whole: Transactions) -> None:
    """The history as ops.parquet and mops.parquet, with the columns that the checker reads."""
    directory.mkdir(parents=True, exist_ok=True)
    ops, mops = _ops(whole), _mops(whole)
    with pq.ParquetWriter(directory / "ops.parquet", ops.schema, write_page_checksum=True) as file:
        for first in range(0, len(whole.index), GROUP_OPS):
            file.write_table(ops.slice(first, GROUP_OPS), row_group_size=GROUP_OPS)
    with pq.ParquetWriter(directory / "mops.parquet", mops.schema, write_page_checksum=True) as file:
        for first in range(0, len(whole.index), GROUP_OPS):
            low = whole.mop_start[first]
            high = whole.mop_start[min(first + GROUP_OPS, len(whole.index))]
            file.write_table(mops.slice(low, high - low), row_group_size=int(high - low))


def halves(whole: Transactions) -> list[Transactions]:
    """The same history in two chunks."""
    middle = len(whole.index) // 2
    return [select(whole, np.arange(middle)), select(whole, np.arange(middle, len(whole.index)))]


def _processes(index: Int64s, outcome: np.ndarray[tuple[int], np.dtype[np.int8]]) -> Int64s:
    """Twenty threads in turn; each takes a new number after an operation without a clear answer."""
    thread = index % PROCESSES
    rounds = -(-len(index) // PROCESSES)
    unclear = np.zeros(rounds * PROCESSES, np.int64)
    unclear[: len(index)] = outcome == INFO
    before = np.cumsum(unclear.reshape(rounds, PROCESSES), axis=0) - unclear.reshape(rounds, PROCESSES)
    return thread + PROCESSES * before.reshape(-1)[: len(index)]


def _ops(whole: Transactions) -> pa.Table:
    columns = {"index": whole.index, "process": whole.process, "outcome": whole.outcome, "after": whole.after}
    return pa.table({**columns, "is_txn": np.ones(len(whole.index), np.bool_)})


def _mops(whole: Transactions) -> pa.Table:
    offsets = pa.array(whole.element_start.astype(np.int32), mask=np.append(~whole.is_known, False))
    return pa.table(
        {
            "op": np.repeat(whole.index, np.diff(whole.mop_start)),
            "f": whole.f,
            "key": whole.key,
            "value": pa.array(whole.value, mask=whole.f == READ),
            "read": pa.ListArray.from_arrays(offsets, pa.array(whole.elements)),
        }
    )
