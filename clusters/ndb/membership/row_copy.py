"""The copy of all rows to a joining node, by the primary, which continues to serve them.

1. Each row is read and sent under a shared lock, which is held until the other node has it. Operations that got their
   lock earlier either had the other node in their chain, or are in the row that is sent; later ones find the row
   there.
2. A copy locks only one key at a time at each place, and awaits nothing else: it may block for a while, but cannot
   deadlock.
"""

from collections import deque
from collections.abc import Callable, Iterable

from clusters.ndb.parts import Site
from clusters.ndb.shape import Key
from clusters.ndb.transactions.messages import CopyDone, CopyRow
from clusters.ndb.transactions.rows import Rows
from harness.core.machine import NodeId

AT_ONCE = 16


class RowCopy:
    """One copy of all rows. `lock` and `unlock` act for it; a lock that has to wait is followed by `granted`."""

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
        """Copy these keys, which must include all rows and all locked keys, as those may become rows."""
        self._left.extend(keys)
        self._go_on()

    def granted(self, key: Key) -> None:
        """Send the row, whose lock is held now."""
        pairs = self._rows.pairs(key)
        if pairs:
            self._site.send(self.target, CopyRow(self._site.view.number, key, pairs))
        else:
            self.confirmed(key)

    def confirmed(self, key: Key) -> None:
        """Unlock the row: the other node has it."""
        if key in self._under_way:
            del self._under_way[key]
            self._unlock(key)
            self._go_on()

    def stop(self) -> tuple[Key, ...]:
        """Stop copying; returns the keys for which a lock is held or awaited."""
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
