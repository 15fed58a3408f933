"""An asyncio event loop on virtual time: the clock jumps to the next timer, and a program runs the same each time.

Theory of operation.
1. Time is an integer of nanoseconds. It advances only when nothing is ready, and then to the earliest timer.
2. Timers are ordered by (time, order of creation); ready callbacks run first in, first out. The stock loop keeps its
   timers in a heap without a second key, which does not keep equal times in order.
3. Tasks and futures hash to a count. `asyncio.wait` and the abort of a TaskGroup iterate over sets of them, and with
   the stock hash, an address in memory, that order differs from process to process.
4. All means to wait for the outside world (threads, sockets, processes, signals) are refused by name: refused.py.
5. A program that cannot continue raises `Stalled` and never hangs: nothing ready and no timer, or STEPS_PER_INSTANT
   steps without an advance of time.
6. An exception of a callback ends the run; it is never only logged.
"""

import asyncio
import sys
from asyncio.events import _set_running_loop  # Underscored, yet documented as the hook for authors of event loops.
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context, copy_context
from heapq import heappop, heappush
from itertools import count
from types import FrameType
from typing import Any, Final, TypeVar, TypeVarTuple, cast

from harness.core.errors import ScenarioError, SeamarkError, Stalled
from harness.runtimes.simulation.awaiting import awaited
from harness.runtimes.simulation.refused import Secluded

T = TypeVar("T")
A = TypeVar("A")
Ts = TypeVarTuple("Ts")

STEPS_PER_INSTANT: Final = 100_000
SECOND_NS: Final = 1_000_000_000
_STEP_TEXT_MAX: Final = 300
_AS_COMPLETED: Final = ("as_completed", "_AsCompletedIterator.__init__")  # Until Python 3.12, and since 3.13.


class VirtualLoop(Secluded):
    """The event loop. `now_ns` is the time since the start of the run, in nanoseconds."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._heap: list[tuple[int, int, Callable[[Any], object], Any]] = []
        self._ready: deque[_Soon] = deque()
        self._next_number = count().__next__
        self._tasks: list[_Task[Any]] = []  # Strong references: no task ends for lack of a reference.
        self._sweep_at = 64  # At this number of tasks, those that ended are forgotten.
        self._problems: list[str] = []
        self._is_running = False
        self._is_stopping = False
        self._is_closed = False

    # For the simulation.

    def schedule(self, when_ns: int, callback: Callable[[A], object], argument: A) -> None:
        """Call `callback(argument)` at `when_ns`. This is the fast path: no handle, no context, no cancellation."""
        heappush(self._heap, (when_ns, self._next_number(), callback, argument))

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """The result of `main`; afterwards all remaining tasks are cancelled and the loop is closed.

        Raises Stalled when nothing can continue, and any exception of a callback.
        """
        try:
            result = self.run_until_complete(self.create_task(main, name="main"))
            self._cancel_rest()
            return result
        finally:
            self.close()

    # The interface that asyncio requires.

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """The result of `future`. Raises Stalled when nothing can continue, and any exception of a callback."""
        main: asyncio.Future[T] = asyncio.ensure_future(cast("Awaitable[T]", future), loop=self)
        main.add_done_callback(self._stop_for)
        self._is_running = True
        _set_running_loop(self)
        try:
            self._turn()
        finally:
            _set_running_loop(None)
            self._is_running = False
        result = main.result()
        if self._problems:
            raise SeamarkError(f"an error in the simulation that nobody took up: {self._problems[0]}")
        return result

    def _turn(self) -> None:
        heap, ready = self._heap, self._ready
        self._is_stopping = False
        steps = 0
        while True:
            while ready:
                steps += 1
                if steps > STEPS_PER_INSTANT:
                    raise self._livelock("a callback of asyncio")
                _run(ready.popleft())
                if self._is_stopping:
                    return
            if not heap:
                raise self._deadlock()
            when_ns, _, callback, argument = heappop(heap)
            if when_ns > self.now_ns:
                self.now_ns = when_ns
                steps = 0
            steps += 1
            if steps > STEPS_PER_INSTANT:
                owner = getattr(callback, "__self__", None)
                raise self._livelock(f"{owner!r} {callback.__qualname__} {argument!r}"[:_STEP_TEXT_MAX])
            callback(argument)

    def _deadlock(self) -> Stalled:
        return Stalled(f"no event is left at {self.now_ns} ns: {awaited(self._tasks)}")

    def _livelock(self, step: str) -> Stalled:
        turning = f"{STEPS_PER_INSTANT} steps and no time passes at {self.now_ns} ns"
        return Stalled(f"{turning}: {awaited(self._tasks)}; last came {step}")

    def _stop_for(self, _: object) -> None:
        self._is_stopping = True

    def stop(self) -> None:
        self._is_stopping = True

    def is_running(self) -> bool:
        return self._is_running

    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        """Discard everything that still waits. Unfinished coroutines are closed, in order of creation."""
        self._is_closed = True
        for task in self._tasks:
            coroutine = task.get_coro()
            if not task.done() and isinstance(coroutine, Coroutine):
                with suppress(RuntimeError):  # It tried to await something while being closed.
                    coroutine.close()
        self._ready.clear()
        self._heap.clear()

    def _cancel_rest(self) -> None:
        rest = [task for task in self._tasks if not task.done()]
        for task in rest:
            task.cancel()
        if rest:
            self.run_until_complete(asyncio.wait(rest))

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: Python closes generators that nobody awaits."""

    def time(self) -> float:
        """Virtual seconds, for asyncio's own use; `now_ns` is exact."""
        return self.now_ns / SECOND_NS

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = _Soon(callback, args, self, context or copy_context())
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self._call_at_ns(self.now_ns + round(delay * SECOND_NS), callback, args, context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self._call_at_ns(round(when * SECOND_NS), callback, args, context)

    def _call_at_ns(
        self, when_ns: int, callback: Callable[..., object], args: tuple[object, ...], context: Context | None
    ) -> asyncio.TimerHandle:
        handle = _Later(when_ns / SECOND_NS, callback, args, self, context or copy_context())
        self.schedule(when_ns, _run, handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(self._next_number(), loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
        eager_start: bool | None = None,
    ) -> asyncio.Task[T]:
        _refuse_as_completed(sys._getframe(1))
        if eager_start:
            raise ScenarioError("the simulation refuses eager_start: a task takes its first step when its turn comes")
        number = self._next_number()
        task = _Task(coro, number, loop=self, name=name or f"task-{number}", context=context)
        self._tasks.append(task)
        if len(self._tasks) >= self._sweep_at:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._sweep_at = 64 + 2 * len(self._tasks)
        return task

    def get_task_factory(self) -> None:
        """Return None: all tasks are the loop's own."""

    def set_task_factory(self, factory: object) -> None:
        """Refuse: all tasks are the loop's own."""
        raise ScenarioError(f"the simulation refuses the task factory {factory!r}: its own tasks hash alike everywhere")

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep an error that asyncio would only log: it ends the run, unless the run has already ended."""
        if not self._is_closed:
            self._problems.append(f"{context.get('message')} {context.get('exception')!r}")

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def get_exception_handler(self) -> None:
        """Return None: an exception ends the run."""

    def set_exception_handler(self, handler: object) -> None:
        """Refuse: an exception ends the run."""
        raise ScenarioError(f"the simulation refuses the exception handler {handler!r}: catch the exception instead")

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        """Do nothing: debug mode measures the wall clock."""


class _Soon(asyncio.Handle):
    """A callback that is ready to run."""

    __slots__ = ()
    _callback: Callable[..., object]  # Slots of a Handle since asyncio exists, without a type in its stubs.
    _context: Context


class _Later(asyncio.TimerHandle):
    """A callback that waits for its time."""

    __slots__ = ()
    _callback: Callable[..., object]
    _context: Context

    def cancel(self) -> None:
        asyncio.Handle.cancel(self)  # Bypasses TimerHandle.cancel, which would call a private method of the loop.


class _Task(asyncio.Task[T]):
    """A task that hashes to its number (3)."""

    def __init__(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        number: int,
        *,
        loop: VirtualLoop,
        name: str,
        context: Context | None,
    ) -> None:
        self._number = number  # First, as the constructor below already puts the task into a set.
        super().__init__(coro, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self._number


class _Future(asyncio.Future[T]):
    """A future that hashes to its number (3)."""

    def __init__(self, number: int, *, loop: VirtualLoop) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


def _run(handle: _Soon | _Later) -> None:
    """Call the callback, unless it was cancelled. Unlike `Handle._run` this lets its exceptions pass."""
    if not handle._cancelled:
        handle._context.run(handle._callback, *handle._args)
        # In Python 3.13 the traceback of a task's exception leads to this frame, and so to the handle. If that led back
        # to the task, only the garbage collector would free the task, and notice that nobody took up its exception.
        handle.cancel()


def _refuse_as_completed(frame: FrameType | None) -> None:
    """Raise ScenarioError if `asyncio.as_completed` creates the task.

    It creates tasks in the order of a set of coroutines, which differs from process to process. Given tasks it creates
    none, and its order is that of (3).
    """
    for _ in range(4):  # ensure_future, its inner half and the comprehension are in between.
        if frame is None:
            return
        if frame.f_code.co_qualname in _AS_COMPLETED and frame.f_globals.get("__name__") == "asyncio.tasks":
            raise ScenarioError("the simulation refuses as_completed over coroutines: use TaskGroup, or asyncio.wait")
        frame = frame.f_back
