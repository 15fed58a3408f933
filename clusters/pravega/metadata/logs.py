"""The node of the durable logs of containers. An answer is sent when all that was changed before it is durable."""

from functools import partial

from clusters.parts.fenced_log import Add, Claimed, FencedLogs, Open, Stored
from clusters.pravega import planted
from clusters.pravega.site import Site
from harness.core.machine import Context, Durable, Event, Received, Settings, Synced


class Logs:
    """The machine of l1."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        writes = [record for record in durable.log("logs") if isinstance(record, Claimed | Stored)]
        self._logs = FencedLogs(writes, is_fencing=planted.NO_CONTAINER_FENCE not in settings.bugs)
        self._site = Site(context.node, settings, context)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Open() | Add() as request):
                reply, write = self._logs.serve(request)
                if write is not None:
                    context.append("logs", write)
                self._site.sync(partial(self._site.send, sender, reply))
            case Synced(token):
                self._site.synced(token)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: what is in the logs, the containers show."""
