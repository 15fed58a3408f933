"""The tables of a replica: lists, the schema, and its position, ndb_apply_status, with the highest epoch by server."""

from collections.abc import Callable, Sequence

from clusters.ndb.binlog.messages import SCHEMA, Applied, BinlogRow
from harness.core.machine import Message
from harness.core.record import Json

Accepts = Callable[[BinlogRow, Sequence[Json]], bool]  # Whether a row is applied to the list that is there.


def every(_row: BinlogRow, _held: Sequence[Json]) -> bool:
    """Accept each row: nobody else writes to the tables."""
    return True


def unknown(row: BinlogRow, held: Sequence[Json]) -> bool:
    """Accept what is not there: the idempotent mode."""
    return row.value not in held


class Tables:
    """The tables after these transactions. A conflict function, `accepts`, may refuse single rows."""

    def __init__(self, transactions: Sequence[Message], accepts: Accepts = every) -> None:
        self.lists: dict[Json, list[Json]] = {}
        self.schema: list[Json] = []
        self.status: dict[int, int] = {}
        self._accepts = accepts
        for transaction in transactions:
            if isinstance(transaction, Applied):
                self.commit(transaction)

    @property
    def latest(self) -> int:
        """The highest epoch in ndb_apply_status; 0 at first."""
        return max(self.status.values(), default=0)

    def commit(self, transaction: Applied) -> None:
        """Commit a transaction: all of its rows that are accepted, and the position. Schema changes are idempotent."""
        for row in transaction.rows:
            if row.key == SCHEMA:
                if row.value not in self.schema:
                    self.schema.append(row.value)
            elif self._accepts(row, self.lists.get(row.key, ())):
                self.lists.setdefault(row.key, []).append(row.value)
        if transaction.epoch:
            server = transaction.server
            self.status[server] = max(self.status.get(server, 0), transaction.epoch)
