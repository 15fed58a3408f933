"""Combinators, which build generators from generators, and the basic sources. All are immutable values: see
`harness.core.generators.generator`.

A combinator's first field is what it combines; fields with a default are its state. Source: jepsen.generator.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from harness.core.errors import ScenarioError
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator, Pending, Planned
from harness.core.record import Complete, Invoke
from harness.core.seams import Invocation

Event = Invoke | Complete
Answer = tuple[Planned | Pending, Generator] | None

FILTER_LIMIT = 10_000  # The number of operations that a filter may refuse in a row.


def planned(context: Context, invocation: Invocation, *, time_ns: int | None = None) -> Planned:
    """A plan of that invocation on the first free thread, now or at `time_ns`."""
    return Planned(
        time_ns=context.time_ns if time_ns is None else time_ns,
        thread=context.free[0],
        f=invocation.f,
        value=invocation.value,
        mops=invocation.mops,
    )


def all_planned(load: Generator) -> Iterator[Planned]:
    """The operations that the load plans, in order, if a thread is always free."""
    idle = Context(time_ns=0, free=(0,), processes=(0,))
    answer = load.op(idle)
    while answer is not None and isinstance(answer[0], Planned):
        yield answer[0]
        answer = answer[1].op(idle)


class Repeat(msgspec.Struct, frozen=True):
    """The same operation forever."""

    invocation: Invocation

    def op(self, context: Context) -> Answer:
        return (planned(context, self.invocation) if context.free else PENDING), self

    def update(self, context: Context, event: Event) -> Generator:
        return self


class Listed(msgspec.Struct, frozen=True):
    """Each of these operations once, in order."""

    invocations: tuple[Invocation, ...]
    position: int = 0

    def op(self, context: Context) -> Answer:
        if self.position == len(self.invocations):
            return None
        if not context.free:
            return PENDING, self
        return planned(context, self.invocations[self.position]), Listed(self.invocations, self.position + 1)

    def update(self, context: Context, event: Event) -> Generator:
        return self


class Counted(msgspec.Struct, frozen=True):
    """An endless sequence of operations: number n, from 0, is `invocation(n)`, a pure function."""

    invocation: Callable[[int], Invocation]
    number: int = 0

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        return planned(context, self.invocation(self.number)), Counted(self.invocation, self.number + 1)

    def update(self, context: Context, event: Event) -> Generator:
        return self


class Limit(msgspec.Struct, frozen=True):
    """The first `count` operations of the child."""

    child: Generator
    count: int

    def op(self, context: Context) -> Answer:
        answer = self.child.op(context) if self.count > 0 else None
        if answer is None:
            return None
        return answer[0], Limit(answer[1], self.count - isinstance(answer[0], Planned))

    def update(self, context: Context, event: Event) -> Generator:
        child = self.child.update(context, event)
        return self if child is self.child else Limit(child, self.count)


class TimeLimit(msgspec.Struct, frozen=True):
    """The child's operations that are due, and can begin, within `duration_ns` of the first answer.

    Later ones are dropped.
    """

    child: Generator
    duration_ns: int
    deadline_ns: int | None = None

    def op(self, context: Context) -> Answer:
        deadline_ns = context.time_ns + self.duration_ns if self.deadline_ns is None else self.deadline_ns
        answer = self.child.op(context) if context.time_ns < deadline_ns else None
        if answer is None or (isinstance(answer[0], Planned) and answer[0].time_ns >= deadline_ns):
            return None
        return answer[0], TimeLimit(answer[1], self.duration_ns, deadline_ns)

    def update(self, context: Context, event: Event) -> Generator:
        child = self.child.update(context, event)
        return self if child is self.child else TimeLimit(child, self.duration_ns, self.deadline_ns)


class Stagger(msgspec.Struct, frozen=True):
    """An open loop: the child's operations are due `mean_ns` apart on average, even if no thread is free then.

    The distances are uniform in [0, 2 mean_ns]. An operation that starts late keeps its due time.
    """

    child: Generator
    mean_ns: int
    dice: Dice
    due_ns: int | None = None

    def op(self, context: Context) -> Answer:
        due_ns = context.time_ns if self.due_ns is None else self.due_ns
        answer = self.child.op(context)
        if answer is None or isinstance(answer[0], Pending):
            return answer and (PENDING, Stagger(answer[1], self.mean_ns, self.dice, due_ns))
        # A child that plans for later has a reason; one that plans for now leaves the time to this combinator.
        chosen = answer[0]
        is_later = chosen.time_ns > context.time_ns
        gap_ns, dice = self.dice.below(2 * self.mean_ns + 1)
        after = Stagger(answer[1], self.mean_ns, dice, due_ns + gap_ns)
        return _moved(chosen, max(due_ns, chosen.time_ns) if is_later else due_ns), after

    def update(self, context: Context, event: Event) -> Generator:
        child = self.child.update(context, event)
        return self if child is self.child else Stagger(child, self.mean_ns, self.dice, self.due_ns)


class Delay(msgspec.Struct, frozen=True):
    """A closed loop: each operation of the child begins at least `delay_ns` after the previous one began."""

    child: Generator
    delay_ns: int
    next_ns: int = 0

    def op(self, context: Context) -> Answer:
        answer = self.child.op(context)
        if answer is None or isinstance(answer[0], Pending):
            return answer and (PENDING, Delay(answer[1], self.delay_ns, self.next_ns))
        time_ns = max(answer[0].time_ns, self.next_ns, context.time_ns)
        return _moved(answer[0], time_ns), Delay(answer[1], self.delay_ns, time_ns + self.delay_ns)

    def update(self, context: Context, event: Event) -> Generator:
        child = self.child.update(context, event)
        return self if child is self.child else Delay(child, self.delay_ns, self.next_ns)


class Mix(msgspec.Struct, frozen=True):
    """Operations of all children until all are exhausted; the child is drawn at random each time."""

    children: tuple[Generator, ...]
    dice: Dice

    def op(self, context: Context) -> Answer:
        children = self.children
        while children:
            turn, dice = self.dice.below(len(children))
            answer = children[turn].op(context)
            if answer is not None:
                # The same child is queried until it plans something, so that the mixture does not depend on the load.
                dice = dice if isinstance(answer[0], Planned) else self.dice
                return answer[0], Mix((*children[:turn], answer[1], *children[turn + 1 :]), dice)
            children = (*children[:turn], *children[turn + 1 :])
        return None

    def update(self, context: Context, event: Event) -> Generator:
        children = _updated(self.children, context, event)
        return self if children is self.children else Mix(children, self.dice)


class FlipFlop(msgspec.Struct, frozen=True):
    """Operations of `first` and `second` in alternation, until the next one has no more."""

    first: Generator
    second: Generator

    def op(self, context: Context) -> Answer:
        answer = self.first.op(context)
        if answer is None:
            return None
        if isinstance(answer[0], Pending):
            return PENDING, FlipFlop(answer[1], self.second)
        return answer[0], FlipFlop(self.second, answer[1])

    def update(self, context: Context, event: Event) -> Generator:
        pair = (self.first, self.second)
        after = _updated(pair, context, event)
        return self if after is pair else FlipFlop(after[0], after[1])


class Filter(msgspec.Struct, frozen=True):
    """The child's operations for which `predicate` holds. Raises ScenarioError when it refuses 10,000 in a row."""

    child: Generator
    predicate: Callable[[Planned], bool]

    def op(self, context: Context) -> Answer:
        child = self.child
        for _ in range(FILTER_LIMIT):
            answer = child.op(context)
            if answer is None or isinstance(answer[0], Pending) or self.predicate(answer[0]):
                return answer and (answer[0], Filter(answer[1], self.predicate))
            child = answer[1]
        raise ScenarioError(f"Filter: {FILTER_LIMIT} operations in a row were refused: the predicate is never met")

    def update(self, context: Context, event: Event) -> Generator:
        child = self.child.update(context, event)
        return self if child is self.child else Filter(child, self.predicate)


class Phases(msgspec.Struct, frozen=True):
    """All operations of one child after the other; each child begins when all threads are free."""

    children: tuple[Generator, ...]
    is_started: bool = False

    def op(self, context: Context) -> Answer:
        children, is_started = self.children, self.is_started
        while children:
            if not is_started and len(context.free) < len(context.own):
                return PENDING, Phases(children)
            answer = children[0].op(context)
            if answer is not None:
                return answer[0], Phases((answer[1], *children[1:]), is_started=True)
            children, is_started = children[1:], False
        return None

    def update(self, context: Context, event: Event) -> Generator:
        if not self.children:
            return self
        child = self.children[0].update(context, event)
        return self if child is self.children[0] else Phases((child, *self.children[1:]), self.is_started)


class EachThread(msgspec.Struct, frozen=True):
    """A copy of `child` for each thread. Each copy uses only its thread."""

    child: Generator
    copies: tuple[Generator, ...] = ()

    def op(self, context: Context) -> Answer:
        own = context.own
        copies = self.copies or (self.child,) * len(own)
        answers = [copy.op(context.only((thread,))) for copy, thread in zip(copies, own, strict=True)]
        chosen = _soonest(answers, context)
        if chosen is None:
            return None if all(answer is None for answer in answers) else (PENDING, EachThread(self.child, copies))
        turn, plan, after = chosen
        return plan, EachThread(self.child, (*copies[:turn], after, *copies[turn + 1 :]))

    def update(self, context: Context, event: Event) -> Generator:
        copies = _updated(self.copies, context, event)
        return self if copies is self.copies else EachThread(self.child, copies)


class Reserve(msgspec.Struct, frozen=True):
    """Operations of all children, each on threads of its own.

    The first counts[0] threads are for the first child, the next counts[1] for the second, and so on; all others are
    for the last child. There is one more child than counts.
    """

    children: tuple[Generator, ...]
    counts: tuple[int, ...]

    def op(self, context: Context) -> Answer:
        answers = [
            child.op(context.only(threads)) if threads else None
            for child, threads in zip(self.children, self._shares(context.own), strict=True)
        ]
        chosen = _soonest(answers, context)
        if chosen is None:
            return None if all(answer is None for answer in answers) else (PENDING, self)
        turn, plan, after = chosen
        return plan, Reserve((*self.children[:turn], after, *self.children[turn + 1 :]), self.counts)

    def update(self, context: Context, event: Event) -> Generator:
        children = _updated(self.children, context, event)
        return self if children is self.children else Reserve(children, self.counts)

    def _shares(self, own: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
        start = 0
        for count in self.counts:
            yield own[start : start + count]
            start += count
        yield own[start:]


def _moved(plan: Planned, time_ns: int) -> Planned:
    """The same plan at another time."""
    return Planned(time_ns=time_ns, thread=plan.thread, f=plan.f, value=plan.value, mops=plan.mops)


def _updated(children: tuple[Generator, ...], context: Context, event: Event) -> tuple[Generator, ...]:
    """The children after the event; the same tuple object if none of them changed."""
    after = tuple([child.update(context, event) for child in children])
    return children if all(a is b for a, b in zip(children, after, strict=True)) else after


def _soonest(answers: list[Answer], context: Context) -> tuple[int, Planned, Generator] | None:
    """The number of the child with the earliest plan (ties: by thread order), that plan, and the child's successor."""
    plans = [
        (turn, answer[0], answer[1])
        for turn, answer in enumerate(answers)
        if answer is not None and isinstance(answer[0], Planned)
    ]
    return min(plans, key=lambda each: (each[1].time_ns, context.free.index(each[1].thread)), default=None)
