"""The applier: from the records of a binlog to the transactions that a target commits.

Theory of operation. It is pure. A target (the tables of a replica, or another cluster) commits what it gives, in order.
1. An epoch is one transaction, with the position (ndb_apply_status). So after a crash the target's own
   position is exactly what it has, and whatever is not later is passed over. An idempotent applier applies it again
   instead, and the target ignores what it has.
2. Two workers apply the rows of an epoch, and the rows of one key go to the same one, in their order. The transaction
   commits when both are done.
3. An incident that reaches beyond the position stops the channel. One that does not has no epoch that is lacking:
   the other binlog gave them.
"""

from zlib import crc32

import msgspec

from clusters.ndb.binlog import planted
from clusters.ndb.binlog.messages import SCHEMA, Applied, BinlogDdl, BinlogEpoch, BinlogRecord, BinlogRow

WORKERS = 2


class Applier:
    """The applier of one life of a replica. `latest` is the position: the highest epoch that was given."""

    def __init__(self, latest: int, bugs: frozenset[str], *, is_idempotent: bool) -> None:
        self.latest = latest
        self._bugs = bugs
        self._is_idempotent = is_idempotent
        self._is_new = True  # The channel has given no epoch yet.

    def opened(self) -> None:
        """Note that records of another channel follow."""
        self._is_new = True

    def transactions(self, record: BinlogRecord) -> tuple[Applied, ...] | None:
        """The transactions that the target commits for that record; None if the channel stops there (invariant 3)."""
        match record:
            case BinlogEpoch(server, epoch, rows):
                self._is_new = False
                if epoch <= self.latest and not self._is_idempotent:
                    return ()
                self.latest = max(self.latest, epoch)
                return self._divided(Applied(self._dealt(rows), server, epoch))
            case BinlogDdl(value=value):
                return (Applied((BinlogRow(SCHEMA, value, 0),), 0, 0),)
            case _:
                is_ignored = self._is_new and planted.SWITCH_IGNORES_GAP in self._bugs
                return () if record.until <= self.latest or is_ignored else None

    def _dealt(self, rows: tuple[BinlogRow, ...]) -> tuple[BinlogRow, ...]:
        """The rows, worker by worker (invariant 2)."""
        if planted.APPLIER_PARALLEL_NO_HASH in self._bugs:
            return tuple(row for worker in range(WORKERS) for row in rows[worker::WORKERS])
        workers = [crc32(msgspec.json.encode(row.key)) % WORKERS for row in rows]
        return tuple(row for worker in range(WORKERS) for row, own in zip(rows, workers, strict=True) if own == worker)

    def _divided(self, whole: Applied) -> tuple[Applied, ...]:
        """Invariant 1: one transaction, unless a bug divides it."""
        data, status = Applied(whole.rows, 0, 0), Applied((), whole.server, whole.epoch)
        if planted.APPLY_STATUS_SEPARATE in self._bugs:
            return data, status
        if planted.APPLY_STATUS_BEFORE in self._bugs:
            return status, data
        return (whole,)
