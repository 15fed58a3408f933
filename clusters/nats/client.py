"""The client of one process: it publishes elements of lists, and reads lists from the stream's leader.

Theory of operation. `errors.py` interprets what comes back.
1. A transaction has one list. An append publishes one message: its sequence is the operation's position and number.
2. A read takes the list's messages one by one until the leader has no further one. The stream only grows, so the
   list is that of the moment of the last answer.
3. A transaction that reads and appends compares and publishes: the message is stored only if the list's last message is
   still the one that was read. Else nothing is stored: `fail`.
"""

from clusters.nats import planted
from clusters.nats.line import Line
from clusters.nats.rows import subject_of
from clusters.servers.client import Progress, ServerClient
from clusters.servers.values import appended, decoded, encoded
from harness.core.machine import Settings
from harness.core.record import Json
from harness.core.seams import Address, Completion, Doors, Invocation


class NatsClient(ServerClient[Line]):
    """A process's connection to one server."""

    def __init__(self, process: int, doors: Doors, settings: Settings) -> None:
        super().__init__(process, doors)
        self._is_blind = planted.BLIND_COUNTER in settings.bugs

    def _dial(self, address: Address) -> Line:
        return Line(address)

    async def _carry_out(self, line: Line, invocation: Invocation, progress: Progress) -> Completion:
        mops = invocation.mops or ()
        keys = {mop.key for mop in mops}
        added = [mop.value for mop in mops if mop.f == "append"]
        if len(keys) != 1 or len(added) > 1:
            raise AssertionError(f"a transaction here has one list, and appends once: {mops}")
        [key] = keys
        last, before = 0, list[Json]()
        has_read = len(added) < len(mops)
        if has_read:
            last, before = await self._list(line, key)
        done, _ = appended(mops, {key: before})
        if not added:
            return Completion(outcome="ok", mops=done)
        progress.has_sent_write = True
        after = last if has_read and not self._is_blind else None
        sequence = await line.publish(subject_of(key), encoded(added[0]), after=after)
        return Completion(outcome="ok", mops=done, txn=sequence, commit_ts=sequence)

    async def _list(self, line: Line, key: Json) -> tuple[int, list[Json]]:
        """The sequence of a list's last message, 0 if it has none; and its elements."""
        last, elements = 0, list[Json]()
        while (message := await line.stored(subject_of(key), last + 1)) is not None:
            last = message.sequence
            elements.append(decoded(message.payload))
        return last, elements
