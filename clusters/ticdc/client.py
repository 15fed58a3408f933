"""The client of one process: it calls a coordinator, and reports unknown outcomes as unknown."""

from typing import cast

from clusters.parts.client import Turns, ended
from clusters.ticdc.shape import COORDINATORS
from clusters.ticdc.transactions.messages import (
    Begun,
    Done,
    Flashback,
    Reshape,
    Restore,
    Restored,
    Seen,
    StaleRead,
    Transact,
)
from harness.core.record import Json
from harness.core.seams import Completion, Connection, Invocation


class TicdcClient:
    """A client that uses one coordinator until that fails. The processes begin with different ones."""

    def __init__(self, process: int, connection: Connection) -> None:
        self._turns = Turns(process, connection, COORDINATORS)

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """The completion of the invocation."""
        request = _request(invocation)
        called = await self._turns.call(request, timeout_ns)
        if isinstance(called, Completion):
            return called
        node, answer = called
        match answer:
            case Done(start_ts, commit_ts, mops):
                # A flashback reads what its locks hold back until it commits.
                read_ts = commit_ts if isinstance(request, Flashback) else start_ts
                return Completion(
                    outcome="ok", mops=mops, node=node, txn=start_ts, start_ts=start_ts, read_ts=read_ts,
                    commit_ts=commit_ts,
                )  # fmt: skip
            case Begun():
                return Completion(outcome="ok", node=node)
            case Seen(read_ts, keys, elements):
                value: Json = [[key, [*held]] for key, held in zip(keys, elements, strict=True)]
                return Completion(outcome="ok", value=value, node=node, read_ts=read_ts)
            case _:
                return ended(node, answer)


def _request(invocation: Invocation) -> Transact | StaleRead | Restore | Restored | Flashback | Reshape:
    """The request: a transaction, a flashback, a stale read of [keys, age in ms], a restore of [keys], what flashbacks
    restored of [keys], or a change of the region of [key].
    """
    if invocation.mops is not None:
        return Flashback(invocation.mops) if invocation.f == "flashback" else Transact(invocation.mops)
    match invocation.f:
        case "restore" | "restored":
            (held,) = cast("tuple[list[Json]]", invocation.value)
            return Restore(tuple(held)) if invocation.f == "restore" else Restored(tuple(held))
        case "split" | "merge" | "transfer":
            (key,) = cast("tuple[Json]", invocation.value)
            return Reshape(invocation.f, key)
        case _:
            keys, age_ms = cast("tuple[list[Json], int]", invocation.value)
            return StaleRead(tuple(keys), age_ms)
