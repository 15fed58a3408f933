"""The shape of the cluster: its servers, who replicates from whom, and the tables.

Each master has keys of its own: even keys belong to m1, odd ones to m2. Their rows are the elements of lists.
"""

from typing import Final
from zlib import crc32

from harness.core.machine import NodeId
from harness.core.record import Json

MS: Final = 1_000_000
US: Final = 1_000

MASTERS: Final = (NodeId("m1"), NodeId("m2"))
REPLICAS: Final = (NodeId("r1"), NodeId("r2"))
OBSERVER: Final = NodeId("o1")

# The servers from which each server replicates. The masters form a ring; r1 has all that m1 has, r2 follows both.
SOURCES: Final[dict[NodeId, tuple[NodeId, ...]]] = {
    MASTERS[0]: (MASTERS[1],),
    MASTERS[1]: (MASTERS[0],),
    REPLICAS[0]: (MASTERS[0],),
    REPLICAS[1]: MASTERS,
}
ONLY_LOCAL: Final = frozenset({REPLICAS[1]})  # Servers that take only transactions born at the source.

TABLES: Final = ("lists", "queues", "private")  # Each master has such; the names on m2 end in 2.
OWN: Final = "own"  # The value of people that were inserted on a replica.
PEOPLE: Final = "people"  # A table whose rows are set, and change their keys.
ADMITTED: Final = frozenset({"lists", "queues", "lists2", "queues2"})  # The tables of the filtered stream.

FIRST_TRX: Final = 2**32 - 40  # Transaction ids soon need more than 32 bits.
LIFE_TRXS: Final = 100_000  # Transaction ids of one life of a server.
BATCH: Final = 25  # Transactions of one poll.


def source_name(node: NodeId, source: NodeId) -> str:
    """The log that a server applies, as checks call it."""
    return f"{source} local" if node in ONLY_LOCAL else str(source)


def file_source(master: NodeId) -> str:
    """A master's file log, which the observer applies, as checks call it."""
    return f"{master} file"


def master_of(key: Json) -> NodeId:
    """The master that a key belongs to."""
    return MASTERS[_number(key) % len(MASTERS)]


def table_of(key: Json) -> str:
    """The table of a list."""
    place, master = divmod(_number(key), len(MASTERS))
    return own_name(TABLES[place % len(TABLES)], MASTERS[master])


def own_name(table: str, master: NodeId) -> str:
    """The name of a table of that master."""
    return table if master == MASTERS[0] else f"{table}2"


def _number(key: Json) -> int:
    return key if isinstance(key, int) else crc32(str(key).encode())
