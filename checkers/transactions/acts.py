"""Input of the checks of cuts and freshness: the versions of all keys, and each operation's end, epoch and locks."""

from pathlib import Path

import numpy as np
from msgspec import Struct

from checkers.columns.arrow import integers
from checkers.columns.files import read_columns
from checkers.columns.index import Places
from checkers.columns.index import codes as joint_codes
from checkers.history.transactions import chunks, read_chunk, under_lock
from checkers.transactions.list_rows import rows_by_key
from checkers.transactions.list_versions import Versions, resolved
from harness.core.columns import NEVER, OK, READ, Bools, Int64s, Transactions


class Writers(Struct, frozen=True, kw_only=True):
    """The ok operations that wrote and have an epoch, by index, ascending. `after` as in `Transactions`."""

    index: Int64s
    after: Int64s
    epoch: Int64s

    def place(self, op: Int64s) -> Int64s:
        """The row of each operation; -1 for one that is not included."""
        return Places(self.index).of(op)


class Acts(Struct, frozen=True, kw_only=True):
    """The versions, writers and transactions of one history. `transactions` holds its chunks.

    `locked_op` and `locked_key` are pairs of operation and key that were read under a lock, and never without.
    """

    versions: Versions
    writers: Writers
    transactions: tuple[Transactions, ...]
    locked_op: Int64s
    locked_key: Int64s
    has_duplicates: bool  # Keys to which one element was appended twice are left out of `versions`.


def read_acts(history: Path) -> Acts:
    """The acts of the whole history in that folder. Raises HistoryError if its files are damaged."""
    found = chunks(history)
    transactions = tuple(map(read_chunk, found))
    rows = [part for each in transactions for _, part in rows_by_key(each, partitions=1)]
    versions, duplicate = resolved(rows)
    locked_op, locked_key = _locked(history)
    return Acts(
        versions=versions,
        writers=_writers(history),
        transactions=transactions,
        locked_op=locked_op,
        locked_key=locked_key,
        has_duplicates=duplicate is not None,
    )


def versions_read(versions: Versions) -> Int64s:
    """For each read the number of versions that it shows; 0 if it is no prefix of the longest read of its key."""
    count = np.concatenate(([0], np.cumsum(~versions.is_repeated)))
    start = versions.seen_start[versions.read_code]
    length = np.where(versions.is_version, versions.read_length, 0)
    result: Int64s = count[start + length] - count[start]
    return result


def _writers(history: Path) -> Writers:
    ops = read_columns(history / "ops.parquet", ["index", "outcome", "after", "epoch", "commit_ts"])
    index, epoch = integers(ops["index"], 0), integers(ops["epoch"], NEVER)
    has_cut = (integers(ops["outcome"], OK) == OK) & (epoch != NEVER) & (integers(ops["commit_ts"], NEVER) != NEVER)
    order = np.flatnonzero(has_cut)
    order = order[np.argsort(index[order], kind="stable")]
    return Writers(index=index[order], after=integers(ops["after"], NEVER)[order], epoch=epoch[order])


def _locked(history: Path) -> tuple[Int64s, Int64s]:
    """Pairs of operation and key that were read under a lock, and never without."""
    mops = read_columns(history / "mops.parquet", ["op", "f", "lock", "key"])
    is_read = integers(mops["f"], READ) == READ
    op, key, held = integers(mops["op"], 0)[is_read], integers(mops["key"], 0)[is_read], under_lock(mops)[is_read]
    pair = joint_codes(op, key)
    without = np.zeros(int(pair.max(initial=-1)) + 1, np.bool_)
    without[pair[~held]] = True
    kept: Bools = ~without[pair]
    return op[kept], key[kept]
