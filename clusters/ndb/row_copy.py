"""The copy of all rows to a node that has come in, by the primary that goes on serving them meanwhile.

1. Each row is read and sent under a shared lock, which is held until the other node has it. Operations that got their
   lock before had either the other node in their chain, or are in the row that is sent; those after find the row there.
2. Only one key is locked on behalf of a copy at a time and place, and nothing else is awaited: it blocks for a while,
   but is in no deadlock.
"""

from collections import deque
from collections.abc import Callable, Iterable

from clusters.ndb.parts import Site
from clusters.ndb.rows import Rows
from clusters.ndb.shape import Key
from clusters.ndb.transactions import CopyDone, CopyRow
from harness.core.machine import NodeId

AT_ONCE = 16


class RowCopy:
    """One copy. `lock` and `unlock` act for it; a lock that has to wait is followed by `granted`."""

    def __init__(
        self, site: Site, rows: Rows, target: NodeId, *, lock: Callable[[Key], bool], unlock: Callable[[Key], None]
    ) -> None:
        self._site = site
        self._rows = rows
        self.target = target
        self._lock = lock
        self._unlock = unlock
        self._left: deque[Key] = deque()
        self._under_way: dict[Key, None] = {}  # Locked, or waiting for its lock.
        self._is_over = False

    def begin(self, keys: Iterable[Key]) -> None:
        """Copy these, which must be all rows there are and all that are locked, as they may become rows."""
        self._left.extend(keys)
        self._go_on()

    def granted(self, key: Key) -> None:
        """The row is locked: send it."""
        pairs = self._rows.pairs(key)
        if pairs:
            self._site.send(self.target, CopyRow(self._site.view.number, key, pairs))
        else:
            self.confirmed(key)

    def confirmed(self, key: Key) -> None:
        """The other node has it."""
        if key in self._under_way:
            del self._under_way[key]
            self._unlock(key)
            self._go_on()

    def stop(self) -> tuple[Key, ...]:
        """Begin no more; the keys for which a lock is held or awaited."""
        self._is_over = True
        self._left.clear()
        return tuple(self._under_way)

    def _go_on(self) -> None:
        while self._left and len(self._under_way) < AT_ONCE:
            key = self._left.popleft()
            self._under_way[key] = None
            if self._lock(key):
                self.granted(key)
        if not self._under_way and not self._left and not self._is_over:
            self._is_over = True
            self._site.send(self.target, CopyDone(self._site.view.number))
