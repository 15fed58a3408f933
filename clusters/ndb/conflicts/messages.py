"""Records of a site's log, and messages between sites and clients.

A server id, `origin`, is that of a site: its place in SITES, from 1 on. A transaction's name is a number of its site.
"""

from typing import Final

from msgspec import Struct

from clusters.ndb.shape import SITES
from harness.core.machine import NodeId
from harness.core.record import Json, MicroOp

SERVERS: Final = tuple(range(1, len(SITES) + 1))


def site_of(server: int) -> NodeId:
    """The site with that server id."""
    return SITES[server - 1]


class Change(Struct, frozen=True, tag=True):
    """A transaction changed a row, or read it under tracking. `origin` is the server id that its any_value carries.

    `before` is the value that it replaced, null for none; a null `value` deletes the row.
    """

    transaction: int
    origin: int
    key: Json
    value: Json = None
    before: Json = None
    is_read: bool = False


class SiteCommit(Struct, frozen=True, tag=True):
    """A client's transaction, in that epoch of its site."""

    epoch: int
    changes: tuple[Change, ...]


class SiteArrival(Struct, frozen=True, tag=True):
    """An epoch of the other site, committed as one transaction in the local epoch `epoch`.

    `source` is the other site's epoch: the row of ndb_apply_status. `reflected` is the last epoch of this site that the
    other one had applied by then. `transactions` have the order of the other site.
    """

    epoch: int
    source: int
    reflected: int
    transactions: tuple[int, ...]
    applied: tuple[Change, ...]
    rejected: tuple[Change, ...]
    refreshed: tuple[Change, ...]


class SiteEpoch(Struct, frozen=True, tag=True):
    """An epoch of a site as its binlog has it, with its row of ndb_apply_status for the other site, `reflected`."""

    epoch: int
    reflected: int
    changes: tuple[Change, ...]


class Pull(Struct, frozen=True, tag=True):
    """Site to site: send the epochs after this one."""

    after: int


class Pulled(Struct, frozen=True, tag=True):
    """The first epochs after that one, in order."""

    after: int
    epochs: tuple[SiteEpoch, ...]


class Write(Struct, frozen=True, tag=True):
    """Client to site: carry out a transaction, all at once."""

    mops: tuple[MicroOp, ...]


class Written(Struct, frozen=True, tag=True):
    """It is committed, and on the disk. Without a change it has no number."""

    transaction: int | None
    epoch: int
    mops: tuple[MicroOp, ...]


class WriteRefused(Struct, frozen=True, tag=True):
    """It is not carried out."""

    reason: str


class AskPosition(Struct, frozen=True, tag=True):
    """Client to site: how far is it?"""


class Position(Struct, frozen=True, tag=True):
    """Its last epoch with changes, and the other site's last epoch that it applied.

    `rises`: how often `last` had risen from one such question to the next since a client last wrote.
    """

    last: int
    applied: int
    rises: int


class AtRest(Struct, frozen=True, tag=True):
    """Client to site: each site has all changes of the other one."""


class Noted(Struct, frozen=True, tag=True):
    """The answer: noted."""


LogRecord = SiteCommit | SiteArrival
