"""Row locks of one node, shared or exclusive, with a fair queue for each key.

1. Who waits is served in order; only an upgrade goes to the front, since all others wait for its shared lock as well.
2. Nobody detects deadlocks here: a waiter that gives up is cancelled.
"""

from collections import deque
from typing import Generic, TypeVar

from clusters.ndb.shape import Key

R = TypeVar("R")


class _Waiter(Generic[R]):
    __slots__ = ("is_exclusive", "owner", "request")

    def __init__(self, owner: int, is_exclusive: bool, request: R) -> None:
        self.owner = owner
        self.is_exclusive = is_exclusive
        self.request = request


class _Lock(Generic[R]):
    """Either `owner` has it alone, or those in `shared` have it; in `waiters` are the others."""

    __slots__ = ("owner", "shared", "waiters")

    def __init__(self) -> None:
        self.owner: int | None = None
        self.shared: dict[int, None] = {}
        self.waiters: deque[_Waiter[R]] = deque()


class LockTable(Generic[R]):
    """All locks. A request that has to wait is handed back by the `release` or `cancel` that grants it."""

    def __init__(self) -> None:
        self._locks: dict[Key, _Lock[R]] = {}

    def __len__(self) -> int:
        return len(self._locks)

    def keys(self) -> tuple[Key, ...]:
        """The keys that somebody has locked, or waits for."""
        return tuple(self._locks)

    def take(self, key: Key, owner: int, request: R, *, is_exclusive: bool) -> bool:
        """Is it granted at once? It is if the owner has as much already; otherwise `request` waits."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = _Lock()
        if lock.owner == owner:
            return True
        if owner in lock.shared:
            if not is_exclusive:
                return True
            lock.waiters.appendleft(_Waiter(owner, is_exclusive, request))
            if len(lock.shared) > 1:
                return False
        else:
            lock.waiters.append(_Waiter(owner, is_exclusive, request))
            if len(lock.waiters) > 1:
                return False
        return bool(self._grant(key, lock))

    def release(self, key: Key, owner: int) -> list[R]:
        """Give up what the owner has of that key; the requests that this grants, in order."""
        lock = self._locks.get(key)
        if lock is None:
            return []
        if lock.owner == owner:
            lock.owner = None
        else:
            lock.shared.pop(owner, None)
        return self._grant(key, lock)

    def cancel(self, key: Key, owner: int) -> list[R]:
        """Give up waiting; the requests that this grants, in order. What the owner has it keeps."""
        lock = self._locks.get(key)
        if lock is None:
            return []
        lock.waiters = deque(waiter for waiter in lock.waiters if waiter.owner != owner)
        return self._grant(key, lock)

    def _grant(self, key: Key, lock: _Lock[R]) -> list[R]:
        """Serve the queue as far as it goes."""
        granted = []
        while lock.waiters and lock.owner is None:
            waiter = lock.waiters[0]
            if not waiter.is_exclusive:
                lock.shared[waiter.owner] = None
            elif not lock.shared or (len(lock.shared) == 1 and waiter.owner in lock.shared):
                lock.shared.clear()
                lock.owner = waiter.owner
            else:
                break
            lock.waiters.popleft()
            granted.append(waiter.request)
        if lock.owner is None and not lock.shared and not lock.waiters:
            del self._locks[key]
        return granted
