"""Generators: immutable values that say what to invoke next.

A generator answers `op(context)` with what to do and the generator after it, and takes note of what happened by
`update(context, event)`. Both are pure: the same value and the same context give the same answer, so a workload can be
run against a simulated interpreter, and a run repeated. Source: jepsen.generator, for the idea and the combinators'
names.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from harness.core.record import Complete, Invoke, Json, MicroOp


@dataclass(frozen=True, slots=True)
class Context:
    """What a generator may know. A *thread* is one of the run's clients, from 0; its *process* changes after info."""

    time_ns: int
    free: tuple[int, ...]  # The threads that wait for work, in the order in which to serve them.
    processes: tuple[int, ...]  # The process of each thread.


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An operation to invoke at `time_ns` (now, if that has passed) on `thread`."""

    time_ns: int
    thread: int
    f: str
    value: Json = None
    mops: tuple[MicroOp, ...] | None = None


class Pending:
    """Nothing to invoke yet: ask again when something completes, or at the next planned time."""


PENDING: Final = Pending()


class Generator(Protocol):
    """An immutable source of operations."""

    def op(self, context: Context) -> "tuple[Planned | Pending, Generator] | None":
        """What to invoke, and the generator after it. None: exhausted, for good."""

    def update(self, context: Context, event: Invoke | Complete) -> "Generator":
        """The generator that knows of this event."""
