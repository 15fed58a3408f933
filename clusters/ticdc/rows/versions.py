"""The locks and versions of one region replica, and the effects on them of the log's commands.

1. The state is a function of the commands alone, in their order: it is rebuilt from the log after a restart.
2. A key holds one lock at most. A version's commit timestamp is above those of all versions of its key before it.
3. On each key a transaction leaves either a version or a rollback record.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from clusters.ticdc.regions.messages import Contents
from clusters.ticdc.rows.messages import CommitKeys, Elements, Lock, PutLocks, RollBackKeys, RowCommand, Write
from clusters.ticdc.shape import Key, slot_of


class Change(Struct, frozen=True):
    """One effect of a command. `lock` is the lock that was set, or taken away; None if there was none to take away.

    `is_new`: the key had no lock before.
    """

    kind: Literal["prewrite", "rewrite", "commit", "rollback"]
    key: Key
    start_ts: int
    lock: Lock | None
    commit_ts: int = 0
    is_new: bool = True


class Versions:
    """The locks, versions and rollback records of a region."""

    def __init__(self) -> None:
        self.locks: dict[Key, Lock] = {}
        self._writes: dict[Key, list[Write]] = {}
        self._rolled_back: dict[tuple[Key, int], bool] = {}  # True: by a flashback.

    def newest(self, key: Key) -> int:
        """The timestamp of the key's newest version; 0 without one."""
        writes = self._writes.get(key)
        return writes[-1].commit_ts if writes else 0

    def commit_ts(self, key: Key, start_ts: int) -> int | None:
        """The timestamp at which that transaction committed the key; None if it did not."""
        for write in reversed(self._writes.get(key, ())):
            if write.start_ts == start_ts:
                return write.commit_ts
            if write.commit_ts < start_ts:
                return None
        return None

    def is_rolled_back(self, key: Key, start_ts: int) -> bool:
        """True if that transaction was rolled back on that key, and left a record of it."""
        return (key, start_ts) in self._rolled_back

    def is_flashed_back(self, key: Key, start_ts: int) -> bool:
        """True if it was a flashback that rolled that transaction back on that key."""
        return self._rolled_back[key, start_ts]

    def flashback(self) -> int:
        """The start of the flashback that holds locks here; 0 without one."""
        for lock in self.locks.values():
            if lock.is_flashback:
                return lock.start_ts
        return 0

    def read(self, key: Key, read_ts: int) -> Elements:
        """The value of the key at that timestamp. Locks are ignored."""
        for write in reversed(self._writes.get(key, ())):
            if write.commit_ts <= read_ts and write.kind == "put":
                return write.elements
        return ()

    def writes_after(self, timestamp: int) -> Iterator[tuple[Key, Write]]:
        """Each key with each of its versions above that timestamp, from the newest down."""
        for key, writes in self._writes.items():
            for write in reversed(writes):
                if write.commit_ts <= timestamp:
                    break
                yield key, write

    def newest_values(self) -> Iterator[tuple[Key, Elements, int]]:
        """Each key that has a value, with that and the timestamp of its last change. Numbers come before text."""
        for key in sorted(self._writes, key=lambda key: (isinstance(key, str), key)):
            for write in reversed(self._writes[key]):
                if write.kind == "put":
                    yield key, write.elements, write.commit_ts
                    break

    def contents(self, absorbed: tuple[int, ...]) -> Contents:
        """All locks, versions and records as one value; `absorbed` are the regions that became a part of this one."""
        writes = tuple((key, tuple(held)) for key, held in self._writes.items())
        return Contents(tuple(self.locks.values()), writes, tuple(self._rolled_back.items()), absorbed)

    def take(self, contents: Contents) -> None:
        """Add the rows of another region, of which there are none here."""
        self.locks.update((lock.key, lock) for lock in contents.locks)
        self._writes.update((key, list(held)) for key, held in contents.writes)
        self._rolled_back.update(contents.rolled_back)

    def cut(self, slot: int) -> "Versions":
        """The rows from that slot up, which are no longer here."""
        part = Versions()
        part.locks = {key: lock for key, lock in self.locks.items() if slot_of(key) >= slot}
        part._writes = {key: held for key, held in self._writes.items() if slot_of(key) >= slot}
        part._rolled_back = {record: by for record, by in self._rolled_back.items() if slot_of(record[0]) >= slot}
        for key in part.locks:
            del self.locks[key]
        for key in part._writes:
            del self._writes[key]
        for record in part._rolled_back:
            del self._rolled_back[record]
        return part

    def apply(self, command: RowCommand) -> list[Change]:
        """Carry out a command, and return its effects in the order of its keys."""
        if isinstance(command, PutLocks):
            return [self._set(lock, is_rewrite=command.is_rewrite) for lock in command.locks]
        if isinstance(command, CommitKeys):
            return [change for key in command.keys if (change := self._committed(command, key)) is not None]
        return [self._taken_back(command, key) for key in command.keys]

    def _set(self, lock: Lock, *, is_rewrite: bool) -> Change:
        is_new = lock.key not in self.locks
        self.locks[lock.key] = lock
        return Change("rewrite" if is_rewrite else "prewrite", lock.key, lock.start_ts, lock, is_new=is_new)

    def _committed(self, command: CommitKeys, key: Key) -> Change | None:
        lock = self.locks.get(key)
        if lock is None or lock.start_ts != command.start_ts:
            return None
        del self.locks[key]
        write = Write(command.commit_ts, command.start_ts, lock.kind, lock.elements)
        self._writes.setdefault(key, []).append(write)
        return Change("commit", key, command.start_ts, lock, command.commit_ts)

    def _taken_back(self, command: RollBackKeys, key: Key) -> Change:
        lock = self.locks.get(key)
        if command.is_recorded:
            self._rolled_back[key, command.start_ts] = command.is_flashback
        if lock is not None and lock.start_ts == command.start_ts:
            del self.locks[key]
        else:
            lock = None
        return Change("rollback", key, command.start_ts, lock)
