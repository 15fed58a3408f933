"""Speaks to the server for one process: transactions at the chosen isolation level, and an honest outcome of each.

Theory of operation. A transaction is BEGIN, a statement for each step, COMMIT, on a connection that is kept. What an
error means says `sqlstates.py`; the line is drawn at the moment in which COMMIT is handed to the connection.
1. `fail` before that moment, whatever happened; a connection in doubt is closed first.
2. After it `ok` only by the answer COMMIT without a warning, `fail` only by a definite error, `info` in any other case.
   A warning there says that the commit stands but may not have reached the standby.
3. The number of a transaction and its position come from the server: the number from the first write; the position, the
   end of the commit record, is looked up in the log after COMMIT has been answered. If that fails the position is left
   out; deliveries may tell it.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final, cast

import msgspec

from clusters.postgres import rows
from clusters.postgres.line import Broken, Line, Refused, dial
from clusters.postgres.sqlstates import is_definite
from harness.core.record import Json, MicroOp, Outcome
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
    before: bytes | None = None  # A position in the log before the commit.
    position: int | None = None  # Of the commit.
    answer: Completion | None = None
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
        except TimeoutError:
            return self._given_up(progress, "no answer in time")
        except Refused as refused:
            if refused.ends_connection or not await self._rolled_back(timeout_ns):
                self._hang_up()
            is_open = progress.has_sent_commit and not is_definite(refused.severity, refused.sqlstate)
            return self._ended(progress, "info" if is_open else "fail", str(refused))
        except OSError as error:
            return self._given_up(progress, str(error))
        if self._finds_positions:
            progress.position = await self._position(progress, timeout_ns)
        return self._answered(progress)

    async def close(self) -> None:
        """Hang up."""
        self._hang_up()

    async def _carry_out(self, invocation: Invocation, progress: _Progress, timeout_ns: int) -> None:
        line = await self._connected(timeout_ns / _SECOND_NS / _DIALS)
        await line.run(self._begin)
        if invocation.mops is not None:
            for mop in invocation.mops:
                progress.steps.append(await _step(line, mop, progress))
        else:
            progress.answer = await _operate(line, invocation)
        line.warnings.clear()
        progress.has_sent_commit = True
        tag = await line.run("COMMIT")
        if tag == "ROLLBACK":
            raise Refused(severity="ERROR", sqlstate="25P02", message="the transaction had been undone")
        if line.warnings:
            raise Broken(f"COMMIT came with the warning {line.warnings[0]}")
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
                    await self._line.run("ROLLBACK")
        except (OSError, Refused):
            return False
        return True

    async def _position(self, progress: _Progress, timeout_ns: int) -> int | None:
        """Where a transaction that wrote was committed, if that can be found out."""
        if self._line is None or progress.txn is None or progress.before is None:
            return None
        try:
            async with asyncio.timeout(timeout_ns / _SECOND_NS):
                found = await self._line.ask(rows.COMMITTED_AT, progress.before, b"%d" % progress.txn)
        except (OSError, Refused):
            self._hang_up()
            return None
        return int(found[0][0]) if len(found) == 1 and found[0][0] is not None else None

    def _given_up(self, progress: _Progress, reason: str) -> Completion:
        """Without an answer: the connection is closed, so that nothing more of this can arrive."""
        self._hang_up()
        if progress.is_committed:
            return self._answered(progress)
        return self._ended(progress, "info" if progress.has_sent_commit else "fail", reason)

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

    def _ended(self, progress: _Progress, outcome: Outcome, reason: str) -> Completion:
        return Completion(outcome=outcome, error=reason, node=self._nodes[0], txn=progress.txn)

    def _hang_up(self) -> None:
        """The next operation begins with another node."""
        if self._line is not None:
            self._line.close()
            self._line = None


async def _step(line: Line, mop: MicroOp, progress: _Progress) -> MicroOp:
    """The step with what it read. A list to which nobody appended is empty, a register that nobody wrote holds None."""
    sort = rows.REGISTER if isinstance(mop.key, str) else rows.LIST
    table, key = rows.table_of(sort, mop.key), rows.encoded(mop.key)
    if mop.f == "r":
        found = await line.ask(rows.read(table, mop.lock), key)
        stored = found[0][0] if found else None
        if sort == rows.LIST:
            return msgspec.structs.replace(mop, value=rows.elements(stored))
        return msgspec.structs.replace(mop, value=None if stored is None else rows.decoded(stored))
    statement = rows.append(table) if mop.f == "append" else rows.write(table)
    [(txn, before)] = await line.ask(statement, key, rows.encoded(mop.value))
    if progress.txn is None and txn is not None:
        progress.txn, progress.before = int(txn), before
    return mop


async def _operate(line: Line, invocation: Invocation) -> Completion:
    """An operation on a single register: its value is [key, value], or [key, [old, new]]."""
    key, value = cast("list[Json]", invocation.value)
    table, name = rows.table_of(rows.CELL, key), rows.encoded(key)
    done = Completion(outcome="ok", value=invocation.value)
    match invocation.f:
        case "read":
            found = await line.ask(rows.read(table), name)
            held = None if not found or found[0][0] is None else rows.decoded(found[0][0])
            return msgspec.structs.replace(done, value=[key, held])
        case "write":
            await line.ask(rows.write(table), name, rows.encoded(value))
            return done
        case _:
            old, new = cast("list[Json]", value)
            if await line.ask(rows.swap(table), name, rows.encoded(new), rows.encoded(old)):
                return done
            return msgspec.structs.replace(done, outcome="fail", error="the register held something else")
