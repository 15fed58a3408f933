"""Clients and subscribers against a server of this machine: what is hard to hit in a run, step by step."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from clusters.postgres import Cluster, planted, rows
from clusters.postgres.line import Line, Refused, dial
from clusters.postgres.service import PRIMARY
from clusters.postgres.setup import prepare
from clusters.postgres.subscriber import POSITION
from harness.core.machine import Delivery, NodeId, Settings
from harness.core.record import Json, MicroOp
from harness.core.seams import Completion, Doors, Invocation
from tests.system.local_postgres import servers, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

SUBSCRIBER = NodeId("s1")
SETTINGS = Settings(options={"isolation": "serializable", "replication": "async"})
BUGGY = Settings(options=SETTINGS.options, bugs=frozenset({planted.CONFIRM_BEFORE_STORE}))
SECOND_NS = 1_000_000_000
WITHIN_S = 10.0


@pytest.fixture(scope="module")
def doors() -> Iterator[Doors]:
    with servers(SETTINGS) as found:
        made = {node: server.door for node, server in found.items()}
        asyncio.run(prepare(made, SETTINGS))
        yield made


@asynccontextmanager
async def line_to(doors: Doors) -> AsyncIterator[Line]:
    line = await dial(doors[PRIMARY], name="test")
    try:
        yield line
    finally:
        line.close()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not is_so():
            await asyncio.sleep(0.01)


async def append(doors: Doors, key: int, *elements: int, timeout_ns: int = SECOND_NS * 5) -> Completion:
    client = Cluster().client(0, doors, SETTINGS)
    try:
        mops = tuple(MicroOp("append", key, element) for element in elements)
        return await client.invoke(Invocation(f="txn", mops=mops), timeout_ns)
    finally:
        await client.close()


async def held(doors: Doors, key: int) -> object:
    client = Cluster().client(1, doors, SETTINGS)
    try:
        done = await client.invoke(Invocation(f="txn", mops=(MicroOp("r", key),)), SECOND_NS * 5)
        assert done.mops is not None
        return done.mops[0].value
    finally:
        await client.close()


@dataclass
class Listener:
    """Takes what a subscriber delivers, up to a number of rows at which it stands still."""

    rows_max: int = 1_000_000
    came: list[Delivery] = field(default_factory=list)
    stands: asyncio.Event = field(default_factory=asyncio.Event)

    async def deliver(self, delivery: Delivery) -> None:
        if delivery.kind == "row" and len(self.shown()) == self.rows_max:
            self.stands.set()
            await asyncio.Event().wait()
        self.came.append(delivery)

    def shown(self) -> list[object]:
        return [event.value for event in self.came if event.kind == "row"]

    def watermarks(self) -> list[int]:
        return [event.position for event in self.came if event.kind == "watermark" and event.position is not None]

    def late(self) -> list[Delivery]:
        """Rows at or below a watermark that came before them."""
        top, found = -1, []
        for event in self.came:
            assert event.position is not None
            if event.kind == "watermark":
                top = max(top, event.position)
            elif event.kind == "row" and event.position <= top:
                found.append(event)
        return found


@asynccontextmanager
async def subscribed(
    doors: Doors, kept: dict[str, object], listener: Listener, settings: Settings = SETTINGS
) -> AsyncIterator[None]:
    """A session, which is cut short at the end as by a crash. The server frees a slot when it sees that."""

    async def session() -> None:
        while True:
            with suppress(OSError):
                await Cluster().subscriber(SUBSCRIBER, doors, settings, kept).receive(listener.deliver)
            await asyncio.sleep(0.02)

    task = asyncio.create_task(session())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def slot(doors: Doors) -> AsyncIterator[dict[str, object]]:
    """A new slot, and what its subscriber has kept, which is where the slot begins."""
    async with line_to(doors) as line:
        [made] = await line.run((rows.slot(SUBSCRIBER),))
        assert made.rows
        [begin] = await line.run(("SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots",))
        yield {POSITION: rows.number(begin.rows)}
        async with asyncio.timeout(WITHIN_S):
            while True:
                with suppress(Refused):
                    await line.run((f"SELECT pg_drop_replication_slot('{SUBSCRIBER}')",))
                    return
                await asyncio.sleep(0.02)


async def until_passed(listener: Listener, done: Completion) -> None:
    position = done.commit_ts
    assert position is not None
    await until(lambda: max(listener.watermarks(), default=0) >= position)


def test_a_transaction_open_across_many_watermarks_is_not_late(doors: Doors) -> None:
    async def case() -> None:
        listener = Listener()
        async with slot(doors) as kept, subscribed(doors, kept, listener), line_to(doors) as line:
            _, change = await line.run(("BEGIN",), (rows.append("list_0"), b"300", b"1"))
            written_at = int(change.rows[0][1] or b"")
            for element in range(1, 6):
                await until_passed(listener, await append(doors, 301, element))
            passed = sum(position > written_at for position in listener.watermarks())
            assert passed >= 5  # By the place of its row it would be late five times.
            assert listener.shown() == [1, 2, 3, 4, 5]
            await line.run((rows.append("list_0"), b"300", b"2"), ("COMMIT",))
            await until(lambda: len(listener.shown()) == 7)
            assert listener.late() == []
            own = [event for event in listener.came if event.key == 300]
            assert [(event.value, event.ordinal, event.unit_rows) for event in own] == [(1, 0, 2), (2, 1, 2)]

    asyncio.run(case())


def test_the_position_that_a_client_reports_is_that_of_the_stream(doors: Doors) -> None:
    async def case() -> None:
        listener = Listener()
        async with slot(doors) as kept, subscribed(doors, kept, listener):
            done = [await append(doors, 310, element, -element) for element in range(1, 30)]
            await until(lambda: len(listener.shown()) == 58)
        result = [(event.unit, event.position) for event in listener.came if event.kind == "row" and event.ordinal == 0]
        assert result == [(each.txn, each.commit_ts) for each in done]

    asyncio.run(case())


def test_watermarks_rise_in_a_session_and_reach_the_last_commit(doors: Doors) -> None:
    async def case() -> None:
        listener = Listener()
        async with slot(doors) as kept, subscribed(doors, kept, listener):
            await until_passed(listener, await append(doors, 320, 1))
        marks = listener.watermarks()
        assert marks == sorted(set(marks))
        assert kept[POSITION] == marks[-1]

    asyncio.run(case())


@pytest.mark.parametrize("settings", [SETTINGS, BUGGY], ids=["sound", "buggy"])
def test_what_a_crash_cuts_short_comes_again_unless_it_was_confirmed_before_it_was_kept(
    doors: Doors, settings: Settings
) -> None:
    async def case() -> None:
        first, second = Listener(rows_max=0), Listener()
        key = 330 + len(settings.bugs)
        async with slot(doors) as kept:
            begin = kept[POSITION]
            done = [await append(doors, key, element) for element in (1, 2, 3)]
            async with subscribed(doors, kept, first, settings), line_to(doors) as line:
                await first.stands.wait()
                if settings.bugs:
                    await until_confirmed(line, done[0].commit_ts or 0)
            assert first.shown() == []
            assert kept[POSITION] == max(first.watermarks(), default=begin)
            async with subscribed(doors, kept, second, settings):
                assert (await append(doors, key, 4)).outcome == "ok"
                await until(lambda: 4 in second.shown())
        assert (1 in second.shown()) == (not settings.bugs)
        assert second.shown() == [1, 2, 3, 4][4 - len(second.shown()) :]

    asyncio.run(case())


async def until_confirmed(line: Line, position: int) -> None:
    async with asyncio.timeout(WITHIN_S):
        while True:
            [result] = await line.run(("SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots",))
            if (rows.number(result.rows) or 0) >= position:
                return
            await asyncio.sleep(0.02)


def test_what_waits_too_long_before_its_commit_has_certainly_failed(doors: Doors) -> None:
    async def case() -> None:
        async with line_to(doors) as line:
            await line.run(("BEGIN",), (rows.append("list_1"), b"340", b"1"))
            late = await append(doors, 340, 2, timeout_ns=SECOND_NS // 5)
            assert late.outcome == "fail"
            await line.run(("COMMIT",))
        await asyncio.sleep(0.7)  # Longer than the server takes to see that nobody waits any more.
        assert await held(doors, 340) == [1]

    asyncio.run(case())


def test_a_commit_that_is_not_answered_in_time_may_have_happened(doors: Doors) -> None:
    async def case() -> None:
        async with line_to(doors) as line:
            await line.run(("ALTER SYSTEM SET synchronous_standby_names = 'nobody'",), ("SELECT pg_reload_conf()",))
            await asyncio.sleep(0.5)
            unclear = await append(doors, 350, 1, timeout_ns=SECOND_NS * 2)
            assert unclear.outcome == "info"
            assert unclear.txn is not None
            assert await held(doors, 350) == []
            await line.run(("ALTER SYSTEM RESET synchronous_standby_names",), ("SELECT pg_reload_conf()",))
            await asyncio.sleep(0.5)
        assert await held(doors, 350) == [1]

    asyncio.run(case())


def test_a_commit_with_a_warning_is_not_taken_for_done(doors: Doors) -> None:
    """Who cancels the wait for the standby is told that all is well, and a warning that it may not be."""

    async def case() -> None:
        async with line_to(doors) as line:
            await line.run(("ALTER SYSTEM SET synchronous_standby_names = 'nobody'",), ("SELECT pg_reload_conf()",))
            await asyncio.sleep(0.5)
            waiting = asyncio.create_task(append(doors, 360, 1))
            cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            async with asyncio.timeout(WITHIN_S):
                while not (await line.run((cancel,)))[0].rows:
                    await asyncio.sleep(0.02)
            unclear = await waiting
            await line.run(("ALTER SYSTEM RESET synchronous_standby_names",), ("SELECT pg_reload_conf()",))
        assert (unclear.outcome, "01000" in (unclear.error or "")) == ("info", True)
        assert await held(doors, 360) == [1]

    asyncio.run(case())


def test_a_refused_statement_fails_and_leaves_the_connection_in_use(doors: Doors) -> None:
    async def case() -> None:
        client = Cluster().client(0, doors, SETTINGS)
        async with line_to(doors) as line:
            read = Invocation(f="txn", mops=(MicroOp("r", 370),))
            assert (await client.invoke(read, SECOND_NS)).outcome == "ok"
            await line.run(("ALTER TABLE list_1 RENAME TO away",))
            refused = await client.invoke(Invocation(f="txn", mops=(MicroOp("append", 370, 1),)), SECOND_NS)
            await line.run(("ALTER TABLE away RENAME TO list_1",))
            assert (refused.outcome, (refused.error or "")[:11]) == ("fail", "ERROR 42P01")
            [lines] = await line.run(("SELECT pid FROM pg_stat_activity WHERE application_name = 'client-0'",))
            assert (await client.invoke(read, SECOND_NS)).outcome == "ok"
            [again] = await line.run(("SELECT pid FROM pg_stat_activity WHERE application_name = 'client-0'",))
            assert lines.rows == again.rows
        await client.close()

    asyncio.run(case())


def test_single_registers_are_read_written_and_compared(doors: Doors) -> None:
    async def case() -> None:
        client = Cluster().client(0, doors, SETTINGS)
        steps: tuple[tuple[str, Json, str, Json], ...] = (
            ("read", None, "ok", None),
            ("cas", [1, 2], "fail", [1, 2]),
            ("write", 1, "ok", 1),
            ("cas", [1, 2], "ok", [1, 2]),
            ("cas", [1, 3], "fail", [1, 3]),
            ("read", None, "ok", 2),
        )
        for f, value, outcome, told in steps:
            done = await client.invoke(Invocation(f=f, value=["r380", value]), SECOND_NS)
            assert (done.outcome, done.value) == (outcome, ["r380", told])
        await client.close()

    asyncio.run(case())


def test_registers_in_transactions_hold_what_was_written_last(doors: Doors) -> None:
    async def case() -> None:
        client = Cluster().client(0, doors, SETTINGS)
        mops = (MicroOp("r", "r390"), MicroOp("w", "r390", 1), MicroOp("w", "r390", 2), MicroOp("r", "r390"))
        done = await client.invoke(Invocation(f="txn", mops=mops), SECOND_NS)
        assert [mop.value for mop in done.mops or ()] == [None, 1, 2, 2]
        await client.close()

    asyncio.run(case())
