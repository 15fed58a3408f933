"""The catalog's node: one fenced log, whose writer is the leader.

Theory of operation. A coordinator becomes the leader by opening the log; the token that it gets is its epoch.
1. Every record is appended under an epoch. Records of an epoch that is over are refused, so a superseded leader changes
   neither bounds nor tables.
2. A look at the log shows the epoch of the moment: a leader that finds its own there led at that moment.
3. Answers wait until all that was written before is durable.
"""

from functools import partial

from clusters.materialize import planted
from clusters.materialize.catalog.records import LOG, decoded
from clusters.materialize.messages import Asked, Told
from clusters.materialize.site import Site
from clusters.parts.fenced_log import (
    Add,
    Claimed,
    Fenced,
    FencedLogs,
    LogReply,
    LogRequest,
    LogWrite,
    Look,
    Open,
    Opened,
    Stored,
)
from harness.core.machine import Context, Dump, Durable, Event, NodeId, Received, Settings, Synced


class Catalog:
    """The machine of k1."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        writes = [record for record in durable.log("catalog") if isinstance(record, Claimed | Stored)]
        self._logs = FencedLogs(writes, is_fencing=planted.DDL_UNFENCED not in settings.bugs)
        self._site = Site(context.node, settings, context)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Asked(number, Open() | Add() | Look() as request)):
                reply, write = self._served(request)
                if write is not None:
                    context.append("catalog", write)
                if isinstance(reply, Fenced):
                    context.sometimes("the catalog refused a superseded leader")
                self._site.sync(partial(self._answer, sender, Told(number, reply)))
            case Synced(token):
                self._site.synced(token)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def _served(self, request: LogRequest) -> tuple[LogReply, LogWrite | None]:
        """The answer to a request, and what to write before it is given."""
        if isinstance(request, Open) and planted.EPOCH_BACKWARDS in self._site.bugs:
            looked, _ = self._logs.serve(Look(LOG))
            records = getattr(looked, "records", ())
            write = Claimed(LOG, request.claim, request.claim)
            self._logs = FencedLogs((Stored(LOG, records), write))
            return Opened(LOG, request.claim, request.claim, records), write
        return self._logs.serve(request)

    def _answer(self, sender: NodeId, answer: Told) -> None:
        """Send an answer; an epoch is recorded when it is durable, as none before is known to anyone."""
        if isinstance(answer.body, Opened):
            self._site.context.probe("epoch", answer.body.token)
        self._site.send(sender, answer)

    def dump(self, context: Context) -> None:
        """Record the catalog: for each record its kind, and the epoch that wrote it."""
        looked, _ = self._logs.serve(Look(LOG))
        records = () if isinstance(looked, Fenced) else getattr(looked, "records", ())
        for number, record in enumerate(decoded(records)):
            context.dump(Dump(object="catalog", key=number, value=[type(record).__name__, record.epoch]))
