"""The topic of a sink, at a system outside: batches of updates, each with the progress that it brings.

Theory of operation.
1. A batch and its progress are one record on disk: after a crash the topic has both or neither.
2. A batch names the progress after which it comes, and is refused if the topic has another one. So a batch that comes
   again, or late, is not added twice.
3. Who opens the topic does so in an epoch of its own, and batches of older epochs are refused: a sink that another one
   has superseded adds nothing more. An opening in an older epoch has no effect.
4. What is read is durable.
"""

from functools import partial

from msgspec import Struct

from clusters.materialize.messages import Asked, Batch, Batches, OpenTopic, Poll, Publish, Told, TopicAt
from clusters.materialize.site import Site
from harness.core.machine import Context, Durable, Event, NodeId, Received, Settings, Synced

BATCHES_MAX = 64  # In one answer.


class Epoch(Struct, frozen=True, tag=True):
    """On disk: the epoch of the last one who opened the topic."""

    epoch: int


class Topic:
    """The machine of b1."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        self._batches = [record for record in durable.log("batches") if isinstance(record, Batch)]
        self._length = len(self._batches)  # The number of durable batches.
        held = durable.value("epoch")
        self._epoch = held.epoch if isinstance(held, Epoch) else 0

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Asked(number, OpenTopic(epoch))):
                if epoch > self._epoch:
                    self._epoch = epoch
                    context.put("epoch", Epoch(epoch))
                self._answer(sender, number)
            case Received(sender, Asked(number, Publish() as request)):
                self._publish(request)
                self._answer(sender, number)
            case Received(sender, Asked(number, Poll(first))):
                found = self._batches[first : min(first + BATCHES_MAX, self._length)]
                context.send(sender, Told(number, Batches(first, tuple(found))))
            case Synced(token):
                self._site.synced(token)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: the reader shows what came."""

    def _progress(self) -> int:
        return self._batches[-1].progress if self._batches else 0

    def _publish(self, request: Publish) -> None:
        """Add a batch with its progress in one step (1), if it comes next (2) from the one who opened last (3)."""
        if request.epoch != self._epoch:
            self._site.context.sometimes("the topic refused a superseded sink")
        elif request.expected == self._progress():
            self._batches.append(request.batch)
            self._site.context.append("batches", request.batch)
            self._site.context.point("batch-appended")

    def _answer(self, sender: NodeId, number: int) -> None:
        """Give the epoch and the progress, once they are durable."""
        answer = Told(number, TopicAt(self._epoch, self._progress()))
        self._site.sync(partial(self._durable, sender, answer, len(self._batches)))

    def _durable(self, sender: NodeId, answer: Told, length: int) -> None:
        self._length = max(self._length, length)
        self._site.send(sender, answer)
