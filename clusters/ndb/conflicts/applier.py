"""The applier of a site: what of an epoch of the other site is applied, and what is rejected.

Theory of operation. It is pure, and an epoch is one transaction, with its position; see `SiteArrival`.
1. A change that was born here came back, and is passed over. It proves that the other site had it.
2. All changes of an epoch are judged by what earlier epochs had reflected: nobody knows which of them came before the
   change that came back with them.
3. NDB$EPOCH_TRANS rejects a transaction as a whole if one row that it wrote, or read under tracking, is in conflict, or
   if it touched a row of a rejected transaction of this epoch, unless a change of this site came to lie on that row.
   In later epochs the refreshed rows are in conflict themselves.
4. Every rejected row is refreshed: its value here, or its absence, is sent out as a new change, so that the other site
   takes it over.
"""

from collections import ChainMap
from collections.abc import Iterator, Sequence
from itertools import groupby

from clusters.ndb.conflicts import planted
from clusters.ndb.conflicts.messages import Change, SiteArrival, SiteEpoch
from clusters.ndb.conflicts.rows import Row, Rows, write
from clusters.ndb.conflicts.rules import BY_EPOCH, Rule
from harness.core.machine import Context
from harness.core.record import Json


class Verdicts:
    """The verdicts on one epoch of the other site, which becomes part of the local epoch `epoch`."""

    def __init__(self, rule: Rule, rows: Rows, server: int, horizon: int) -> None:
        self._rule = rule
        self._rows: Rows = ChainMap({}, rows)  # As they are while the epoch is applied.
        self._server = server
        self._horizon = horizon
        self._lost: set[Json] = set()  # Rows that rejected transactions of this epoch wrote.
        self._applied: list[Change] = []
        self._rejected: list[Change] = []

    def of(self, source: SiteEpoch, epoch: int, number: int, context: Context) -> SiteArrival:
        """What the site commits. `number` is the name of the transaction that refreshes rows, if there is one."""
        names: list[int] = []
        for (transaction, origin), group in groupby(source.changes, lambda each: (each.transaction, each.origin)):
            changes = list(group)
            if origin == self._server:
                context.sometimes("a change came back")
                self._lost.difference_update(change.key for change in changes)
                continue
            names.append(transaction)
            self._judge(changes, epoch, context)
        return SiteArrival(
            epoch,
            source.epoch,
            source.reflected,
            tuple(names),
            tuple(self._applied),
            tuple(self._rejected),
            tuple(self._refreshed(number, context)),
        )

    def _judge(self, changes: Sequence[Change], epoch: int, context: Context) -> None:
        """Judge a transaction (invariant 3)."""
        in_conflict = [self._is_conflict(change, context) for change in changes]
        rejected = [change for change, is_so in zip(changes, in_conflict, strict=True) if is_so and not change.is_read]
        if self._rule.is_whole and planted.EPOCH_TRANS_ROW_ONLY not in self._rule.bugs:
            depends = any(change.key in self._lost for change in changes)
            if depends and not any(in_conflict):
                context.sometimes("a transaction was rejected for one that it builds on")
            if any(in_conflict) or (depends and planted.TRANS_DEPS_IGNORED not in self._rule.bugs):
                rejected = [change for change in changes if not change.is_read]
                self._lost.update(change.key for change in rejected)
        applied = [change for change in changes if not change.is_read and change not in rejected]
        write(self._rows, applied, epoch, is_local=False)
        self._applied += applied
        self._rejected += rejected

    def _is_conflict(self, change: Change, context: Context) -> bool:
        row = self._rows.get(change.key)
        if (change.is_read and not self._rule.is_whole) or not self._rule.is_conflict(change, row, self._horizon):
            return False
        context.sometimes(_goal(self._rule, change, row, self._horizon))
        return True

    def _refreshed(self, number: int, context: Context) -> Iterator[Change]:
        """Invariant 4."""
        if self._rule.name not in BY_EPOCH or planted.NO_REALIGN in self._rule.bugs:
            return
        for key in dict.fromkeys(change.key for change in self._rejected):
            context.sometimes("a row was refreshed")
            row = self._rows.get(key)
            value = None if row is None else row.value
            yield Change(number, self._server, key, value, value)


def _goal(rule: Rule, change: Change, row: Row | None, horizon: int) -> str:
    if change.is_read:
        return "a tracked read was in conflict"
    if rule.name not in BY_EPOCH:
        return "a deletion was rejected" if change.value is None else "a smaller value was rejected"
    is_sure = row is not None and row.epoch > horizon
    return "a change was in conflict with an unseen row" if is_sure else "a rounded epoch was in conflict"
