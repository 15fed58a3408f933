"""The channel of a replica: which of two binlogs it reads, from which position on, and when it goes over.

1. Each opening has its own number, and begins with a question for the position after the replica's last epoch:
   the replica keeps no files and positions, which differ between binlogs.
2. A channel that stops at an incident is given up for the other one. If both have stopped at the same epoch, both lack
   the next one: the replica is at an end until an operator restores a backup, and only asks again at times.
3. Silence for long ends a channel, too.
"""

from clusters.ndb.binlog.messages import Fetch, Fetched, Locate, Located
from clusters.ndb.shape import INJECTORS, MS
from harness.core.machine import Context, NodeId

AGAIN_NS = 300 * MS  # The time after which a question is repeated.
REST_NS = 500 * MS  # The time between two openings while both binlogs have a gap.


class Channel:
    """The channel of one life of a replica."""

    def __init__(self, context: Context, switch_ns: int) -> None:
        self._switch_ns = switch_ns
        self._number = context.now_ns()
        self._place = 0
        self._stopped: dict[NodeId, int] = {}  # By injector: the replica's epoch when the channel stopped there.
        self._position: int | None = None  # None: not located yet.
        self._asked_ns: int | None = None
        self._heard_ns = self._rest_until_ns = context.now_ns()

    @property
    def source(self) -> NodeId:
        """The injector whose binlog is read."""
        return INJECTORS[self._place]

    def is_at_end(self, latest: int) -> bool:
        """True if both binlogs lack what follows that epoch (invariant 2)."""
        return all(self._stopped.get(node) == latest for node in INJECTORS)

    def ask(self, latest: int, context: Context) -> None:
        """Ask the injector for the records after epoch `latest`, unless an answer is due."""
        now = context.now_ns()
        if now < self._rest_until_ns:
            return
        if now - self._heard_ns > self._switch_ns:
            context.sometimes("a channel was silent for too long")
            self.switch(context)
        if self._asked_ns is not None and now - self._asked_ns < AGAIN_NS:
            return
        self._asked_ns = now
        question = (
            Locate(self._number, latest) if self._position is None else Fetch(self._number, self._position)
        )  # fmt: skip
        context.send(self.source, question)

    def answered(self, message: Located | Fetched, context: Context) -> Fetched | None:
        """The records of an answer, if they come next."""
        if message.number != self._number:
            return None
        self._heard_ns, self._asked_ns = context.now_ns(), None
        if isinstance(message, Located):
            self._position = message.position
            return None
        if message.position != self._position:
            return None
        self._position += len(message.records)
        return message

    def closed(self, peer: NodeId) -> None:
        """Ask again at once if the link to the injector has ended."""
        if peer == self.source:
            self._asked_ns = None

    def stop(self, latest: int, context: Context) -> None:
        """Give up a channel that has a gap after epoch `latest`."""
        context.sometimes("a channel stopped at an incident")
        self._stopped[self.source] = latest
        if self.is_at_end(latest):
            context.sometimes("both binlogs had a gap")
            self._rest_until_ns = context.now_ns() + REST_NS
        self.switch(context)

    def switch(self, context: Context) -> None:
        """Go over to the other binlog."""
        self._place = (self._place + 1) % len(INJECTORS)
        self._number += 1
        self._position = self._asked_ns = None
        self._heard_ns = max(context.now_ns(), self._rest_until_ns)
        context.point("at-switch")
