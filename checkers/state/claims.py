"""The transactions that a state must show: after each restart of the whole cluster, and at the end of a run.

A restart restores only what was saved up to a position. A transaction is *kept* by a state if every restart since its
own generation restored it, and *void* if one did not. Each element is appended once, so a state shows which
transactions it contains.

An operation of unclear outcome has an epoch if a stream delivered one of its elements: then it did happen. Otherwise a
state may contain it or not, but only as a whole.
"""

from enum import IntEnum
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns.arrow import integers
from checkers.columns.index import codes, first_rows
from checkers.columns.runs import ordered
from checkers.columns.table import Join
from checkers.history.generations import Restart, kept_until, restarts
from checkers.history.tables import Transaction, stream_events
from checkers.state.written import Written
from harness.core.columns import FAIL, INFO, NEVER, OK, Bools, Int64s
from harness.core.promises import Bounds

NOWHERE: Final = -1  # The home of a transaction whose generation is not known.


class Fate(IntEnum):
    """How much of a transaction a state must show."""

    KEPT = 0  # all of it
    VOID = 1  # nothing of it: it happened, and was legally lost
    FAILED = 2  # nothing of it: it never happened
    UNCLEAR = 3  # all of it, or nothing


class Claim(Struct, frozen=True, kw_only=True):
    """A transaction, and its epoch; None if that is not known."""

    transaction: Transaction
    epoch: int | None

    @property
    def is_acknowledged(self) -> bool:
        """True if the client got the answer ok."""
        return self.transaction.outcome == OK


class Claims:
    """All transactions of a run, n of them, and how much of each a state must show, as columns (n,).

    `earliest` is the first generation in which a transaction may have happened, `home` the one in which it did; NOWHERE
    if that is not known. restarts[left_out] was the first restart that did not restore it; len(restarts) if all did. At
    `end_seq` it had certainly ended: its answer, or the event of an unclear one; NEVER if there is neither. `is_sole`
    (m,): no other operation can have written that element; failed ones do not count, unless all of its writers failed.
    Raises HistoryError on a damaged history.
    """

    def __init__(self, history: Path, bounds: Bounds, written: Written) -> None:
        self.restarts: tuple[Restart, ...] = restarts(history)
        bits = bounds.saved_bits or 0
        self.written = written
        self.is_ok: Bools = written.outcome == OK
        self.is_failed: Bools = written.outcome == FAIL
        self.size = np.diff(written.start)
        is_info = written.outcome == INFO
        self.is_sole = _are_sole(written, self.is_failed)
        delivered_at, delivered_seq = _delivered(history, written, is_info[written.owner] & self.is_sole, bounds)
        self.epoch = np.where(is_info, delivered_at, written.epoch)
        self.end_seq = np.where(is_info, delivered_seq, written.complete_seq)
        begun = np.array([restart.seq for restart in self.restarts], np.int64)
        self.earliest = np.searchsorted(begun, written.invoke_seq)
        latest = np.searchsorted(begun, self.end_seq)
        # An epoch that two generations use belongs to the later one, unless that one had not begun.
        firsts = np.array([restart.first_epoch for restart in self.restarts], np.int64)
        reach = np.minimum.accumulate(firsts[::-1])[::-1]
        by_epoch = np.minimum(np.maximum(np.searchsorted(reach, self.epoch, side="right"), self.earliest), latest)
        is_certain = self.is_ok & (self.earliest == latest)
        has_epoch = self.epoch != NEVER
        self.home = np.where(has_epoch, by_epoch, np.where(is_certain, self.earliest, NOWHERE))
        saved = np.where(has_epoch, self.epoch >> bits, -1)
        self.left_out = np.where(
            has_epoch, kept_until(self.restarts, np.maximum(self.home, 0), saved), len(self.restarts)
        )

    def after(self, number: int) -> Bools:
        """True for transactions that may be in the state after `number` restarts."""
        result: Bools = (self.earliest < number) & (self.home < number)
        return result

    def fates(self, number: int) -> Int64s:
        """The fate of each transaction in a state after `number` restarts."""
        is_unclear = (self.home == NOWHERE) | ((self.epoch == NEVER) & (self.home < number))
        fate = np.where(self.left_out < number, Fate.VOID, Fate.KEPT)
        return np.where(self.is_failed, Fate.FAILED, np.where(is_unclear, Fate.UNCLEAR, fate))

    def claim(self, row: int) -> Claim:
        """The transaction in that row, as an object."""
        epoch = int(self.epoch[row])
        return Claim(transaction=self.written.transaction(row), epoch=None if epoch == NEVER else epoch)


def _are_sole(written: Written, is_failed: Bools) -> Bools:
    """True for elements, (m,), that one operation alone can have written."""
    has_failed = is_failed[written.owner]
    element = codes(written.key, written.value)
    every, others = (np.bincount(element[kept], minlength=len(element)) for kept in (slice(None), ~has_failed))
    result: Bools = np.where(has_failed, every[element], others[element]) == 1
    return result


def _delivered(history: Path, written: Written, is_meant: Bools, bounds: Bounds) -> tuple[Int64s, Int64s]:
    """For each operation the epoch and the `seq` of the first event that delivered one of its elements `is_meant` (m,).

    NEVER without one; (n,).
    """
    position, seq = np.full(len(written.index), NEVER, np.int64), np.full(len(written.index), NEVER, np.int64)
    wanted = np.flatnonzero(is_meant)
    if not len(wanted) or not (history / "events.parquet").is_file():
        return position, seq
    events = stream_events(history, "row", ["seq", "key", "value", "position"], bounds.views)
    at = integers(events["position"], NEVER)
    rows = np.flatnonzero(at != NEVER)
    rows = rows[ordered(integers(events["seq"])[rows])[0]]
    key, value = integers(events["key"], NEVER)[rows], integers(events["value"], NEVER)[rows]
    place = Join([written.key[wanted], written.value[wanted]], [key, value]).first
    wanted, place = wanted[place >= 0], place[place >= 0]
    first = first_rows(written.owner[wanted])
    owner, row = written.owner[wanted[first]], rows[place[first]]
    position[owner], seq[owner] = at[row], integers(events["seq"])[row]
    return position, seq
