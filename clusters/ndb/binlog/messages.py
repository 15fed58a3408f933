"""Records of the binlog and of its index, and messages between injectors, replicas and clients.

A position is the place of a record in the binlog, from 0. `number` counts a replica's channels: it drops
answers to an earlier one.
"""

from typing import Final

from msgspec import Struct

from harness.core.record import Json

SCHEMA: Final = "schema"  # The key whose elements are changes of the schema.


class BinlogRow(Struct, frozen=True, tag=True):
    """A transaction changed a row."""

    key: Json
    value: Json
    transid: int


class BinlogEpoch(Struct, frozen=True, tag=True):
    """The transaction of an epoch; `server` and `epoch` are its row of ndb_apply_status."""

    server: int
    epoch: int
    rows: tuple[BinlogRow, ...]


class BinlogDdl(Struct, frozen=True, tag=True):
    """A change of the schema, distributed in that epoch; it follows the epoch's transaction, if there is one."""

    epoch: int
    value: Json


class BinlogIncident(Struct, frozen=True, tag=True):
    """LOST_EVENTS: epochs up to `until` may be missing before this place. The cause is the cause of the gap."""

    cause: str
    until: int


class IndexRow(Struct, frozen=True, tag=True):
    """A row of ndb_binlog_index: the epoch's transaction, with `count` rows, is between these two positions."""

    epoch: int
    position: int
    next_position: int
    count: int


class Locate(Struct, frozen=True, tag=True):
    """Replica to injector: where does what follows this epoch begin?"""

    number: int
    epoch: int


class Located(Struct, frozen=True, tag=True):
    """It begins at this position, perhaps with records that the replica has."""

    number: int
    position: int


class Fetch(Struct, frozen=True, tag=True):
    """Replica to injector: send the records from this position on."""

    number: int
    position: int


class Fetched(Struct, frozen=True, tag=True):
    """Durable records from that position on. If there are none: all up to epoch `complete` was before it."""

    number: int
    position: int
    records: tuple[BinlogEpoch | BinlogDdl | BinlogIncident, ...]
    complete: int


class IsReady(Struct, frozen=True, tag=True):
    """Client to injector: has the binlog begun? Before, the tables are read only through this server."""


class Applied(Struct, frozen=True, tag=True):
    """One transaction of a replica, also on its disk: rows, and the position (server, epoch) if epoch is not 0."""

    rows: tuple[BinlogRow, ...]
    server: int
    epoch: int


class ReplicaRead(Struct, frozen=True, tag=True):
    """Client to replica: its position, and the lists of these keys, at one moment."""

    keys: tuple[Json, ...]


class SwitchChannel(Struct, frozen=True, tag=True):
    """Client to replica: go over to the other binlog."""


class CatchUp(Struct, frozen=True, tag=True):
    """Client to replica: answer when everything up to this epoch is there, or nothing more can come."""

    epoch: int


class Shown(Struct, frozen=True, tag=True):
    """The answer to a client: yes, with a value if one was read."""

    value: Json = None


class NotYet(Struct, frozen=True, tag=True):
    """The answer to a client: no."""


BinlogRecord = BinlogEpoch | BinlogDdl | BinlogIncident
