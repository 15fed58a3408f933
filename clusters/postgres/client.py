"""Speaks to the server for one process: transactions at the chosen isolation level, and an honest outcome of each.

Theory of operation. A transaction is BEGIN, a statement for each step, COMMIT, on a connection that is kept. What an
error means says `sqlstates.py`; the line is drawn at the moment in which COMMIT is handed to the connection.
1. `fail` before that moment, whatever happened; a connection in doubt is closed first.
2. After it `ok` only by the answer COMMIT without a warning, `fail` only by a definite error, `info` in any other case.
   A warning there says that the commit stands but may not have reached the standby.
3. The number of a transaction and its position come from the server: the number from the first write; the position, the
   end of the commit record, is looked up in the log behind COMMIT. If that fails the position is left out; deliveries
   may tell it.
4. The steps of a transaction do not depend on each other, so they travel together: two round trips hold locks for less
   time than one for each step, and twice as many transactions succeed. The server carries them out one by one, with
   others between them. COMMIT travels apart, with the look-up alone: what it is sent with would make more outcomes
   unclear than need be.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, cast

import msgspec

from clusters.postgres import rows
from clusters.postgres.line import Broken, Line, Refused, Request, Row, dial
from clusters.postgres.sqlstates import is_definite
from harness.core.record import Json, MicroOp
from harness.core.seams import Completion, Doors, Invocation

_SECOND_NS: Final = 1_000_000_000
_DIALS: Final = 3  # One attempt to connect takes so much of an operation's time at most.
# Small tables would be read as a whole, and serializable transactions conflict about rows that they never asked for.
_SESSION: Final = "-cenable_seqscan=off"
LEVELS: Final = {
    "serializable": "SERIALIZABLE",
    "repeatable-read": "REPEATABLE READ",
    "read-committed": "READ COMMITTED",
}


@dataclass(slots=True)
class _Progress:
    """How far an operation has come, for whoever must say what became of it."""

    has_sent_commit: bool = False
    is_committed: bool = False
    txn: int | None = None
    before: bytes = b""  # A position in the log before the commit, where there is a `txn`.
    position: int | None = None  # Of the commit.
    answer: Completion | None = None  # To what is no transaction of a workload.
    steps: list[MicroOp] = field(default_factory=list)


class PostgresClient:
    """A process's way to the node that can be written to. `finds_positions`: with one log, positions mean something."""

    def __init__(self, process: int, doors: Doors, *, isolation: str, finds_positions: bool) -> None:
        self._name = f"client-{process}"
        self._doors = doors
        self._nodes = sorted(doors)
        self._begin = f"BEGIN ISOLATION LEVEL {LEVELS[isolation]}"
        self._finds_positions = finds_positions
        self._line: Line | None = None

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """Carry it out once, within that time. It is for who asks to try again."""
        progress = _Progress()
        try:
            async with asyncio.timeout(timeout_ns / _SECOND_NS):
                await self._carry_out(invocation, progress, timeout_ns)
        except (Refused, OSError) as error:  # Time-outs are among the latter.
            return await self._failed(progress, error, timeout_ns)
        return self._answered(progress)

    async def close(self) -> None:
        """Hang up."""
        self._hang_up()

    async def _carry_out(self, invocation: Invocation, progress: _Progress, timeout_ns: int) -> None:
        line = await self._connected(timeout_ns / _SECOND_NS / _DIALS)
        mops = invocation.mops
        requests = [_operation(invocation)] if mops is None else map(_request, mops)
        _, *answers = await line.run((self._begin,), *requests)
        if mops is None:
            progress.answer = _operated(invocation, answers[0].rows)
        else:
            progress.steps = [_stepped(mop, each.rows, progress) for mop, each in zip(mops, answers, strict=True)]
        line.warnings.clear()
        progress.has_sent_commit = True
        await self._commit(line, progress)

    async def _commit(self, line: Line, progress: _Progress) -> None:
        """Commit, and look up where; once the first is answered, it matters no more whether the second is."""
        requests: list[Request] = [("COMMIT",)]
        if self._finds_positions and progress.txn is not None:
            requests.append((rows.COMMITTED_AT, progress.before, b"%d" % progress.txn))
        async with aclosing(line.ask(*requests)) as answers:
            async for answer in answers:
                if progress.is_committed:
                    progress.position = rows.number(answer.rows)
                elif answer.tag != "COMMIT" or line.warnings:
                    raise Broken(f"COMMIT was answered with {answer.tag} {' '.join(line.warnings)}".strip())
                progress.is_committed = True

    async def _connected(self, within_s: float) -> Line:
        """The connection that is kept, or a new one to the first node that takes writes. Raises Broken."""
        reason = "no node"
        for _ in self._nodes:
            if self._line is not None:
                return self._line
            node = self._nodes[0]
            try:
                async with asyncio.timeout(within_s):
                    self._line = await dial(
                        self._doors[node],
                        name=self._name,
                        options=_SESSION,
                        target_session_attrs="read-write",
                    )
            except (TimeoutError, Broken) as error:
                reason = f"{node}: {str(error).strip() or 'no connection in time'}"
                self._nodes = [*self._nodes[1:], node]
        if self._line is None:
            raise Broken(reason)
        return self._line

    async def _rolled_back(self, timeout_ns: int) -> bool:
        """Is the connection good for another transaction?"""
        try:
            async with asyncio.timeout(timeout_ns / _SECOND_NS / _DIALS):
                if self._line is not None:
                    await self._line.run(("ROLLBACK",))
        except (OSError, Refused):
            return False
        return True

    async def _failed(self, progress: _Progress, error: Refused | OSError, timeout_ns: int) -> Completion:
        """What that means. A connection in doubt is closed, so that nothing more of the operation can arrive."""
        is_standing, is_sure = False, False
        if isinstance(error, Refused):
            is_over = progress.has_sent_commit or await self._rolled_back(timeout_ns)
            is_standing = is_over and not error.ends_connection
            is_sure = is_definite(error.severity, error.sqlstate)
        if not is_standing:
            self._hang_up()
        if progress.is_committed:
            return self._answered(progress)
        is_open = progress.has_sent_commit and not is_sure
        reason = str(error).strip() or "no answer in time"
        node = self._nodes[0]
        return Completion(outcome="info" if is_open else "fail", error=reason, node=node, txn=progress.txn)

    def _answered(self, progress: _Progress) -> Completion:
        if progress.answer is not None:
            return msgspec.structs.replace(progress.answer, node=self._nodes[0], txn=progress.txn)
        return Completion(
            outcome="ok",
            mops=tuple(progress.steps),
            node=self._nodes[0],
            txn=progress.txn,
            commit_ts=progress.position,
        )

    def _hang_up(self) -> None:
        """The next operation begins with another node."""
        if self._line is not None:
            self._line.close()
            self._line = None


def _table(mop: MicroOp) -> str:
    """Where the key is: a register's name is text."""
    return rows.table_of(rows.REGISTER if isinstance(mop.key, str) else rows.LIST, mop.key)


def _request(mop: MicroOp) -> Request:
    table, key = _table(mop), rows.encoded(mop.key)
    match mop.f:
        case "r":
            return rows.read(table, mop.lock), key
        case "append":
            return rows.append(table), key, rows.encoded(mop.value)
        case "w":
            return rows.write(table), key, rows.encoded(mop.value)


def _stepped(mop: MicroOp, found: Sequence[Row], progress: _Progress) -> MicroOp:
    """The step with what it read. A list to which nobody appended is empty, a register that nobody wrote holds None."""
    if mop.f == "r":
        stored = found[0][0] if found else None
        is_list = _table(mop).startswith(rows.LIST)
        return msgspec.structs.replace(mop, value=rows.elements(stored) if is_list else rows.held(stored))
    [(txn, before)] = found
    if progress.txn is None and txn is not None and before is not None:
        progress.txn, progress.before = int(txn), before
    return mop


def _operation(invocation: Invocation) -> Request:
    """What to ask of a single register: its value is [key, value], or for a cas [key, [old, new]]."""
    key, value = cast("list[Json]", invocation.value)
    table, name = rows.table_of(rows.CELL, key), rows.encoded(key)
    match invocation.f:
        case "read":
            return rows.read(table), name
        case "write":
            return rows.write(table), name, rows.encoded(value)
        case _:
            old, new = cast("list[Json]", value)
            return rows.swap(table), name, rows.encoded(new), rows.encoded(old)


def _operated(invocation: Invocation, found: Sequence[Row]) -> Completion:
    """How that ended: a read with what was held, and a cas that found something else did nothing."""
    key, _ = cast("list[Json]", invocation.value)
    done = Completion(outcome="ok", value=invocation.value)
    if invocation.f == "read":
        return msgspec.structs.replace(done, value=[key, rows.held(found[0][0] if found else None)])
    if invocation.f == "cas" and not found:
        return msgspec.structs.replace(done, outcome="fail", error="the register held something else")
    return done
