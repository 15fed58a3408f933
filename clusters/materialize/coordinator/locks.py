"""The locks of tables, which order read-then-writes among other writes.

Theory of operation. A plain write holds its table together with others until it is durable. A read-then-write holds all
tables that it reads or writes alone: from before its read until its write is durable. So no other write is committed
to them in between. Requests for a table are served in their order.
"""

from collections.abc import Sequence


class Locks:
    """The tables that are held."""

    def __init__(self) -> None:
        self._shared: dict[str, int] = {}
        self._alone: set[str] = set()

    def is_free(self, tables: Sequence[str], *, is_alone: bool) -> bool:
        """True if the tables can be held."""
        return not any(table in self._alone or (is_alone and self._shared.get(table)) for table in tables)

    def take(self, tables: Sequence[str], *, is_alone: bool) -> None:
        """Hold tables that are free."""
        for table in tables:
            if is_alone:
                self._alone.add(table)
            else:
                self._shared[table] = self._shared.get(table, 0) + 1

    def release(self, tables: Sequence[str], *, is_alone: bool) -> None:
        """Give tables back."""
        for table in tables:
            if is_alone:
                self._alone.discard(table)
            else:
                self._shared[table] -= 1
