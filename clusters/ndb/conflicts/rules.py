"""The functions for conflicts: whether a change from the other site is in conflict with the row that is there.

- NDB$EPOCH, NDB$EPOCH_TRANS: only at the primary, which wins. A row that a client wrote there is in conflict until its
  epoch has come back from the other site: until then the other site wrote without knowledge of it.
- NDB$MAX: a change must have a greater value than the row; a deletion must be of the value that is there.
- NDB$MAX_DELETE_WIN: likewise, but a deletion always wins, and what was deleted stays deleted.
"""

from typing import Final

from msgspec import Struct

from clusters.ndb.conflicts import planted
from clusters.ndb.conflicts.messages import Change
from clusters.ndb.conflicts.rows import Row, latest_epoch
from clusters.ndb.shape import SITES
from harness.core.machine import NodeId

EPOCH: Final = "epoch"
EPOCH_TRANS: Final = "epoch-trans"
MAX: Final = "max"
MAX_DELETE_WIN: Final = "max-delete-win"
RULES: Final = (EPOCH, EPOCH_TRANS, MAX, MAX_DELETE_WIN)
BY_EPOCH: Final = frozenset({EPOCH, EPOCH_TRANS})
PRIMARY: Final = SITES[0]


class Rule(Struct, frozen=True):
    """The rule of a run, at one site. `bits`: of a row's epoch, for the number within its global checkpoint."""

    name: str
    site: NodeId
    bits: int
    bugs: frozenset[str]

    @property
    def is_judge(self) -> bool:
        """True if this site looks for conflicts."""
        return self.name not in BY_EPOCH or self.site == PRIMARY

    @property
    def is_whole(self) -> bool:
        """True if this site rejects whole transactions."""
        return self.name == EPOCH_TRANS and self.is_judge

    def is_conflict(self, change: Change, row: Row | None, horizon: int) -> bool:
        """True if the row, or its absence, rejects the change. `horizon`: the other site had all epochs up to it."""
        if not self.is_judge:
            return False
        if self.name in BY_EPOCH:
            return row is not None and row.is_local and latest_epoch(row, self.bits, self.bugs) > horizon
        if change.value is None:
            is_sure = self.name == MAX_DELETE_WIN or (planted.MAX_DELETE_BY_ORDER in self.bugs and self.site != PRIMARY)
            return not is_sure and (row is None or row.value != change.before)
        return row is not None and self.is_too_small(change.value, row)

    def refusal(self, change: Change, row: Row | None) -> str:
        """Why a client may not make that change here; empty if it may: it must be what the rule lets through."""
        if self.name in BY_EPOCH or row is None or change.value is None:
            return ""
        return "a greater value is there" if self.is_too_small(change.value, row) else ""

    def is_too_small(self, value: object, row: Row) -> bool:
        """True if a value does not count against that row's."""
        if self.name == MAX_DELETE_WIN and row.value is None:
            return True
        return isinstance(value, int) and isinstance(row.peak, int) and value <= row.peak
