"""Locks, as etcd's own service makes them: a key with a lease, which is gone when the lease ends.

A lock alone does not exclude others once its holder is late: the lease ends, another gets the lock, and then the first
one's write arrives. A fenced write is on condition that its lock's key still exists, so it comes to nothing then.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from clusters.etcd.line import Line
from clusters.etcd.messages import message
from clusters.servers.client import Refused

WAYS: Final = ("off", "fenced", "bare")
LEASE_S: Final = 2  # etcd makes no shorter ones with its usual time-outs.
GONE: Final = "its lock was gone"
_GREATER, _BY_CREATION = 1, 1


class Locks:
    """The locks of one transaction, all with one lease."""

    def __init__(self, lease: int, keys: Sequence[bytes]) -> None:
        self._lease, self._keys = lease, keys

    @property
    def fence(self) -> list[Any]:
        """The condition that all locks still exist."""
        return [
            message("Compare", key=key, result=_GREATER, target=_BY_CREATION, create_revision=0) for key in self._keys
        ]

    async def release(self, line: Line) -> None:
        """End the lease, and with it the locks. If that fails, they end by themselves in time."""
        with suppress(Refused, OSError):
            await line.ask("revoke", message("LeaseRevokeRequest", ID=self._lease))


async def locked(line: Line, names: Sequence[bytes]) -> Locks:
    """The locks of those names, once nobody else has them. Raises Refused."""
    lease = (await line.ask("grant", message("LeaseGrantRequest", TTL=LEASE_S))).ID
    # In one order, so that two transactions never wait for each other.
    keys = [
        bytes((await line.ask("lock", message("LockRequest", name=name, lease=lease))).key) for name in sorted(names)
    ]
    return Locks(lease, keys)
