"""The store's end of the change stream of one region: the captures that listen, and what each is sent.

Theory of operation. A session begins with a scan of a snapshot: versions above its start, and live locks. It is sent
in pieces, and changes that are applied meanwhile are sent at once, between them.
1. Watermarks follow the end of the scan, by the same queue as rows: so they never overtake a row.
2. The store waits for no capture. One whose queue is full loses its session, and is informed when there is room: its
   rows are then sent again, by a scan. Watermarks may be left out, rows never.
3. A session that begins after the first commit of a large transaction here is informed of its commit timestamp, as
   the watermark may have passed it (advancer.py, invariant 5).
"""

from dataclasses import dataclass, field

from clusters.ticdc import planted
from clusters.ticdc.regions.messages import Region
from clusters.ticdc.rows.versions import Change, Versions
from clusters.ticdc.site import Site
from clusters.ticdc.stream.messages import CONGESTED, Entries, Initialized, RowEvent, SessionError
from clusters.ticdc.watermarks.advancer import Advancer
from harness.core.machine import NodeId

QUEUE_MAX = 256  # Messages that wait for one capture.
PIECE = 16  # Events of a scan that are sent at a time.


@dataclass(slots=True)
class Session:
    """One capture's session. `scan` is the part of the snapshot that is not yet sent; None after the scan."""

    request: int
    scan: list[RowEvent] | None
    determined: tuple[tuple[int, int], ...] = field(default=())


class Feed:
    """All captures' sessions with a region's leader, during one term."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._sessions: dict[NodeId, Session] = {}
        self._congested: dict[NodeId, int] = {}  # Requests whose captures have not been informed yet.
        self._aside: list[tuple[NodeId, Entries]] = []  # For a planted bug only: rows in a queue of their own.

    def subscribe(self, capture: NodeId, request: int, after: int, rows: Versions, advancer: Advancer) -> None:
        """Begin a session; an older one of that capture ends."""
        scan = [
            RowEvent("committed", key, write.start_ts, write.commit_ts, write.elements)
            for key, write in rows.writes_after(after)
            if write.kind == "put"
        ]
        scan += [
            RowEvent("prewrite", lock.key, lock.start_ts, 0, lock.elements, lock.generation)
            for lock in rows.locks.values()
            if lock.kind == "put"
        ]
        self._congested.pop(capture, None)
        self._sessions[capture] = Session(request, scan, advancer.determined())

    def closed(self, capture: NodeId) -> None:
        """End the session of a capture whose connection ended."""
        self._sessions.pop(capture, None)
        self._congested.pop(capture, None)

    def end(self, reason: str, regions: tuple[Region, ...], leader: NodeId | None) -> None:
        """End all sessions, as this replica no longer leads, or leads another region than before."""
        for capture, session in self._sessions.items():
            self._site.send(capture, SessionError(session.request, reason, regions, leader))
        self._sessions.clear()

    def has_scans(self) -> bool:
        """True while a scan is not finished, or a capture has not been informed that its session ended."""
        return bool(self._congested or self._aside) or any(
            session.scan is not None for session in self._sessions.values()
        )

    def scan(self) -> None:
        """Send the next piece of each scan, and inform the captures whose sessions ended and that have room again."""
        aside, self._aside = self._aside, []
        for capture, entries in aside:
            self._site.send(capture, entries)
        for capture, session in tuple(self._sessions.items()):
            if session.scan is None or not self._has_room(capture):
                continue
            piece, session.scan = session.scan[:PIECE], session.scan[PIECE:]
            if piece:
                self._site.send(capture, Entries(session.request, tuple(piece)))
            if not session.scan:
                session.scan = None
                self._site.context.point("before-initialized")
                self._site.send(capture, Initialized(session.request, session.determined))
        for capture, request in tuple(self._congested.items()):
            if self._site.context.queued(capture) < QUEUE_MAX // 2:
                del self._congested[capture]
                self._site.send(capture, SessionError(request, CONGESTED))

    def observe(self, changes: list[Change]) -> None:
        """Send these applied changes to all sessions."""
        if not self._sessions:
            return
        events = tuple([event for change in changes if (event := _event(change)) is not None])
        if not events:
            return
        for capture, session in tuple(self._sessions.items()):
            entries = Entries(session.request, events)
            if session.scan is not None and planted.SCAN_VS_OBSERVE in self._site.bugs:
                continue
            if not self._has_room(capture):
                self._lose(capture)
            elif planted.WM_OVERTAKES_ROWS in self._site.bugs:
                self._aside.append((capture, entries))
            else:
                self._site.send(capture, entries)

    def listeners(self) -> list[tuple[NodeId, int]]:
        """The captures to which a watermark can be sent now, with their requests."""
        return [
            (capture, session.request)
            for capture, session in self._sessions.items()
            if session.scan is None and self._site.context.queued(capture) < QUEUE_MAX
        ]

    def is_full(self) -> bool:
        """True if a capture's queue is full."""
        return any(not self._has_room(capture) for capture in (*self._sessions, *self._congested))

    def _has_room(self, capture: NodeId) -> bool:
        return self._site.context.queued(capture) < QUEUE_MAX

    def _lose(self, capture: NodeId) -> None:
        """End the session of a capture whose queue is full (invariant 2)."""
        self._site.context.sometimes("a congested capture lost its session")
        if planted.SLOW_SUB_DROPS_ROWS not in self._site.bugs:
            self._congested[capture] = self._sessions.pop(capture).request


def _event(change: Change) -> RowEvent | None:
    """The event that is sent for a change; None for none.

    The commit of each lock is sent, as the first frees the watermark.
    """
    lock = change.lock
    match change.kind:
        case "prewrite" if lock is not None and lock.kind == "put":
            return RowEvent("prewrite", change.key, change.start_ts, 0, lock.elements, lock.generation)
        case "rewrite" if lock is not None and lock.kind == "put":
            return RowEvent("prewrite", change.key, change.start_ts, 0, None, lock.generation)
        case "commit":
            return RowEvent("commit", change.key, change.start_ts, change.commit_ts)
        case "rollback" if lock is not None:
            return RowEvent("rollback", change.key, change.start_ts)
    return None
