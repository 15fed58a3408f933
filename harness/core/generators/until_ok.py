"""Generators that repeat operations until one succeeds.

They must know which completions belong to their own operations. A generator learns the index of its operation from the
first invocation by the process for which it planned: no other update comes before it (rule 2 of `generator`).
"""

import msgspec

from harness.core.generators.combinators import Answer, Event, planned
from harness.core.generators.generator import PENDING, Context, Generator, Planned
from harness.core.record import Invoke
from harness.core.seams import Invocation

FINAL_PAUSE_NS = 250_000_000


class Attempt(msgspec.Struct, frozen=True):
    """One attempt at an item: planned for a process; once invoked it has the operation's index."""

    process: int
    item: int = 0
    index: int | None = None


class UntilOk(msgspec.Struct, frozen=True):
    """Operations of `child` until one of them succeeds."""

    child: Generator
    open: tuple[Attempt, ...] = ()
    is_done: bool = False

    def op(self, context: Context) -> Answer:
        answer = None if self.is_done else self.child.op(context)
        if answer is None:
            return None
        opened = self.open
        if isinstance(answer[0], Planned):
            opened = (*opened, Attempt(context.processes[answer[0].thread]))
        return answer[0], UntilOk(answer[1], opened)

    def update(self, context: Context, event: Event) -> Generator:
        child = self.child.update(context, event)
        opened, ended = _followed(self.open, event)
        if child is self.child and opened is self.open:
            return self
        is_ok = ended is not None and not isinstance(event, Invoke) and event.outcome == "ok"
        return UntilOk(child, opened, self.is_done or is_ok)


class EachUntilOk(msgspec.Struct, frozen=True):
    """Each of these operations until it succeeds, `pause_ns` after each failure. It is for final operations.

    All are tried once before any is tried again, for as long as the interpreter lets them: until the cluster's settling
    bound is over. Cost: O(threads) for each answer.
    """

    invocations: tuple[Invocation, ...]
    pause_ns: int
    position: int = 0
    open: tuple[Attempt, ...] = ()
    again: tuple[tuple[int, Attempt], ...] = ()  # Failed attempts, each with its earliest new start; sorted.

    def op(self, context: Context) -> Answer:
        if self.position == len(self.invocations) and not self.again:
            return (PENDING, self) if self.open else None
        if not context.free:
            return PENDING, self
        process = context.processes[context.free[0]]
        if self.position < len(self.invocations):
            attempt = Attempt(process, self.position)
            after = self._with(position=self.position + 1, opened=(*self.open, attempt))
            return planned(context, self.invocations[attempt.item]), after
        not_before_ns, failed = self.again[0]
        attempt = Attempt(process, failed.item)
        after = self._with(opened=(*self.open, attempt), again=self.again[1:])
        time_ns = max(not_before_ns, context.time_ns)
        return planned(context, self.invocations[attempt.item], time_ns=time_ns), after

    def update(self, context: Context, event: Event) -> Generator:
        opened, ended = _followed(self.open, event)
        if opened is self.open:
            return self
        again = self.again
        if ended is not None and not isinstance(event, Invoke) and event.outcome != "ok":
            again = (*again, (context.time_ns + self.pause_ns, ended))
        return self._with(opened=opened, again=again)

    def _with(
        self,
        *,
        opened: tuple[Attempt, ...],
        again: tuple[tuple[int, Attempt], ...] | None = None,
        position: int | None = None,
    ) -> "EachUntilOk":
        return EachUntilOk(
            self.invocations,
            self.pause_ns,
            self.position if position is None else position,
            opened,
            self.again if again is None else again,
        )


def _followed(opened: tuple[Attempt, ...], event: Event) -> tuple[tuple[Attempt, ...], Attempt | None]:
    """The open attempts after the event, and the attempt that it ended.

    The same tuple object if the event concerns none of our attempts.
    """
    for place, each in enumerate(opened):
        if isinstance(event, Invoke):
            if each.index is None and each.process == event.process:
                invoked = Attempt(each.process, each.item, event.index)
                return (*opened[:place], invoked, *opened[place + 1 :]), None
        elif each.index == event.index:
            return (*opened[:place], *opened[place + 1 :]), each
    return opened, None
