"""The client of one process: it runs transactions on the master, and reports each outcome exactly.

Theory of operation. `errors.py` interprets what comes back.
1. A transaction is MULTI, a command for each step, and EXEC, sent together. One that writes adds an entry to the stream
   as well, whose ID is the operation's position, and its number.
2. After EXEC the client may wait for replicas (WAIT), or for files (WAITAOF). If too few have the write in time, it is
   on the master, and may be lost with it: the outcome is unknown.
3. A compare-and-set watches its register, reads it, and writes in a transaction, which the server refuses if the
   register has changed since.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from clusters.redis import planted, rows
from clusters.redis.line import Command, Line
from clusters.redis.masters import guides, master_by
from clusters.servers.client import Progress, Refused, ServerClient
from clusters.servers.values import decoded, encoded, held
from harness.core.machine import NodeId, Settings
from harness.core.record import Json, MicroOp
from harness.core.seams import Address, Completion, Doors, Invocation

_CONFIRMED_WITHIN_MS: Final = 2_000
# Each is answered with a count of servers, or with one of masters and one of replicas: one of each is enough.
_CONFIRM: Final[dict[str, tuple[Command, ...]]] = {
    "none": (),
    "wait": (("WAIT", 1, _CONFIRMED_WITHIN_MS),),
    "waitaof": (("WAITAOF", 1, 1, _CONFIRMED_WITHIN_MS),),
}


class RedisClient(ServerClient[Line]):
    """A process's connection to the master."""

    def __init__(self, process: int, doors: Doors, settings: Settings) -> None:
        super().__init__(process, doors, guides(doors))
        self._confirmation = _CONFIRM[settings.options["confirm"]]
        self._watches = planted.NO_WATCH not in settings.bugs

    def _dial(self, address: Address) -> Line:
        return Line(address)

    async def _server_by(self, node: NodeId, within_s: float) -> NodeId:
        return await master_by(node, self._doors, within_s)

    async def _carry_out(self, line: Line, invocation: Invocation, progress: Progress) -> Completion:
        if invocation.mops is None:
            return await self._operate(line, invocation, progress)
        commands = [_command(mop) for mop in invocation.mops]
        if all(mop.f == "r" for mop in invocation.mops):
            [answers] = await line.transaction(*commands)
            return Completion(outcome="ok", mops=_done(invocation.mops, answers))
        commands.append(("XADD", rows.STREAM, "*", rows.FIELD, rows.entry(invocation.mops)))
        answers = await self._written(line, progress, *commands)
        position = rows.position_of(answers[-1])
        return Completion(outcome="ok", mops=_done(invocation.mops, answers[:-1]), txn=position, commit_ts=position)

    async def _operate(self, line: Line, invocation: Invocation, progress: Progress) -> Completion:
        """A single register: its value is [key, value], or for a cas [key, [old, new]]."""
        key, value = cast("list[Json]", invocation.value)
        name = rows.cell_of(key)
        match invocation.f:
            case "read":
                [stored] = await line.run(("GET", name))
                return Completion(outcome="ok", value=[key, held(stored)])
            case "write":
                await self._written(line, progress, ("SET", name, encoded(value)))
            case _:
                old, new = cast("list[Json]", value)
                watch: tuple[Command, ...] = (("WATCH", name),) if self._watches else ()
                *_, stored = await line.run(*watch, ("GET", name))
                if held(stored) != old:
                    await line.run(("UNWATCH",))
                    return Completion(outcome="fail", error="the register held something else")
                if await self._written(line, progress, ("SET", name, encoded(new))) is None:
                    return Completion(outcome="fail", error="the register has changed since it was read")
        return Completion(outcome="ok", value=invocation.value)

    async def _written(self, line: Line, progress: Progress, *commands: Command) -> Any:
        """The answers to a transaction that writes, or None if a watched key has changed. Raises Refused, Broken."""
        progress.has_sent_write = True
        answers, *confirmed = await line.transaction(*commands, then=self._confirmation)
        counts = confirmed[0] if confirmed and isinstance(confirmed[0], list) else confirmed
        if answers is not None and not all(counts):
            raise Refused("too few servers have confirmed it")
        return answers


def _command(mop: MicroOp) -> Command:
    key = rows.key_of(mop.key)
    match mop.f:
        case "append":
            return ("RPUSH", key, encoded(mop.value))
        case "w":
            return ("SET", key, encoded(mop.value))
        case "r":
            return ("GET", key) if rows.is_register(mop.key) else ("LRANGE", key, 0, -1)


def _done(mops: Sequence[MicroOp], answers: Sequence[Any]) -> tuple[MicroOp, ...]:
    """The steps of a transaction with what its reads saw."""

    def seen(mop: MicroOp, answer: Any) -> MicroOp:
        if mop.f != "r":
            return mop
        value = held(answer) if rows.is_register(mop.key) else [decoded(element) for element in answer]
        return msgspec.structs.replace(mop, value=value)

    return tuple(seen(mop, answer) for mop, answer in zip(mops, answers, strict=True))
