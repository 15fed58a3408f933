"""Row locks of one node, shared or exclusive, with a fair queue for each key.

1. Waiters are served in order; only an upgrade goes to the front, since all others wait for its shared lock too.
2. Deadlocks are not detected here: a waiter that gives up is cancelled.
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
    """One lock, held by `owner` alone or by all in `shared`; `waiters` wait for it."""

    __slots__ = ("owner", "shared", "waiters")

    def __init__(self) -> None:
        self.owner: int | None = None
        self.shared: dict[int, None] = {}
        self.waiters: deque[_Waiter[R]] = deque()


class LockTable(Generic[R]):
    """All locks. A request that has to wait is returned by the `release` or `cancel` that grants it."""

    def __init__(self) -> None:
        self._locks: dict[Key, _Lock[R]] = {}

    def __len__(self) -> int:
        return len(self._locks)

    def keys(self) -> tuple[Key, ...]:
        """The keys that are locked or waited for."""
        return tuple(self._locks)

    def take(self, key: Key, owner: int, request: R, *, is_exclusive: bool) -> bool:
        """True if the lock is granted at once, also if the owner already has as much; otherwise `request` waits."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = _Lock()
            if is_exclusive:
                lock.owner = owner
            else:
                lock.shared[owner] = None
            return True
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
        """Release the owner's lock of that key; returns the requests that this grants, in order."""
        lock = self._locks.get(key)
        if lock is None:
            return []
        if lock.owner == owner:
            lock.owner = None
        else:
            lock.shared.pop(owner, None)
        return self._grant(key, lock)

    def cancel(self, key: Key, owner: int) -> list[R]:
        """Stop waiting; returns the requests that this grants, in order. Locks that the owner has are kept."""
        lock = self._locks.get(key)
        if lock is None:
            return []
        lock.waiters = deque(waiter for waiter in lock.waiters if waiter.owner != owner)
        return self._grant(key, lock)

    def _grant(self, key: Key, lock: _Lock[R]) -> list[R]:
        """Grant locks to waiters, in order, as far as possible."""
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
