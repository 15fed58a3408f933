"""Runs a test: client processes under load, the nemesis beside them, then healing, final reads, and quiescence.

Theory of operation. One scheduler takes operations from the generator and hands them to *threads*; each thread is a
task with its own client and process number. Every event goes through `record`, in order.
1. An invocation is recorded before its client gets it, and a completion before its process continues.
2. A process whose operation ended as `info` never acts again: its thread continues under a new number, with a new
   client.
3. A fault enters the ledger before it is applied, and leaves it once undone. However the load ends (time, an error, an
   interrupt), the faults still in the ledger are undone in reverse order.
4. After healing the system must become available within the cluster's settling bound (`settling`), and every subscriber
   reach the source's last position within that bound of the healing and of the position, or the run ends as `stall`.
Source: Jepsen's generator interpreter, for processes and their retirement.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from harness.core.generators.generator import Context, Generator, Planned
from harness.core.record import Complete, Evidence, Invoke, Mark, MicroOp, StreamEvent
from harness.core.seams import Client, Clock, Cluster, Completion, Invocation, Workload
from harness.interpreter.clients import OpenClient
from harness.interpreter.nemesis_process import NemesisProcess
from harness.interpreter.settling import Settling
from nemesis.plan import FaultRuntime, Plan

SECOND = 1_000_000_000
COMPLETED = "completed"
QUIET_POLL_NS = 50_000_000
QUIET_NS = SECOND  # The time after the last answer in which its effects come to rest, before states are dumped.
LONG_WAIT_NS = SECOND  # If nothing is planned: the time until the next query, unless a completion comes before.
FINAL_TIMEOUT_NS = SECOND  # Final operations get at least this long.
CALLS_PER_OPERATION = 4  # A client may try several nodes one by one; one that needs more time-outs is at fault.
OF_REGISTERS = frozenset({"rw-register", "conflicts"})  # Checks of workloads whose rows are no lists.


class ClientError(Exception):
    """A client broke its contract: it raised, or completed another operation than the one it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The services that a test uses.

    `mark` makes a milestone with a note; `dump` makes all nodes record their state.
    """

    clock: Clock
    open_client: OpenClient
    faults: FaultRuntime
    record: Callable[[Evidence], None]
    mark: Callable[[str, str | None], Mark]
    dump: Callable[[], Awaitable[None]]


class Interpreter:
    """One run of a test on a runtime."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        cluster: Cluster,
        workload: Workload,
        plan: Plan,
        threads: int,
        timeout_ns: int,
    ) -> None:
        self._cluster, self._workload = cluster, workload
        self._clock, self._open_client = runtime.clock, runtime.open_client
        self._record, self._mark, self._dump = runtime.record, runtime.mark, runtime.dump
        self._timeout_ns = timeout_ns
        self._nemesis = NemesisProcess(plan, runtime.faults, runtime.clock, runtime.record)
        self._threads = threads
        self._processes = list(range(threads))
        self._next_process = threads
        self._next_index = 0
        self._free = list(range(threads))
        self._work: list[asyncio.Queue[tuple[int, Invocation]]] = [asyncio.Queue() for _ in range(threads)]
        self._woken: asyncio.Future[None] | None = None  # What `_drive` waits for.
        self._done: list[tuple[int, Complete]] = []
        self._start_ns = 0
        self._last_position, self._last_position_ns = -1, 0
        self._last_error: str | None = None  # The client's error for the latest operation that did not succeed.
        self._watermarks: dict[str, int] = {}

    async def run(self) -> str:
        """Carry the test out. Returns why it ended: "completed" or "stall: ..."."""
        self._record(self._mark("set-up", None))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._serve(thread), name=f"client thread {thread}") for thread in self._all()]
            tasks.append(group.create_task(self._tick(), name="tick"))
            reason = await self._phases()
            for task in tasks:
                task.cancel()
        self._record(self._mark("end", reason))
        return reason

    def observe(self, event: StreamEvent) -> None:
        """Keep a subscriber's watermark. The recorder of stream events calls this."""
        if event.kind == "watermark" and event.position is not None:
            self._watermarks[event.subscriber] = event.position

    async def _phases(self) -> str:
        self._start_ns = self._clock.now_ns()
        self._record(self._mark("load", None))
        nemesis = asyncio.create_task(self._nemesis.run(), name="nemesis")
        try:
            await self._drive(self._workload.load, None)
            await nemesis
        finally:
            nemesis.cancel()
            self._record(self._mark("healing", None))
            await self._nemesis.heal()
        self._start_ns = self._clock.now_ns()
        self._record(self._mark("final", None))
        self._last_error = None
        self._timeout_ns = max(self._timeout_ns, FINAL_TIMEOUT_NS)
        if not await self._drive(self._workload.final, Settling(self._start_ns, self._cluster.settle_ns)):
            answer = f": the last answer was {self._last_error}" if self._last_error else ""
            return self._stall(f"a final operation had not succeeded{answer}")
        reason = await self._quiesce()
        if reason == COMPLETED:
            await self._clock.sleep_ns(QUIET_NS)
            await self._dump()
        return reason

    async def _quiesce(self) -> str:
        """Wait until each subscriber has announced the last position of the source."""
        if self._cluster.stream is None:
            return COMPLETED
        deadline_ns = max(self._start_ns, self._last_position_ns) + self._cluster.settle_ns
        subscribers = [node.id for node in self._cluster.nodes if node.role == "subscriber"]
        while True:
            behind = [name for name in subscribers if self._watermarks.get(name, -1) < self._last_position]
            if not behind:
                return COMPLETED
            if self._clock.now_ns() >= deadline_ns:
                return self._stall(f"{', '.join(behind)} had not reached position {self._last_position}")
            await self._clock.sleep_ns(QUIET_POLL_NS)

    def _stall(self, what: str) -> str:
        return f"stall: {self._cluster.settle_ns / SECOND:g} s after healing, {what}"

    async def _drive(self, generator: Generator, settling: Settling | None) -> bool:
        """Invoke planned operations until the generator is exhausted and all threads are free.

        False: the system did not settle.
        """
        running: dict[int, Invoke] = {}
        while True:
            now_ns = self._clock.now_ns()  # Read once per round: in containers time advances between two readings.
            for _, event in self._take_done():
                generator = generator.update(self._context(now_ns), event)
                invoke = running.pop(event.index)
                if settling is not None:
                    settling.observe(invoke, event)
            if settling is not None and settling.has_failed(now_ns):
                return False
            answer = generator.op(self._context(now_ns))
            wait_ns = LONG_WAIT_NS if settling is None else settling.deadline_ns - now_ns
            if answer is None:
                if len(self._free) == self._threads:
                    return True
            elif isinstance(answer[0], Planned):
                planned, following = answer[0], answer[1]
                ahead_ns = self._start_ns + planned.time_ns - now_ns
                if ahead_ns <= 0:
                    invoke = self._dispatch(planned)
                    running[invoke.index] = invoke
                    generator = following.update(self._context(now_ns), invoke)
                    continue
                wait_ns = min(ahead_ns, wait_ns)
            await self._wait(wait_ns)

    async def _wait(self, duration_ns: int) -> None:
        """Wait until an operation completes or the time has passed."""
        if self._done:
            return
        loop = asyncio.get_running_loop()
        self._woken = loop.create_future()
        timer = loop.call_later(duration_ns / SECOND, self._wake)
        try:
            await self._woken
        finally:
            timer.cancel()

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def _context(self, now_ns: int) -> Context:
        return Context(time_ns=now_ns - self._start_ns, free=tuple(self._free), processes=tuple(self._processes))

    def _dispatch(self, planned: Planned) -> Invoke:
        thread = planned.thread
        self._free.remove(thread)
        now_ns = self._clock.now_ns()
        invoke = Invoke(
            self._next_index,
            now_ns,
            min(now_ns, self._start_ns + planned.time_ns),
            self._processes[thread],
            planned.f,
            planned.value,
            planned.mops,
        )
        self._next_index += 1
        self._record(invoke)
        invocation = Invocation(f=planned.f, value=planned.value, mops=planned.mops)
        self._work[thread].put_nowait((invoke.index, invocation))
        return invoke

    def _take_done(self) -> list[tuple[int, Complete]]:
        """The completions since the last call. Their threads become free."""
        done, self._done = self._done, []
        self._free.extend(thread for thread, _ in done)
        return done

    async def _serve(self, thread: int) -> None:
        """Run one thread: open a client, carry out its operations, and after info continue with a new process."""
        while True:
            async with self._open_client(self._processes[thread]) as client:
                while await self._serve_one(thread, client):
                    pass

    async def _serve_one(self, thread: int, client: Client) -> bool:
        """Carry out one operation; False if its process must not act again."""
        _end_if_cancelled()
        index, invocation = await self._work[thread].get()
        completion = await self._invoke(client, invocation)
        complete = Complete(
            index,
            self._clock.now_ns(),
            completion.outcome,
            completion.value,
            completion.mops,
            completion.error,
            completion.node,
            completion.txn,
            completion.start_ts,
            completion.read_ts,
            completion.commit_ts,
            completion.epoch,
        )
        self._record(complete)
        if (
            completion.outcome == "ok"
            and completion.commit_ts is not None
            and completion.commit_ts > self._last_position
        ):
            self._last_position, self._last_position_ns = completion.commit_ts, complete.time_ns
        if completion.outcome == "info":
            self._processes[thread] = self._next_process
            self._next_process += 1
        if completion.outcome != "ok":
            self._last_error = f"{completion.outcome}, {completion.error or 'without a reason'}"
        self._done.append((thread, complete))
        self._wake()
        return completion.outcome != "info"

    async def _invoke(self, client: Client, invocation: Invocation) -> Completion:
        """The client's completion, checked; info if it takes longer than any correct client would."""
        try:
            async with asyncio.timeout(CALLS_PER_OPERATION * self._timeout_ns / SECOND):
                completion = await client.invoke(invocation, self._timeout_ns)
        except TimeoutError:
            return Completion(outcome="info", error="the client did not return")
        is_of_registers = not OF_REGISTERS.isdisjoint(self._workload.checks)
        if completion.outcome == "ok" and not _answers(invocation.mops, completion.mops, is_of_registers):
            raise ClientError(f"{type(client).__name__} was given {invocation} and answered {completion}")
        return completion

    async def _tick(self) -> None:
        """Record a milestone once per second, so that two runs can be compared."""
        while True:
            await self._clock.sleep_ns(SECOND)
            self._record(self._mark("tick", None))

    def _all(self) -> range:
        return range(self._threads)


def _end_if_cancelled() -> None:
    """Raise CancelledError if the task was cancelled, and a library swallowed that.

    In Python 3.11 `asyncio.wait_for` does, if what it waits for is done at that moment.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _answers(
    requested: tuple[MicroOp, ...] | None, answered: tuple[MicroOp, ...] | None, is_of_registers: bool
) -> bool:
    """True if both are the same transaction, and each list that was read is known.

    Values of registers are not checked.
    """
    if requested is None or answered is None:
        return requested is answered
    return len(requested) == len(answered) and all(
        a.key == b.key
        and a.f == b.f
        and (is_of_registers or isinstance(b.value, list) if a.f == "r" else a.value == b.value)
        for a, b in zip(requested, answered, strict=True)
    )
