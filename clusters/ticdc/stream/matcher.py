"""The matcher of one session: rows that were locked wait here for the commit of their transaction.

Theory of operation. A prewrite brings a row; the first commit of its transaction in this region releases all rows of
the transaction here, since all of them were locked before any was committed. Later commits find nothing to release.
1. Until the scan is over, a commit may come before the row that it commits: commits are kept, and matched then.
2. A prewrite without a value is a heartbeat's: it never replaces a row.
3. Of two flushes of a key the one with the higher generation counts, in whatever order they come.
4. Transactions that were committed in part before the session began are released when the scan is over, as the
   watermark may have passed them already.
5. A capture of the old version releases each row with its own commit: right where the watermark waits for all of them.
"""

from typing import NamedTuple

from clusters.ticdc import planted
from clusters.ticdc.rows.messages import Elements
from clusters.ticdc.shape import Key
from clusters.ticdc.stream.messages import Initialized, RowEvent


class Row(NamedTuple):
    """A committed row. The order of these fields is the order of the stream."""

    commit_ts: int
    start_ts: int
    key: Key
    elements: Elements | None


class Matcher:
    """The rows of one session that wait for their commit."""

    def __init__(self, bugs: frozenset[str], *, is_by_row: bool) -> None:
        self.is_initialized = False
        self._rows: dict[int, dict[Key, tuple[int, Elements | None]]] = {}  # By start: generation and value.
        self._ends: list[RowEvent] = []  # Until the scan is over.
        self._is_by_row = is_by_row or planted.ROW_MATCHER in bugs
        self._is_hasty = planted.MATCH_BEFORE_INIT in bugs
        self._is_clobbered = planted.HEARTBEAT_CLOBBERS_ROW in bugs

    def take(self, event: RowEvent) -> list[Row]:
        """The rows that an event releases."""
        match event.kind:
            case "committed":
                return [Row(event.commit_ts, event.start_ts, event.key, event.elements)]
            case "prewrite":
                self._keep(event)
                return []
            case _ if self.is_initialized or self._is_hasty:
                return self._ended(event)
            case _:
                self._ends.append(event)
                return []

    def initialized(self, message: Initialized) -> list[Row]:
        """The rows that the end of the scan releases (invariants 1 and 4)."""
        self.is_initialized = True
        ends, self._ends = self._ends, []
        found = [row for event in ends for row in self._ended(event)]
        for start_ts, commit_ts in message.determined:
            found += self._released(start_ts, commit_ts)
        return found

    def _keep(self, event: RowEvent) -> None:
        rows = self._rows.setdefault(event.start_ts, {})
        held = rows.get(event.key)
        if event.elements is None and held is not None and not self._is_clobbered:
            return  # Invariant 2.
        if held is None or event.generation >= held[0]:
            rows[event.key] = (event.generation, event.elements)

    def _ended(self, event: RowEvent) -> list[Row]:
        if event.kind == "rollback":
            self._rows.pop(event.start_ts, None)
            return []
        if not self._is_by_row:
            return self._released(event.start_ts, event.commit_ts)
        rows = self._rows.get(event.start_ts, {})
        if event.key not in rows:
            return []
        return [Row(event.commit_ts, event.start_ts, event.key, rows.pop(event.key)[1])]

    def _released(self, start_ts: int, commit_ts: int) -> list[Row]:
        rows = self._rows.pop(start_ts, {})
        return [Row(commit_ts, start_ts, key, elements) for key, (_, elements) in rows.items()]
