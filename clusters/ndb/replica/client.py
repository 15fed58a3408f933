"""The client of one process: transactions in the source, reads on the replica, and requests of an operator.

It writes through servers that are read only until their binlogs have begun: until both have, no transaction starts.
"""

from typing import Final, cast

from clusters.ndb.backup.restore import restored
from clusters.ndb.binlog.messages import CatchUp, IsReady, NotYet, ReplicaRead, Shown, SwitchChannel
from clusters.ndb.client import NdbClient
from clusters.ndb.shape import INJECTORS, REPLICA
from harness.core.machine import Message, NodeId
from harness.core.record import Json, MicroOp
from harness.core.seams import CallFailed, Completion, Connection, Invocation

_PROBE: Final = Invocation(f="txn", mops=(MicroOp("r", 0),))


class ReplicaClient:
    """A client of the source and of its replica."""

    def __init__(self, process: int, connection: Connection) -> None:
        self._source = NdbClient(process, connection)
        self._connection = connection
        self._is_ready = False

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """The completion of the invocation."""
        match invocation.f:
            case "replica-read":
                _, keys = cast("tuple[str, list[Json]]", invocation.value)
                return await self._asked(REPLICA, ReplicaRead(tuple(keys)), timeout_ns)
            case "restore":
                turn = cast("int", invocation.value)
                return await restored(self._connection, turn, timeout_ns)
            case "switch":
                return await self._asked(REPLICA, SwitchChannel(), timeout_ns)
            case "drain":
                epoch = (await self._source.invoke(_PROBE, timeout_ns)).epoch
                if epoch is None:
                    return Completion(outcome="fail", error="the source does not answer")
                return await self._asked(REPLICA, CatchUp(epoch), timeout_ns)
        for node in () if self._is_ready else INJECTORS:
            begun = await self._asked(node, IsReady(), timeout_ns)
            if begun.outcome != "ok":
                return Completion(outcome="fail", error=f"tables are read only: {node} has no binlog", node=node)
        self._is_ready = True
        return await self._source.invoke(invocation, timeout_ns)

    async def _asked(self, node: NodeId, question: Message, timeout_ns: int) -> Completion:
        """The answer of a node. A second question does no harm, so an unclear end is a failure."""
        try:
            answer = await self._connection.call(node, question, timeout_ns)
        except CallFailed as failure:
            return Completion(outcome="fail", error=f"{node}: {failure}", node=node)
        match answer:
            case Shown(value):
                return Completion(outcome="ok", value=value, node=node)
            case NotYet():
                return Completion(outcome="fail", error=f"{node}: not yet", node=node)
            case _:
                return Completion(outcome="fail", error=f"{node}: an answer of another kind", node=node)
