"""One after another the sessions in which a node follows collections by SUBSCRIBE.

Theory of operation. A session that ends, or is silent, is followed by another one at the other compute node.
Coordinators keep what may be requested again: they get to know how far a follower is, once that is durable. What a sink
follows for is the topic: the next sink goes on where that is.
"""

from clusters.materialize.messages import Hold, Subscribe, Unsubscribe
from clusters.materialize.shape import COMPUTE, COORDINATORS, MS
from clusters.materialize.site import Site
from harness.core.machine import NodeId

LOOK = "look"
LOOK_NS = 40 * MS
SILENT_NS = 500 * MS


class Following:
    """The present session of a follower, if there is one; `turn` decides with which compute node it begins."""

    def __init__(self, site: Site, follower: NodeId, collections: tuple[str, ...], turn: int) -> None:
        self.session = 0
        self.is_begun = False
        self._site, self._follower, self._collections, self._turn = site, follower, collections, turn
        self._source = COMPUTE[0]
        self._is_open = False
        self._heard_ns = 0

    def begin(self, ts: int) -> None:
        """Begin a session, which requests the updates at or above that timestamp."""
        self.session = max(self.session + 1, self._site.now_ns() // MS)  # No earlier life has used it.
        self.is_begun = self._is_open = True
        self._heard_ns = self._site.now_ns()
        self._source = COMPUTE[self._turn % len(COMPUTE)]
        self._site.send(self._source, Subscribe(self.session, self._collections, ts))
        self._turn += 1

    def stop(self) -> None:
        """End the session, and begin none."""
        self.is_begun = self._is_open = False
        self._site.send(self._source, Unsubscribe(self.session))

    def hears(self, session: int) -> bool:
        """True if a message of that session counts."""
        is_mine = self._is_open and session == self.session
        self._heard_ns = self._site.now_ns() if is_mine else self._heard_ns
        return is_mine

    def ended(self, session: int) -> None:
        """Note that a session is over."""
        self._is_open = self._is_open and session != self.session

    def closed(self, peer: NodeId) -> None:
        """Note that a link broke."""
        self._is_open = self._is_open and peer not in COMPUTE

    def look(self, durable_ts: int) -> bool:
        """Report that all below that timestamp is durable; True if it is time for another session."""
        for coordinator in COORDINATORS:
            self._site.send(coordinator, Hold(self._follower, max(0, durable_ts - 1)))
        return not self._is_open or self._site.now_ns() >= self._heard_ns + SILENT_NS
