"""The client of one process: it calls a writer, and reports unknown outcomes as unknown."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from clusters.parts.client import Turns, ended
from clusters.pravega.messages import (
    Done,
    Drain,
    RestoreGroup,
    SealStream,
    Statuses,
    TakeCheckpoint,
    Transact,
    TruncateStream,
)
from clusters.pravega.shape import WRITERS
from harness.core.machine import Message
from harness.core.record import Json
from harness.core.seams import Completion, Connection, Invocation

REQUESTS: Mapping[str, Message] = MappingProxyType(
    {
        "checkpoint": TakeCheckpoint(),
        "drain": Drain(),
        "restore": RestoreGroup(),
        "seal": SealStream(),
        "status": Statuses(),
        "truncate": TruncateStream(),
    }
)


class PravegaClient:
    """A client that uses one writer until that fails. The processes begin with different ones."""

    def __init__(self, process: int, connection: Connection) -> None:
        self._turns = Turns(process, connection, WRITERS)

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """The completion of the invocation."""
        request = REQUESTS.get(invocation.f) or Transact(invocation.mops or ())
        called = await self._turns.call(request, timeout_ns)
        if isinstance(called, Completion):
            return called
        node, answer = called
        if not isinstance(answer, Done):
            return ended(node, answer)
        value = cast("Json", [[*each] for each in answer.statuses]) if invocation.f == "status" else None
        return Completion(outcome="ok", value=value, mops=answer.mops or None, node=node, txn=answer.txn)
