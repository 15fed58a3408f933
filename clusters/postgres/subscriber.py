"""Follows the change stream of the primary from a logical slot, and keeps its position.

Theory of operation. A session requests everything after the kept position; the source begins there, or after the
confirmed position, whichever is later. The stream is delivered transaction by transaction, each with the watermark of
its own commit, as commits come in the order of positions; keep-alives give the watermarks between.
1. A position is kept once everything at or below it has been delivered, and confirmed once it is kept. So the
   confirmed position is never above the kept one, and the source skips nothing that a crash could have lost.
2. Events delivered above the kept position are repeated after a crash: at least once.
3. Inside a session watermarks ascend; a keep-alive without a new position is not a watermark.
4. A newly confirmed position is recorded as a checkpoint, once its message is sent.
"""

from collections.abc import Sequence
from typing import Final

from clusters.postgres import planted, rows
from clusters.postgres.line import Line, Refused, dial
from clusters.postgres.pgoutput import Alive, Committed, Reader, lsn, status
from clusters.postgres.service import PRIMARY
from clusters.servers.values import decoded
from harness.core.machine import Delivery, NodeId, Settings
from harness.core.seams import Deliver, Doors

POSITION: Final = "position"
_QUIET_S: Final = 0.1  # After this long without a message the source is queried for its position.


class PostgresSubscriber:
    """The subscriber s1 or s2: each uses the slot of its own name."""

    def __init__(self, node: NodeId, doors: Doors, settings: Settings, kept: dict[str, object]) -> None:
        self._node, self._door, self._kept = node, doors[PRIMARY], kept
        self._confirmed = 0
        self._confirms_first = planted.CONFIRM_BEFORE_STORE in settings.bugs

    async def receive(self, deliver: Deliver) -> None:
        """Run one session. Raises OSError if there is no connection, and when the session ends."""
        line = await dial(self._door, name=self._node, replication="database")
        try:
            begin = self._reached()
            await line.start_replication(
                f"START_REPLICATION SLOT {self._node} LOGICAL {lsn(begin)} "
                f"(proto_version '1', publication_names '{rows.PUBLICATION}')"
            )
            await deliver(Delivery(session=0, kind="open", position=begin))
            await self._follow(line, deliver)
        except Refused as refused:
            raise OSError(str(refused)) from refused
        finally:
            line.close()

    async def _follow(self, line: Line, deliver: Deliver) -> None:
        reader, waiting, received = Reader(), list[Committed | Alive](), 0
        while True:
            messages = await line.received(_QUIET_S)
            news = [new for new in map(reader.read, messages) if new is not None]
            received = max([received, *(new.position for new in news)])
            if self._confirms_first:  # And the confirmed position waits in memory until more has arrived.
                await self._confirm(line, received, deliver, asks=not messages)
                waiting, news = news, waiting
            for new in news:
                await self._take(new, deliver)
            if not self._confirms_first and (news or not messages):
                await self._confirm(line, self._reached(), deliver, asks=not messages)

    async def _confirm(self, line: Line, position: int, deliver: Deliver, *, asks: bool) -> None:
        await line.tell(status(position, asks=asks))
        if position > self._confirmed:
            self._confirmed = position
            await deliver(Delivery(session=0, kind="checkpoint", position=position))

    async def _take(self, new: Committed | Alive, deliver: Deliver) -> None:
        if isinstance(new, Committed):
            for event in events(new):
                await deliver(event)
        if new.position > self._reached():
            await deliver(Delivery(session=0, kind="watermark", position=new.position))
            self._kept[POSITION] = new.position

    def _reached(self) -> int:
        """The kept position: everything at or below it has been delivered."""
        position = self._kept.get(POSITION, 0)
        assert isinstance(position, int)
        return position


def events(committed: Committed) -> Sequence[Delivery]:
    """The rows of a transaction, numbered as its writes."""
    return [
        Delivery(
            session=0,
            kind="row",
            key=decoded(row.columns[0] or b""),
            value=rows.shown(row.table, row.columns[1] or b""),
            position=committed.position,
            ordinal=ordinal,
            unit=committed.txn,
            unit_rows=len(committed.rows),
        )
        for ordinal, row in enumerate(committed.rows)
    ]
