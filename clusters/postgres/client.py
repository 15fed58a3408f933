"""The client of one process: it runs transactions at the chosen isolation level, and reports each outcome exactly.

Theory of operation. A transaction is BEGIN, a statement for each step, COMMIT, on a connection that is kept.
`sqlstates.py` interprets errors; the decisive moment is when COMMIT is handed to the connection.
1. `fail` before that moment, whatever happened; a connection in doubt is closed first.
2. After it `ok` only by the answer COMMIT without a warning, `fail` only by a definite error, else `info`. A warning
   means that the commit holds but may not have reached the standby.
3. The number of a transaction and its position come from the server: the number from the first write; the position,
   the end of the commit record, is looked up in the log after COMMIT. If that fails the position is left out;
   deliveries may reveal it.
4. The steps of a transaction do not depend on each other, so they travel together: two round trips hold locks for less
   time than one per step, and twice as many transactions succeed. The server carries them out one by one, interleaved
   with others. COMMIT travels separately, with the look-up only: steps sent with it would make more outcomes unclear.
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
from clusters.servers.values import encoded, held
from harness.core.record import Json, MicroOp
from harness.core.seams import Completion, Doors, Invocation

_SECOND_NS: Final = 1_000_000_000
_DIALS: Final = 3  # One attempt to connect gets this fraction (1 / n) of an operation's time.
# Otherwise small tables are read whole, and serializable transactions conflict on rows that they did not request.
_SESSION: Final = "-cenable_seqscan=off"
LEVELS: Final = {
    "serializable": "SERIALIZABLE",
    "repeatable-read": "REPEATABLE READ",
    "read-committed": "READ COMMITTED",
}


@dataclass(slots=True)
class _Progress:
    """The progress of an operation, which decides its outcome."""

    has_sent_commit: bool = False
    is_committed: bool = False
    txn: int | None = None
    before: bytes = b""  # A position in the log before the commit, if there is a `txn`.
    position: int | None = None  # The position of the commit.
    answer: Completion | None = None  # The completion of an operation that is not a transaction.
    steps: list[MicroOp] = field(default_factory=list)


class PostgresClient:
    """A process's connection to the writable node. `finds_positions`: positions are comparable, as there is one log."""

    def __init__(self, process: int, doors: Doors, *, isolation: str, finds_positions: bool) -> None:
        self._name = f"client-{process}"
        self._doors = doors
        self._nodes = sorted(doors)
        self._begin = f"BEGIN ISOLATION LEVEL {LEVELS[isolation]}"
        self._finds_positions = finds_positions
        self._line: Line | None = None

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """The completion of an operation, carried out once within that time. Retries are up to the caller."""
        progress = _Progress()
        try:
            async with asyncio.timeout(timeout_ns / _SECOND_NS):
                await self._carry_out(invocation, progress, timeout_ns)
        except (Refused, OSError) as error:  # These include time-outs.
            return await self._failed(progress, error, timeout_ns)
        return self._answered(progress)

    async def close(self) -> None:
        """Close the connection."""
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
        """Commit, and look up the position; after COMMIT is answered, a failure of the look-up does not matter."""
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
        """The open connection, or a new one to the first node that accepts writes. Raises Broken."""
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
        """True if the connection can be used for another transaction."""
        try:
            async with asyncio.timeout(timeout_ns / _SECOND_NS / _DIALS):
                if self._line is not None:
                    await self._line.run(("ROLLBACK",))
        except (OSError, Refused):
            return False
        return True

    async def _failed(self, progress: _Progress, error: Refused | OSError, timeout_ns: int) -> Completion:
        """The completion for that error.

        A connection in doubt is closed, so that nothing more of the operation can arrive.
        """
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
        """Close the connection; the next operation begins with another node."""
        if self._line is not None:
            self._line.close()
            self._line = None


def _table(mop: MicroOp) -> str:
    """The table of the key: a register's name is text."""
    return rows.table_of(rows.REGISTER if isinstance(mop.key, str) else rows.LIST, mop.key)


def _request(mop: MicroOp) -> Request:
    table, key = _table(mop), encoded(mop.key)
    match mop.f:
        case "r":
            return rows.read(table, mop.lock), key
        case "append":
            return rows.append(table), key, encoded(mop.value)
        case "w":
            return rows.write(table), key, encoded(mop.value)


def _stepped(mop: MicroOp, found: Sequence[Row], progress: _Progress) -> MicroOp:
    """The step with its result. A list without appends is empty, a register never written holds None."""
    if mop.f == "r":
        stored = found[0][0] if found else None
        is_list = _table(mop).startswith(rows.LIST)
        return msgspec.structs.replace(mop, value=rows.elements(stored) if is_list else held(stored))
    [(txn, before)] = found
    if progress.txn is None and txn is not None and before is not None:
        progress.txn, progress.before = int(txn), before
    return mop


def _operation(invocation: Invocation) -> Request:
    """The request for a single register: its value is [key, value], or for a cas [key, [old, new]]."""
    key, value = cast("list[Json]", invocation.value)
    table, name = rows.table_of(rows.CELL, key), encoded(key)
    match invocation.f:
        case "read":
            return rows.read(table), name
        case "write":
            return rows.write(table), name, encoded(value)
        case _:
            old, new = cast("list[Json]", value)
            return rows.swap(table), name, encoded(new), encoded(old)


def _operated(invocation: Invocation, found: Sequence[Row]) -> Completion:
    """The completion of a register operation. A read has the held value; a cas that found another value did nothing."""
    key, _ = cast("list[Json]", invocation.value)
    done = Completion(outcome="ok", value=invocation.value)
    if invocation.f == "read":
        return msgspec.structs.replace(done, value=[key, held(found[0][0] if found else None)])
    if invocation.f == "cas" and not found:
        return msgspec.structs.replace(done, outcome="fail", error="the register held something else")
    return done
