"""The client of one process: it finds the primary, and reports unknown outcomes as unknown."""

from typing import Literal, cast

import msgspec

from clusters.tutorial.messages import DATA_NODES, Done, Held, Operate, Refused, Transact
from harness.core.record import Json
from harness.core.seams import CallFailed, Completion, Connection, Invocation


class TutorialClient:
    """A client that remembers the last leader."""

    def __init__(self, process: int, connection: Connection) -> None:
        self._connection = connection
        self._target = DATA_NODES[process % len(DATA_NODES)]

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """The completion, after at most one try at each data node.

        It is `info` only if a node may have begun the transaction.
        """
        request = _request(invocation)
        reason = "no data node leads"
        for _ in DATA_NODES:
            node = self._target
            try:
                answer = await self._connection.call(node, request, timeout_ns)
            except CallFailed as failure:
                reason = f"{node}: {failure}"
                if not failure.is_definite:
                    return Completion(outcome="info", error=reason, node=node)
            else:
                match answer:
                    case Done(position, mops):
                        return Completion(outcome="ok", mops=mops, node=node, commit_ts=position)
                    case Held():
                        return _held(invocation, answer, node)
                    case Refused():
                        reason = f"{node}: not the primary, or too busy"
                    case _:
                        return Completion(outcome="info", error=f"{node}: deposed meanwhile", node=node)
            self._target = DATA_NODES[1 - DATA_NODES.index(node)]
        return Completion(outcome="fail", error=reason)


def _request(invocation: Invocation) -> Transact | Operate:
    """The request for a node: a transaction, or an operation whose value is [key, value], with [old, new] for a cas."""
    if invocation.mops is not None:
        return Transact(invocation.mops)
    f = cast('Literal["read", "write", "cas"]', invocation.f)
    key, value = cast("list[Json]", invocation.value)
    if f != "cas":
        return Operate(f, key, value)
    old, new = cast("list[Json]", value)
    return Operate(f, key, new, old)


def _held(invocation: Invocation, held: Held, node: str) -> Completion:
    """The completion of a register operation: a read has the held value; a cas that found another value did nothing."""
    done = Completion(outcome="ok", value=invocation.value, node=node, commit_ts=held.position)
    if not held.is_done:
        return msgspec.structs.replace(done, outcome="fail", error=f"the register held {held.value}")
    if invocation.f != "read":
        return done
    key, _ = cast("list[Json]", invocation.value)
    return msgspec.structs.replace(done, value=[key, held.value])
