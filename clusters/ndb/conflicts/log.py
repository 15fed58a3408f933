"""The log of a site, and all that follows from it: rows, exceptions, positions, and the binlog.

1. The log is the only durable thing. A client's transaction is one record, and so is an epoch of the other site, with
   its position, its exceptions and its refreshed rows: no crash parts them.
2. The binlog follows from the log: an epoch's transaction has the changes of all its records, and the other site's last
   epoch that had been applied by then. Changes that came from there keep their origin. An epoch without changes has no
   transaction, so two sites at rest have nothing to send to each other.
3. An epoch is in the binlog when it has ended and all its records are on the disk.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby

import msgspec

from clusters.ndb.conflicts import planted
from clusters.ndb.conflicts.messages import Change, LogRecord, SiteArrival, SiteCommit, SiteEpoch, site_of
from clusters.ndb.conflicts.rows import Row, write
from harness.core.machine import Message
from harness.core.record import Json


class SiteLog:
    """The log of the site with server id `server`, of which the first `durable` records are on the disk."""

    def __init__(self, server: int, bugs: frozenset[str], records: Sequence[Message]) -> None:
        self._server = server
        self._bugs = bugs
        self._records: list[LogRecord] = []
        self._reflected: list[int] = []  # By record: the position after it.
        self.durable = 0
        self.rows: dict[Json, Row] = {}
        self.horizon = 0  # The other site had all of our epochs up to it.
        self.applied = 0  # The other site's last epoch that is applied.
        self.last = 0  # The last epoch with changes.
        self.named = 0  # Transactions that have a name.
        for record in records:
            if isinstance(record, SiteCommit | SiteArrival):
                self.add(record)
        self.durable = len(self._records)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def latest(self) -> int:
        """The epoch of the last record."""
        return self._records[-1].epoch if self._records else 0

    def add(self, record: LogRecord) -> None:
        """Enter a record, and all that it changes."""
        if isinstance(record, SiteArrival):
            is_local = planted.AUTHOR_NOT_SET in self._bugs
            write(self.rows, record.applied, record.epoch, is_local=is_local)
            write(self.rows, record.refreshed, record.epoch, is_local=True)
            self.applied = record.source
            self.horizon = max(self.horizon, record.reflected)
        else:
            write(self.rows, record.changes, record.epoch, is_local=True)
        if isinstance(record, SiteCommit) or record.refreshed:
            self.named += 1
        if self._logged(record):
            self.last = record.epoch
        self._records.append(record)
        self._reflected.append(self.applied)

    def epochs(self, after: int, current: int, most: int) -> tuple[SiteEpoch, ...]:
        """The first `most` epochs of the binlog after that one; `current` has not ended (invariant 3)."""
        if self.durable < len(self._records):
            current = min(current, self._records[self.durable].epoch)
        found: list[SiteEpoch] = []
        place = bisect_right(self._records, after, key=lambda record: record.epoch)
        for epoch, group in groupby(self._records[place:], lambda record: record.epoch):
            if epoch >= current or len(found) == most:
                break
            records = list(group)
            place += len(records)
            changes = tuple(change for record in records for change in self._logged(record))
            if changes:
                found.append(SiteEpoch(epoch, self._reflected[place - 1], changes))
        return tuple(found)

    def shown(self) -> list[Json]:
        """The site's log as checks read it: see `Entry` in checkers/replication/sites.py."""
        entries: list[Json] = []
        for record in self._records:
            if isinstance(record, SiteCommit):
                entries.append(self._entry(record.epoch, self._server, record.changes))
                continue
            origins = {change.transaction: change.origin for change in (*record.applied, *record.rejected)}
            for name in record.transactions:
                changes = [change for change in record.applied if change.transaction == name]
                entries.append(self._entry(record.epoch, origins[name], changes, name))
            if record.refreshed:
                entries.append(self._entry(record.epoch, self._server, record.refreshed))
        return entries

    def exceptions(self) -> list[Json]:
        """The exceptions table: transaction, key and value of each rejected change."""
        arrived = (record for record in self._records if isinstance(record, SiteArrival))
        return [[each.transaction, each.key, each.value] for record in arrived for each in record.rejected]

    def _entry(self, epoch: int, origin: int, changes: Sequence[Change], name: int | None = None) -> Json:
        return {
            "transaction": changes[0].transaction if name is None else name,
            "origin": site_of(origin),
            "epoch": epoch,
            "rows": [[change.key, change.value] for change in changes if not change.is_read],
            "reads": [change.key for change in changes if change.is_read],
        }

    def _logged(self, record: LogRecord) -> tuple[Change, ...]:
        """What the binlog has of a record (invariant 2)."""
        if isinstance(record, SiteCommit):
            return record.changes
        applied = record.applied
        if planted.ORIGIN_LOST in self._bugs:
            applied = tuple(msgspec.structs.replace(change, origin=self._server) for change in applied)
        return (*applied, *record.refreshed)
