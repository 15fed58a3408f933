"""Recorded operations as a load: each is due at its recorded time, on the thread that carried it out."""

import msgspec

from harness.core.generators.combinators import Answer, Event
from harness.core.generators.generator import PENDING, Context, Generator, Planned
from harness.core.generators.until_ok import FINAL_PAUSE_NS, EachUntilOk
from harness.core.record import Json, MicroOp
from harness.core.seams import Invocation


class Due(msgspec.Struct, frozen=True):
    """An operation of a script: due `at_ns` after the start of the load, on that thread."""

    at_ns: int
    thread: int
    f: str
    value: Json = None
    mops: tuple[MicroOp, ...] | None = None


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """Operations for a run in place of those that a workload would draw.

    `load` is in order of due times. Then follows `final`, each operation tried until it succeeds."""

    load: tuple[Due, ...]
    final: tuple[Invocation, ...]

    def generators(self) -> tuple[Generator, Generator]:
        """The load, and the final operations."""
        threads = 1 + max((due.thread for due in self.load), default=0)
        lanes = tuple(tuple(due for due in self.load if due.thread == thread) for thread in range(threads))
        return Scripted(lanes, (0,) * threads), EachUntilOk(self.final, FINAL_PAUSE_NS)


class Scripted(msgspec.Struct, frozen=True):
    """The operations of `lanes`, one lane per thread, from `places` on. An operation waits until its thread is free."""

    lanes: tuple[tuple[Due, ...], ...]
    places: tuple[int, ...]

    def op(self, context: Context) -> Answer:
        left = [thread for thread, lane in enumerate(self.lanes) if self.places[thread] < len(lane)]
        if not left:
            return None
        free = [thread for thread in left if thread in context.free]
        if not free:
            return PENDING, self
        thread = min(free, key=lambda each: (self.lanes[each][self.places[each]].at_ns, each))
        due = self.lanes[thread][self.places[thread]]
        chosen = Planned(time_ns=due.at_ns, thread=thread, f=due.f, value=due.value, mops=due.mops)
        places = (*self.places[:thread], self.places[thread] + 1, *self.places[thread + 1 :])
        return chosen, Scripted(self.lanes, places)

    def update(self, context: Context, event: Event) -> Generator:
        return self
