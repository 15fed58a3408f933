"""The client of one process: it calls a coordinator, and reports unknown outcomes as unknown."""

from typing import cast

from clusters.materialize.messages import (
    Change,
    Count,
    Define,
    Done,
    Produce,
    Produced,
    Query,
    ReadPast,
    Refused,
    Transact,
    Unclear,
)
from clusters.materialize.shape import COORDINATORS, SOURCE, UPSTREAM
from clusters.parts.routing import Elsewhere
from harness.core.machine import Message, NodeId
from harness.core.record import Json
from harness.core.seams import CallFailed, Completion, Connection, Invocation


class MaterializeClient:
    """A client that uses one coordinator until that fails. The processes begin with different ones."""

    def __init__(self, process: int, connection: Connection) -> None:
        self._connection = connection
        self._turn = process % len(COORDINATORS)
        self._seen = 0  # The highest timestamp of an answer.

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """The completion of the invocation. It tries each coordinator at most once.

        It is `info` only if a node may have begun it, and the outcome is unknown.
        """
        request = request_of(invocation, self._seen)
        if isinstance(request, Produce):
            return await self._call(UPSTREAM, request, timeout_ns) or Completion(outcome="fail")
        completion = Completion(outcome="fail", error="no coordinator leads")
        for _ in COORDINATORS:
            found = await self._call(COORDINATORS[self._turn], request, timeout_ns)
            if found is not None and (found.outcome != "fail" or found.node is not None):
                return found
            completion = found or completion
            self._turn = (self._turn + 1) % len(COORDINATORS)
        return completion

    async def _call(self, node: NodeId, request: Message, timeout_ns: int) -> Completion | None:
        """The completion by that node; None if it sends the request elsewhere. Without a node: it was not reached."""
        try:
            answer = await self._connection.call(node, request, timeout_ns)
        except CallFailed as failure:
            reason = f"{node}: {failure}"
            return Completion(outcome="fail", error=reason) if failure.is_definite else _unclear(node, reason)
        match answer:
            case Done():
                self._seen = max(self._seen, answer.read_ts or 0, answer.commit_ts or 0)
                return Completion(
                    outcome="ok", value=answer.value, mops=answer.mops or None, node=node, read_ts=answer.read_ts,
                    commit_ts=answer.commit_ts, epoch=answer.epoch,
                )  # fmt: skip
            case Produced(offset):
                return Completion(outcome="ok", value=offset, node=node)
            case Refused(reason):
                return Completion(outcome="fail", error=f"{node}: {reason}", node=node)
            case Unclear(reason):
                return _unclear(node, f"{node}: {reason}")
            case Elsewhere():
                return None
            case _:
                return _unclear(node, f"{node}: an answer of another kind")


def _unclear(node: NodeId, reason: str) -> Completion:
    return Completion(outcome="info", error=reason, node=node)


def request_of(invocation: Invocation, seen: int) -> Message:
    """The request: a transaction, a change of rows, a read of the past or at any timestamp, a query, a record."""
    if invocation.mops is not None:
        return Transact(invocation.mops, seen)
    match invocation.f:
        case "change":
            rows = cast("list[tuple[str, Json, Json, int]]", invocation.value)
            return Change(rows[0][0], tuple((key, value, diff) for _, key, value, diff in rows))
        case "stale-read":
            keys, age_ms = cast("tuple[list[Json], int]", invocation.value)
            return ReadPast(tuple(keys), age_ms)
        case "serializable-read":
            (keys,) = cast("tuple[list[Json]]", invocation.value)
            return ReadPast(tuple(keys), None)
        case "create" | "drop":
            return Define(cast("str", invocation.value), invocation.f == "drop")
        case "count-append":
            return Count(invocation.value)
        case "count-read" | "mixed-read":
            return Count(is_mixed=invocation.f == "mixed-read")
        case "produce":
            return Produce(invocation.value)
        case "read-source":
            return Query(SOURCE)
        case "source-as-of":
            return Query(SOURCE, cast("int", invocation.value))
        case _:
            return Query(cast("str", invocation.value))
