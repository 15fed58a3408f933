"""The rows of a site: what a conflict function knows about each.

1. A deleted row stays as a tombstone, with its author and epoch, and the last value that it had. The product deletes
   it, and cannot find a conflict with it.
2. Whoever wrote a row last is its author: a client of this site, or the applier. A refresh counts as a client: the
   row's window opens anew.
3. The row's epoch has few bits for the number within its global checkpoint. One that does not fit is saturated: it
   means any later number, so that a conflict may be false and is never missed.
"""

from collections.abc import Iterable, MutableMapping
from typing import NamedTuple

from clusters.ndb.conflicts import planted
from clusters.ndb.conflicts.messages import Change
from clusters.ndb.shape import GCI_BITS
from harness.core.record import Json

_MICRO = (1 << GCI_BITS) - 1


class Row(NamedTuple):
    """A row. `peak` is its value, or the last one of a tombstone; `is_local`: a client of this site wrote it."""

    value: Json
    peak: Json
    is_local: bool
    epoch: int


Rows = MutableMapping[Json, Row]


def write(rows: Rows, changes: Iterable[Change], epoch: int, *, is_local: bool) -> None:
    """Enter changes of an epoch."""
    for change in changes:
        if not change.is_read:
            held = rows.get(change.key)
            peak = change.value if change.value is not None or held is None else held.peak
            rows[change.key] = Row(change.value, peak, is_local, epoch)


def latest_epoch(row: Row, bits: int, bugs: frozenset[str]) -> int:
    """The latest epoch that the row's stored epoch may mean (invariant 3)."""
    largest = (1 << bits) - 1
    gci, micro = row.epoch & ~_MICRO, row.epoch & _MICRO
    if micro < largest:
        return row.epoch
    return gci | (largest if planted.EPOCH_BITS_TRUNCATED in bugs else _MICRO)
