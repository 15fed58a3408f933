"""Generators: immutable values that choose the next operation to invoke.

`op(context)` returns the next operation and the generator after it; the generator learns of events by `update(context,
event)`. Both are pure: the same value and the same context give the same answer, so a workload can be run against a
simulated interpreter, and a run repeated. Source: jepsen.generator, for the idea and the combinators' names.

The caller keeps to these rules:
1. `Pending`, and a plan for later, commit to nothing: the caller may drop the answer and its successor, and query the
   same value again once it knows more. It adopts the successor when it invokes.
2. `update` is called for each invocation and completion, of any generator. No update comes between an answer that the
   caller carries out and the update for its invocation.
3. Times are nanoseconds on the clock of `Context.time_ns`. A generator that answered None is exhausted, and stays so.
"""

from typing import Final, Protocol

from msgspec import Struct

from harness.core.record import Complete, Invoke, Json, MicroOp


class Context(Struct, frozen=True):
    """The facts on which a generator may base its choice: the time and the threads.

    A *thread* is one of the run's clients, from 0; its *process* changes after info.
    """

    time_ns: int
    free: tuple[int, ...]  # The threads that wait for an operation, in the order in which they get one.
    processes: tuple[int, ...]  # The process of each thread.
    threads: tuple[int, ...] | None = None  # The threads that this generator may use. None: all.

    @property
    def own(self) -> tuple[int, ...]:
        """The threads that this generator may use."""
        return tuple(range(len(self.processes))) if self.threads is None else self.threads

    def only(self, threads: tuple[int, ...]) -> "Context":
        """The same context for a generator that may use only these threads."""
        return Context(self.time_ns, tuple(each for each in self.free if each in threads), self.processes, threads)


class Planned(Struct, frozen=True, kw_only=True):
    """An operation to invoke at `time_ns` on `thread`; if that time has passed, it is invoked at once, as late."""

    time_ns: int
    thread: int
    f: str
    value: Json = None
    mops: tuple[MicroOp, ...] | None = None


class Pending:
    """Nothing to invoke yet: query again when an operation completes, or at the next planned time."""


PENDING: Final = Pending()


class Generator(Protocol):
    """An immutable source of operations."""

    def op(self, context: Context) -> "tuple[Planned | Pending, Generator] | None":
        """The next operation, or `Pending`, and the generator after it. None: exhausted, for good."""

    def update(self, context: Context, event: Invoke | Complete) -> "Generator":
        """The generator after this event."""
