"""A sink: follows the lists, and publishes their updates to the topic.

Theory of operation. It keeps nothing on disk: the topic's progress is where it goes on.
1. It opens the topic, which fences its older lives and the other sink, and subscribes to all updates at or above the
   topic's progress.
2. When the progress of its session has risen, all updates below are a batch, which is published with that progress.
   Meanwhile further updates gather for the next one. Another session, begun meanwhile, brings the same again: what the
   topic has is left out.
3. If the topic has another epoch, the other sink has been deployed meanwhile. This one stands by until it is deployed
   anew itself: the two take turns, and one that was paused, or cut off, does not know of its end.
"""

from clusters.materialize.collections import Update
from clusters.materialize.messages import Batch, Ended, OpenTopic, Progress, Publish, Told, TopicAt, Updates
from clusters.materialize.shape import LISTS, MS, SINKS, TOPIC, TOPIC_PLACE
from clusters.materialize.site import Site
from clusters.materialize.stream.following import LOOK, LOOK_NS, Following
from clusters.parts.procedures import TIMER, Ask, Sleep
from clusters.parts.routing import Procedure
from harness.core.machine import Closed, Context, Durable, Event, Received, Settings, Synced, TimerFired

PAUSE_NS = 20 * MS


class Sink:
    """The machine of the sinks x1 and x2."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        self._place = SINKS.index(context.node)
        self._following = Following(self._site, TOPIC, LISTS, self._place)
        self._progress = self._complete = 0
        self._gathered: list[Update] = []
        self._site.procedures.run(self._run())
        context.set_timer(LOOK, LOOK_NS)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(_, Told(number, body)):
                self._site.procedures.answered(number, body)
            case Received(_, Updates(session, updates)) if self._following.hears(session):
                self._gathered += [update for _, update in updates]
            case Received(_, Progress(session, ts)) if self._following.hears(session):
                self._complete = max(self._complete, ts)
            case Received(_, Ended(session, _)):
                self._following.ended(session)
            case Received(_, Updates() | Progress()):
                pass  # They belong to a session that is over.
            case TimerFired(name) if name == TIMER:
                self._site.procedures.tick()
            case TimerFired():
                if self._following.is_begun and self._following.look(self._progress):
                    self._follow()
                context.set_timer(LOOK, LOOK_NS)
            case Closed(peer):
                self._following.closed(peer)
                self._site.procedures.closed(peer)
            case Synced(token):
                self._site.synced(token)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: the topic has all."""

    def _follow(self) -> None:
        """Begin a session. It brings all at or above the topic's progress: forget what has gathered."""
        self._complete = self._progress
        self._gathered = []
        self._following.begin(self._progress)

    def _run(self) -> Procedure[None]:
        """Open the topic (1) and publish to it, again and again."""
        reach_ns = self._site.parameters["deploy_ms"] * MS
        while True:
            epoch = len(SINKS) * (1 + self._site.now_ns() // MS) + self._place  # Neither sink has used this epoch.
            (found,) = yield Ask(((TOPIC_PLACE, OpenTopic(epoch)),))
            if not isinstance(found, TopicAt):
                continue
            if found.epoch == epoch:
                if found.progress:
                    self._site.context.sometimes("the sink resumed")
                self._progress = found.progress
                self._follow()
                yield from self._publish_all(epoch)
                self._following.stop()
            yield Sleep(reach_ns + self._site.context.draw("deploy").below(reach_ns))

    def _publish_all(self, epoch: int) -> Procedure[None]:
        """Publish batches (2), until the other sink is deployed (3)."""
        while True:
            if self._complete == self._progress:
                yield Sleep(PAUSE_NS)
                continue
            expected, new = self._progress, self._complete
            rows = tuple(update for update in self._gathered if expected <= update.ts < new)
            self._site.context.point("batch-complete")
            answer = None
            while not isinstance(answer, TopicAt):
                (answer,) = yield Ask(((TOPIC_PLACE, Publish(epoch, expected, Batch(new, rows))),))
            if answer.epoch != epoch:
                return
            self._site.context.point("batch-published")
            self._progress = new
            self._complete = max(self._complete, new)
            self._gathered = [update for update in self._gathered if update.ts >= new]
