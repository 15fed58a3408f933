"""The client of one process: it writes at its own site, and at the other one if its own is certainly out of reach."""

from collections.abc import Sequence
from typing import Final

from clusters.ndb.conflicts.messages import AskPosition, AtRest, Position, Write, WriteRefused, Written
from clusters.ndb.shape import SITES
from harness.core.machine import Message, NodeId
from harness.core.record import MicroOp
from harness.core.seams import CallFailed, Completion, Connection, Invocation

ENDLESS: Final = 40  # Questions after which changes that still come, without clients, will come for ever.


class SiteClient:
    """A client that prefers one site."""

    def __init__(self, process: int, connection: Connection) -> None:
        own = process % len(SITES)
        self._sites = (*SITES[own:], *SITES[:own])
        self._connection = connection

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """The completion of the invocation; `info` only if a site may have begun the transaction."""
        try:
            if invocation.f == "drain":
                return await self._drained(timeout_ns)
        except CallFailed as failure:
            return Completion(outcome="fail", error=str(failure))  # A second question does no harm.
        assert invocation.mops is not None  # All else in the workloads of this cluster is a transaction.
        return await self._written(invocation.mops, timeout_ns)

    async def _written(self, mops: Sequence[MicroOp], timeout_ns: int) -> Completion:
        reason = ""
        for site in self._sites:
            try:
                answer = await self._connection.call(site, Write(tuple(mops)), timeout_ns)
            except CallFailed as failure:
                reason = f"{site}: {failure}"
                if not failure.is_definite:
                    return Completion(outcome="info", error=reason, node=site)
                continue
            match answer:
                case Written(transaction, epoch, done):
                    return Completion(outcome="ok", mops=done, node=site, txn=transaction, epoch=epoch)
                case WriteRefused(why):
                    return Completion(outcome="fail", error=f"{site}: {why}", node=site)
                case _:
                    return Completion(outcome="info", error=f"{site}: an answer of another kind", node=site)
        return Completion(outcome="fail", error=reason)

    async def _drained(self, timeout_ns: int) -> Completion:
        """Ask until each site has all changes of the other one, and let both know.

        Positions only rise. If the first site's is the same before and after that of the second, both stood at one
        moment; and if nothing was under way then, nothing is. Sites that send changes to each other for ever never come
        to rest; their logs show it.
        """
        first, second = SITES
        before, other, after = [await self._position(site, timeout_ns) for site in (first, second, first)]
        is_still = (before.last, before.applied) == (after.last, after.applied)
        if not is_still or before.applied < other.last or other.applied < before.last:
            if other.rises > ENDLESS:
                return Completion(outcome="ok", value="changes come for ever")
            return Completion(outcome="fail", error="changes are under way")
        for site in SITES:
            await self._asked(site, AtRest(), timeout_ns)
        return Completion(outcome="ok")

    async def _position(self, site: NodeId, timeout_ns: int) -> Position:
        answer = await self._asked(site, AskPosition(), timeout_ns)
        return answer if isinstance(answer, Position) else Position(0, 0, 0)

    async def _asked(self, site: NodeId, question: Message, timeout_ns: int) -> Message:
        return await self._connection.call(site, question, timeout_ns)
