"""Actions that wait for the disk.

Theory of operation. A node asks its disk to sync, with a token, and gets the token back once all writes before are
durable.
1. An action is carried out once, after every write that came before `sync` is durable: an answer that rests on a write
   may wait here.
2. A crash ends all actions that wait: whatever was promised was not sent yet.
"""

from collections.abc import Callable

from harness.core.machine import Context


class Syncs:
    """The actions of one node that wait for its disk, by token."""

    def __init__(self) -> None:
        self._waiting: dict[int, Callable[[], None]] = {}
        self._last_token = 0

    def sync(self, context: Context, then: Callable[[], None]) -> None:
        """Carry out `then` when all earlier writes are durable."""
        self._last_token += 1
        self._waiting[self._last_token] = then
        context.sync(self._last_token)

    def synced(self, token: int) -> None:
        """Carry out the action that waited for that sync."""
        self._waiting.pop(token)()
