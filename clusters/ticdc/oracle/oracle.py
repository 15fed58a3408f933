"""The timestamp oracle (PD): it gives unique, ascending timestamps.

Theory of operation. A timestamp is a millisecond and a counter. The millisecond follows the node's wall clock.
1. Before the oracle gives a timestamp at or above its bound, a higher bound is on disk. A restarted oracle begins at
   the bound. So no timestamp is given twice, and none below one that was given.
2. The wall clock may step back or stand still. The millisecond never falls, and rises at least as fast as time passes
   without the clock: the lifetimes of locks are measured with it, and must end.
"""

from clusters.ticdc import planted
from clusters.ticdc.oracle.messages import Bound, Timestamp, Tso, Upgraded
from clusters.ticdc.oracle.upgrade import Upgrades
from clusters.ticdc.shape import MS, timestamp
from clusters.ticdc.site import Site
from harness.core.machine import Context, Durable, Event, Message, NodeId, Received, Settings, Synced, TimerFired

SAVE_MS = 300  # How far the bound is ahead.
FAR_MS = 1000  # A well-kept clock is behind by less.
TICK_NS = 50 * MS


class Oracle:
    """The machine of the oracle."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings.bugs, settings.parameters)
        self._site.context = context
        bound = durable.value("bound")
        saved_ms = bound.physical_ms if isinstance(bound, Bound) else 1
        if planted.PD_NO_RANGE in settings.bugs:
            saved_ms = max(1, context.local_clock_ns() // MS)
        self._physical_ms, self._logical = saved_ms, 0
        self._seen_ns = context.now_ns()
        self._bound_ms = 0  # Nothing is given until a bound is durable.
        self._is_saving = False
        self._waiting: list[tuple[NodeId, int]] = []
        self._upgrades = Upgrades(self._site, durable, settings)
        if bound is not None:
            context.sometimes("the oracle was restarted")
        self._tick()

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        if isinstance(event, Received):
            self._receive(event.sender, event.message)
        elif isinstance(event, TimerFired):
            self._tick()
        elif isinstance(event, Synced):
            self._site.synced(event.token)

    def _receive(self, sender: NodeId, message: Message) -> None:
        if isinstance(message, Tso):
            self._site.context.point("oracle-before-answer")
            self._waiting.append((sender, message.number))
            self._serve()
        elif isinstance(message, Upgraded):
            self._upgrades.upgraded(sender)
        else:
            self._site.context.unexpected(message)

    def dump(self, context: Context) -> None:
        """Do nothing: no check needs the oracle's state."""

    def _tick(self) -> None:
        self._site.context.set_timer("tick", TICK_NS)
        self._advance()
        if self._physical_ms + SAVE_MS // 2 >= self._bound_ms:
            self._save()
        self._serve()
        self._upgrades.tick()

    def _advance(self) -> None:
        """Advance the millisecond to the wall clock's, but at least by the time that has passed (invariant 2)."""
        context = self._site.context
        now_ns, clock_ms = context.now_ns(), context.local_clock_ns() // MS
        elapsed_ms = (now_ns - self._seen_ns) // MS
        self._seen_ns += elapsed_ms * MS
        if clock_ms < self._physical_ms - FAR_MS:
            context.sometimes("the oracle's clock was behind what it had given")
        after = max(self._physical_ms + elapsed_ms, clock_ms)
        if after > self._physical_ms:
            self._physical_ms, self._logical = after, 0

    def _save(self) -> None:
        """Write a higher bound to disk (invariant 1). Requests that need it wait."""
        if self._is_saving:
            return
        self._is_saving = True
        bound_ms = self._physical_ms + SAVE_MS
        self._site.context.put("bound", Bound(bound_ms))
        self._site.sync(lambda: self._saved(bound_ms))

    def _saved(self, bound_ms: int) -> None:
        self._is_saving = False
        self._bound_ms = bound_ms
        self._serve()

    def _serve(self) -> None:
        """Answer all requests for which the bound on disk is high enough."""
        self._advance()
        if not self._waiting:
            return
        if self._physical_ms >= self._bound_ms:
            self._save()
            return
        for sender, number in self._waiting:
            self._logical += 1
            self._site.send(
                sender, Timestamp(number, timestamp(self._physical_ms, self._logical), self._upgrades.is_done)
            )
        self._waiting.clear()
