"""The coordinator: decides which node leads.

Theory of operation. Data nodes send heartbeats. The coordinator numbers views, keeps the latest on disk, and sends it
to every node that sends a heartbeat.
1. A view is durable before any node learns of it, so no number is ever given twice.
2. A backup is promoted only if the primary reported, in the same view, that the backup has its whole log; from then on
   the primary commits nothing without it. So the promoted node has everything ever acknowledged.
3. Silence is measured by the wall clock, which may jump or freeze: that can depose a healthy node, or keep a dead one
   in the view for a while, but no wrong guess breaks 2.
"""

from clusters.tutorial.messages import DATA_NODES, Heartbeat, View
from harness.core.machine import Context, Durable, Event, Received, Settings, Synced, TimerFired

MS = 1_000_000
FAR_NS = 10 * MS  # Clocks without a fault differ by less than this.


class Coordinator:
    """The single coordinator: while it is down, no node is promoted and the last view stays in force."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        view = durable.value("view")
        self.view = view if isinstance(view, View) else View(1, *DATA_NODES)
        self.is_durable = view is not None
        self.is_caught_up = False
        self.suspect_ns = settings.parameters["suspect_ms"] * MS
        self.heard_ns = dict.fromkeys(DATA_NODES, context.local_clock_ns())
        self._publish(self.view, context)
        context.set_timer("look", self.suspect_ns // 4)

    def handle(self, event: Event, context: Context) -> None:
        match event:
            case Received(sender, Heartbeat(view, is_caught_up, clock_ns)):
                self.heard_ns[sender] = context.local_clock_ns()
                if clock_ns > self.heard_ns[sender] + FAR_NS:
                    context.sometimes("a heartbeat came from the future")
                if is_caught_up and view == self.view.number and sender == self.view.primary:
                    self.is_caught_up = True
                if view < self.view.number and self.is_durable:
                    context.send(sender, self.view)
            case Synced(number) if number == self.view.number:
                self.is_durable = True
                for node in DATA_NODES:
                    context.send(node, self.view)
            case TimerFired("look"):
                context.set_timer("look", self.suspect_ns // 4)
                if self.is_durable:
                    self._look(context)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: no check needs the coordinator's state."""

    def _look(self, context: Context) -> None:
        """Change the view if a node in it is silent, or a node outside it is back."""
        alive = [node for node in DATA_NODES if context.local_clock_ns() - self.heard_ns[node] < self.suspect_ns]
        number, primary, backup = self.view.number + 1, self.view.primary, self.view.backup
        if primary not in alive and backup in alive and self.is_caught_up:
            context.sometimes("a backup was promoted")
            self._publish(View(number, backup), context)
        elif primary in alive and backup is not None and backup not in alive:
            self._publish(View(number, primary), context)
        elif primary in alive and backup is None and len(alive) == len(DATA_NODES):
            self._publish(View(number, primary, alive[1 - alive.index(primary)]), context)

    def _publish(self, view: View, context: Context) -> None:
        self.view = view
        self.is_durable = self.is_caught_up = False
        context.put("view", view)
        context.sync(view.number)
