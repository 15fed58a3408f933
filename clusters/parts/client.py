"""The calls of a client that may use any of several nodes: one until that fails, and then the next.

A call that fails certainly had no effect, or may have one. In the first case alone the client asks another node: so
nothing is done twice. A node answers for itself with `Refused` or `Unclear`, which end the operation.
"""

from collections.abc import Sequence

from msgspec import Struct

from harness.core.machine import Message, NodeId
from harness.core.seams import CallFailed, Completion, Connection


class Refused(Struct, frozen=True, tag=True):
    """The request certainly has no effect, and will have none."""

    reason: str


class Unclear(Struct, frozen=True, tag=True):
    """The request may have an effect, or get one."""

    reason: str


class Turns:
    """The nodes that serve one process, which begins with its own."""

    def __init__(self, process: int, connection: Connection, nodes: Sequence[NodeId]) -> None:
        self._connection, self._nodes = connection, nodes
        self._turn = process % len(nodes)

    async def call(self, request: Message, timeout_ns: int) -> tuple[NodeId, Message] | Completion:
        """A node with its answer; or how the operation ended without one. It tries each node at most once.

        It ends as `info` only if a node may have begun it.
        """
        reason = ""
        for _ in self._nodes:
            node = self._nodes[self._turn]
            try:
                return node, await self._connection.call(node, request, timeout_ns)
            except CallFailed as failure:
                reason = f"{node}: {failure}"
                if not failure.is_definite:
                    return Completion(outcome="info", error=reason, node=node)
            self._turn = (self._turn + 1) % len(self._nodes)
        return Completion(outcome="fail", error=reason)


def ended(node: NodeId, answer: Message) -> Completion:
    """The completion of an operation that did not succeed, by the node's answer."""
    match answer:
        case Refused(reason):
            return Completion(outcome="fail", error=f"{node}: {reason}", node=node)
        case Unclear(reason):
            return Completion(outcome="info", error=f"{node}: {reason}", node=node)
        case _:
            return Completion(outcome="info", error=f"{node}: an answer of another kind", node=node)
