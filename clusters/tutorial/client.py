"""Speaks to the tutorial for one process: finds the primary, and says honestly what is not known."""

from clusters.tutorial.messages import DATA_NODES, Done, Refused, Transact
from harness.core.seams import CallFailed, Completion, Connection, Invocation


class TutorialClient:
    """Remembers who led last."""

    def __init__(self, process: int, connection: Connection) -> None:
        self._connection = connection
        self._target = DATA_NODES[process % len(DATA_NODES)]

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """Ask each data node at most once. Only a node that may have begun the transaction makes it `info`."""
        assert invocation.mops is not None  # All workloads of this cluster are transactions.
        reason = "no data node leads"
        for _ in DATA_NODES:
            node = self._target
            try:
                answer = await self._connection.call(node, Transact(invocation.mops), timeout_ns)
            except CallFailed as failure:
                reason = f"{node}: {failure}"
                if not failure.is_definite:
                    return Completion(outcome="info", error=reason, node=node)
            else:
                match answer:
                    case Done(position, mops):
                        return Completion(outcome="ok", mops=mops, node=node, commit_ts=position)
                    case Refused():
                        reason = f"{node}: not the primary, or too busy"
                    case _:
                        return Completion(outcome="info", error=f"{node}: deposed meanwhile", node=node)
            self._target = DATA_NODES[1 - DATA_NODES.index(node)]
        return Completion(outcome="fail", error=reason)
