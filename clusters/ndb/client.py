"""The client of one process: it calls any data node, and reports unknown outcomes as unknown."""

from clusters.ndb.shape import DATA_NODES
from clusters.ndb.transactions.messages import NOT_STARTED, Done, Refused, Transact
from harness.core.seams import CallFailed, Completion, Connection, Invocation


class NdbClient:
    """A client that keeps to one node while that node serves. Each process begins with a different one."""

    def __init__(self, process: int, connection: Connection) -> None:
        self._connection = connection
        self._turn = process % len(DATA_NODES)

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """The completion, after at most one try at each data node.

        It is `info` only if a node may have begun the transaction.
        """
        assert invocation.mops is not None  # All workloads of this cluster are transactions.
        reason = ""
        for _ in DATA_NODES:
            node = DATA_NODES[self._turn]
            try:
                answer = await self._connection.call(node, Transact(invocation.mops), timeout_ns)
            except CallFailed as failure:
                reason = f"{node}: {failure}"
                if not failure.is_definite:
                    return Completion(outcome="info", error=reason, node=node)
            else:
                match answer:
                    case Done(epoch, transid, mops):
                        has_written = any(mop.f == "append" for mop in mops)
                        return Completion(
                            outcome="ok", mops=mops, node=node, txn=transid, epoch=epoch,
                            commit_ts=epoch if has_written else None,
                        )  # fmt: skip
                    case Refused(reason=why) if why == NOT_STARTED:
                        reason = f"{node}: {why}"
                    case Refused(reason=why):
                        return Completion(outcome="fail", error=f"{node}: {why}", node=node)
                    case _:
                        return Completion(outcome="info", error=f"{node}: an answer of another kind", node=node)
            self._turn = (self._turn + 1) % len(DATA_NODES)
        return Completion(outcome="fail", error=reason)
