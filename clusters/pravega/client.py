"""The client of one process: it calls a writer, and reports unknown outcomes as unknown."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from clusters.pravega.messages import Done, Drain, Refused, SealAll, Statuses, Transact, TruncateAll, Unclear
from clusters.pravega.shape import WRITERS
from harness.core.record import Json
from harness.core.seams import CallFailed, Completion, Connection, Invocation

REQUESTS: Mapping[str, Drain | SealAll | Statuses | TruncateAll] = MappingProxyType(
    {"drain": Drain(), "seal": SealAll(), "status": Statuses(), "truncate": TruncateAll()}
)


class PravegaClient:
    """A client that uses one writer until that fails. The processes begin with different ones."""

    def __init__(self, process: int, connection: Connection) -> None:
        self._connection = connection
        self._turn = process % len(WRITERS)

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """The completion of the invocation. It tries each writer at most once.

        It is `info` only if a writer may have begun it, and the outcome is unknown.
        """
        request = REQUESTS.get(invocation.f) or Transact(invocation.mops or ())
        reason = ""
        for _ in WRITERS:
            node = WRITERS[self._turn]
            try:
                answer = await self._connection.call(node, request, timeout_ns)
            except CallFailed as failure:
                reason = f"{node}: {failure}"
                if not failure.is_definite:
                    return Completion(outcome="info", error=reason, node=node)
            else:
                match answer:
                    case Done(mops, txn, statuses):
                        value = cast("Json", [[*each] for each in statuses]) if invocation.f == "status" else None
                        return Completion(outcome="ok", value=value, mops=mops or None, node=node, txn=txn)
                    case Refused(reason=why):
                        return Completion(outcome="fail", error=f"{node}: {why}", node=node)
                    case Unclear(reason=why):
                        return Completion(outcome="info", error=f"{node}: {why}", node=node)
                    case _:
                        return Completion(outcome="info", error=f"{node}: an answer of another kind", node=node)
            self._turn = (self._turn + 1) % len(WRITERS)
        return Completion(outcome="fail", error=reason)
