"""The storage of lists and registers, and the statements for them.

Keys are distributed over several tables of each kind. A key is stored as its JSON, a list as the JSON of its elements,
one per line, so that an append is a concatenation, and a register as the JSON of its value. Each statement that writes
changes one row, so that the change stream has one row for each write of a transaction, in order.
"""

from collections.abc import Sequence
from typing import Final

from clusters.servers.values import decoded, encoded
from harness.core.record import Json

TABLES: Final = 3
LIST, REGISTER, CELL = "list", "register", "cell"  # A cell is a register outside transactions and streams.
STREAMED: Final = tuple(f"{sort}_{number}" for sort in (LIST, REGISTER) for number in range(TABLES))
PUBLICATION: Final = "seamark"
LSN: Final = "pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
_NEWLINE: Final = b"\n"
_LOCKS: Final = {"shared": " FOR SHARE", "exclusive": " FOR UPDATE"}


def table_of(sort: str, key: Json) -> str:
    """The table of that key."""
    if sort == CELL:
        return CELL
    number = key if isinstance(key, int) else sum(encoded(key))
    return f"{sort}_{number % TABLES}"


def set_up() -> Sequence[str]:
    """The statements that create everything clients need; they can be repeated."""
    tables = [
        f"CREATE TABLE IF NOT EXISTS {name} (key text PRIMARY KEY, value text NOT NULL)" for name in (*STREAMED, CELL)
    ]
    publication = (
        f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = '{PUBLICATION}') THEN "
        f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {', '.join(STREAMED)}; END IF; END $$"
    )
    return (*tables, publication, "CREATE EXTENSION IF NOT EXISTS pg_walinspect")


def slot(name: str) -> str:
    """The statement that creates a logical slot, unless it exists."""
    return (
        f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput') "  # noqa: S608  A slot of ours.
        f"WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = '{name}')"
    )


def read(table: str, lock: str | None = None) -> str:
    """The statement that reads a key.

    Under a lock, "shared" or "exclusive", an existing row stays locked until the end.
    """
    return f"SELECT value FROM {table} WHERE key = $1{_LOCKS.get(lock or '', '')}"  # noqa: S608  A table of ours.


def append(table: str) -> str:
    """The statement that appends an element to a key.

    It returns the transaction's number, and a position before its commit.
    """
    return _upsert(table, "held.value || E'\\n' || excluded.value")


def write(table: str) -> str:
    """The statement that sets a key to a value. It returns the same as an append."""
    return _upsert(table, "excluded.value")


def swap(table: str) -> str:
    """The statement that sets a key from an expected value, its third parameter. It returns a row if it did."""
    return f"UPDATE {table} SET value = $2 WHERE key = $1 AND value = $3 RETURNING key"  # noqa: S608  A table of ours.


COMMITTED_AT: Final = (
    "SELECT end_lsn - '0/0'::pg_lsn "
    "FROM pg_get_wal_records_info('0/0'::pg_lsn + $1::numeric, pg_current_wal_flush_lsn()) "
    "WHERE resource_manager = 'Transaction' AND xid::text = $2 AND record_type LIKE 'COMMIT%'"
)


def elements(stored: bytes | None) -> list[Json]:
    """The list in a stored row; None is a list without appends."""
    return [] if stored is None else [decoded(line) for line in stored.split(_NEWLINE)]


def number(found: Sequence[Sequence[bytes | None]]) -> int | None:
    """The single number that was queried, or None if it was not found."""
    return int(found[0][0]) if len(found) == 1 and found[0][0] is not None else None


def shown(table: str, stored: bytes) -> Json:
    """The change that a changed row shows: the last appended element, or the register's value."""
    return decoded(stored.rpartition(_NEWLINE)[2] if table.startswith(LIST) else stored)


def _upsert(table: str, change: str) -> str:
    return (
        f"INSERT INTO {table} AS held (key, value) VALUES ($1, $2) "  # noqa: S608  A table of ours.
        f"ON CONFLICT (key) DO UPDATE SET value = {change} RETURNING pg_current_xact_id()::text, {LSN}"
    )
