"""The binlog of one injector and its index.

Theory of operation. The events of a session come in order: rows, a watermark at the end of each epoch, gaps, openings.
1. A complete epoch with rows is one transaction, with one row of ndb_apply_status. So whoever applies whole
   transactions has the state of the source at the end of an epoch, and its number, at each moment.
2. A change of the schema is a separate record after the transaction of its epoch, or alone.
3. An opening is a gap: everything up to its position may be missing. An incident with that position stands before the
   next epoch, at each opening but the first of the first session: servers are
   read only until both binlogs have begun (client.py), so the epochs before it are empty.
4. A record is shown to replicas when it is durable, and only then indexed: after a crash the index may lack the last
   epochs, and never names a transaction that the binlog lacks. The index is durable with the next record.
5. A channel for epoch L begins behind the indexed transaction of the highest epoch up to L, or with the binlog. All
   later records follow, with the changes of the schema and the incidents right after that transaction.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

from clusters.ndb.binlog import planted
from clusters.ndb.binlog.messages import (
    SCHEMA,
    BinlogDdl,
    BinlogEpoch,
    BinlogIncident,
    BinlogRecord,
    BinlogRow,
    Fetch,
    Fetched,
    IndexRow,
    Locate,
    Located,
)
from clusters.ndb.stream.messages import Row
from harness.core.machine import Context, Delivery, Dump, Durable

LOG = "binlog"
INDEX = "binlog-index"
BATCH = 50  # Records of one answer.
SPLIT = 4  # Rows above which the bug cuts an epoch in two.
TOKENS = 1 << 60  # Tokens of syncs from here on are those of the binlog.


class Binlog:
    """The binlog of server `server`, as one process writes it. Deliveries go in, records come out."""

    def __init__(self, server: int, bugs: frozenset[str], durable: Durable) -> None:
        self._server = server
        self._bugs = bugs
        self._records: list[BinlogRecord] = [
            record for record in durable.log(LOG) if isinstance(record, BinlogEpoch | BinlogDdl | BinlogIncident)
        ]
        self._index = [row for row in durable.log(INDEX) if isinstance(row, IndexRow)]
        self._durable = len(self._records)
        self._syncs: deque[tuple[int, tuple[IndexRow, ...], int]] = deque()  # End, rows to index, complete epoch.
        self._delayed: dict[int, tuple[tuple[BinlogRecord, ...], int]] = {}  # By token: what follows its index (a bug).
        self._token = TOKENS
        self._cause = ""
        self._complete = 0  # The last complete epoch of which everything is durable; 0: none in this life.

    @property
    def has_begun(self) -> bool:
        """True if this process has recorded a complete epoch."""
        return self._complete > 0

    def take(self, delivery: Delivery, rows: Sequence[Row], context: Context) -> None:
        """Write what a delivery means; `rows` are the rows of its epoch if it is a watermark."""
        position = delivery.position or 0
        match delivery.kind:
            case "gap":
                self._cause = str(delivery.value)
            case "open":
                self._opened(delivery.session, position, context)
            case "watermark":
                self._epoch(position, rows, context)
            case _:
                pass

    def synced(self, token: int, context: Context) -> None:
        """Note that records are durable, and index their epochs (invariant 4)."""
        if token in self._delayed:
            records, late = self._delayed.pop(token)
            self._append(records, (), late, context)
            return
        end, indexed, complete = self._syncs.popleft()
        self._durable = max(self._durable, end)
        self._complete = max(self._complete, complete)
        if indexed:
            context.point("before-index")
        self._enter(indexed, context)

    def located(self, message: Locate) -> Located:
        """The position from which a replica that has everything up to an epoch reads on (invariant 5)."""
        place = bisect_right(self._index, message.epoch, key=lambda row: row.epoch)
        if planted.SWITCH_TO_FIRST_GREATER in self._bugs and place < len(self._index):
            return Located(message.number, self._index[place].position)
        return Located(message.number, self._index[place - 1].next_position if place else 0)

    def fetched(self, message: Fetch) -> Fetched:
        """The durable records from a position on."""
        end = min(self._durable, message.position + BATCH)
        records = tuple(self._records[message.position : end])
        is_all = not records and not self._syncs
        return Fetched(message.number, message.position, records, self._complete if is_all else 0)

    def dump(self, context: Context) -> None:
        """Show the binlog and its index."""
        shown = [_shown(record) for record in self._records[: self._durable]]
        context.dump(Dump(object="binlog", key=context.node, value=shown))
        index = [[row.epoch, row.position, row.next_position, row.count] for row in self._index]
        context.dump(Dump(object="binlog-index", key=context.node, value=index))

    def _opened(self, session: int, position: int, context: Context) -> None:
        """Invariant 3."""
        cause, self._cause = self._cause, ""
        if (session == 1 and not self._records and not cause) or (
            cause == "inconsistent" and planted.INJECTOR_IGNORES_INCONSISTENT in self._bugs
        ):
            return
        context.sometimes("an incident was written")
        self._write((BinlogIncident(cause or "restart", position),), (), 0, context)

    def _epoch(self, epoch: int, rows: Sequence[Row], context: Context) -> None:
        """Invariants 1 and 2."""
        data = tuple(BinlogRow(row.key, row.value, row.transid) for row in rows if row.key != SCHEMA)
        transactions: tuple[BinlogRecord, ...] = (BinlogEpoch(self._server, epoch, data),) if data else ()
        if planted.BINLOG_EPOCH_SPLIT in self._bugs and len(data) > SPLIT:
            parts = (data[: len(data) // 2], data[len(data) // 2 :])
            transactions = tuple(BinlogEpoch(self._server, epoch, part) for part in parts)
        ddl = tuple(BinlogDdl(epoch, row.value) for row in rows if row.key == SCHEMA)
        place = len(self._records) + sum(len(records) for records, _ in self._delayed.values())
        indexed = (IndexRow(epoch, place, place + len(transactions), len(data)),) if data else ()
        if ddl and not data:
            context.sometimes("a binlog had a change of the schema alone")
        self._write((*transactions, *ddl), indexed, epoch, context)

    def _write(
        self, records: tuple[BinlogRecord, ...], indexed: tuple[IndexRow, ...], complete: int, context: Context
    ) -> None:
        """Append records, then sync and index them; a bug first syncs the index, and then appends."""
        if planted.INDEX_BEFORE_BINLOG not in self._bugs:
            self._append(records, indexed, complete, context)
            return
        self._enter(indexed, context)
        self._token += 1
        self._delayed[self._token] = (records, complete)
        context.sync(self._token)

    def _append(
        self, records: tuple[BinlogRecord, ...], indexed: tuple[IndexRow, ...], complete: int, context: Context
    ) -> None:
        """Append and sync records. An empty epoch needs no sync unless earlier records wait for one."""
        for record in records:
            context.append(LOG, record)
        self._records.extend(records)
        if not records and not self._syncs:
            self._complete = max(self._complete, complete)
            return
        self._syncs.append((len(self._records), indexed, complete))
        self._token += 1
        context.point("before-binlog-sync")
        context.sync(self._token)

    def _enter(self, indexed: tuple[IndexRow, ...], context: Context) -> None:
        """Enter rows into the index."""
        for row in indexed:
            self._index.append(row)
            context.append(INDEX, row)


def _shown(record: BinlogRecord) -> list[object]:
    """A record as checks read it: [kind, epoch, server, rows], a row is [key, value]."""
    match record:
        case BinlogEpoch(server, epoch, rows):
            return ["epoch", epoch, server, [[row.key, row.value] for row in rows]]
        case BinlogDdl(epoch, value):
            return ["ddl", epoch, 0, [[SCHEMA, value]]]
        case BinlogIncident(cause, until):
            return ["incident", until, 0, [[cause, None]]]
