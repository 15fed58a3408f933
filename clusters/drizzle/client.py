"""The client of one process: it runs a transaction on the master of its keys, and reads lists on replicas."""

from typing import cast

from clusters.drizzle.messages import Done, Drain, Insert, ReadThere, Refused
from clusters.drizzle.scripts import master_for, run_of
from harness.core.machine import Message, NodeId
from harness.core.record import Json
from harness.core.seams import CallFailed, Completion, Connection, Invocation


class DrizzleClient:
    """A client. A transaction has one master, so nothing is tried twice."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """The completion of the invocation."""
        node, request = request_of(invocation)
        try:
            answer = await self._connection.call(node, request, timeout_ns)
        except CallFailed as failure:
            return Completion(
                outcome="fail" if failure.is_definite else "info", error=f"{node}: {failure}", node=node
            )  # fmt: skip
        match answer:
            case Done():
                return Completion(outcome="ok", value=answer.value, mops=answer.mops or None, node=node, txn=answer.trx)
            case Refused(reason):
                return Completion(outcome="fail", error=f"{node}: {reason}", node=node)
            case _:
                return Completion(outcome="info", error=f"{node}: an answer of another kind", node=node)


def request_of(invocation: Invocation) -> tuple[NodeId, Message]:
    """The node, and the request."""
    match invocation.f:
        case "replica-read":
            node, keys = cast("tuple[str, list[Json]]", invocation.value)
            return NodeId(node), ReadThere(tuple(keys))
        case "conflict":
            node, people = cast("tuple[str, list[Json]]", invocation.value)
            return NodeId(node), Insert(tuple(people))
        case "drain":
            return NodeId(cast("str", invocation.value)), Drain()
        case _:
            return master_for(invocation), run_of(invocation)
