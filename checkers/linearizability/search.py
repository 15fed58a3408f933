"""Search for an order of the operations on one register that explains all answers, within a limit of configurations.

Theory of operation. The order is built from its beginning. A configuration is the set of operations ordered so far, and
the state that they leave. The next operation may be any one that was invoked before the first answer among those not
ordered yet. The search is depth first, and turns back where nothing fits.
1. An operation that only reads, and can come next, comes next: whatever order exists, it can be put first there too.
2. Of several operations with the same effect, the one that is answered first goes first.
3. An unclear operation need not come at all. So it comes only where some operation that could follow it needs the
   state to which it leads. And a configuration is given up if an earlier one had the same answered operations and the
   same state, and used a subset of its unclear operations.
4. Unclear operations whose results no other operation needs are left out from the start.
5. The set of ordered operations is a number (all before it) and a bit mask (those after it), so its size depends on how
   many operations overlap, not on the length of the history.
6. For a text, future gets say more: `outlook` gives up configurations that they make impossible, and joins those that
   they cannot tell apart. This shows that there is no order, but not where it fails. `text_dead_end` then looks for
   the first answer that leaves no order; the search up to there considers only the gets before it.
A configuration with all operations that were answered before some moment, and no next operation, is a dead end. The
furthest ones explain the contradiction: up to there an order exists, and beyond there is none. Rules 3 and 4 hold if
each step states all its needs; if one has `more`, every unclear operation is tried everywhere.
Source: Wing and Gong, J. Parallel Distrib. Comput. 17, 1993; Lowe, "Testing for linearizability", 2017, sections 3, 4.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from checkers.linearizability.models import Model, OneText, State, Step
from checkers.linearizability.outlook import Change, Get, Operations, Outlook
from harness.core.columns import NEVER

TAIL_SHOWN: Final = 4
STATES_MAX: Final = 1000
_WIDE: Final = 1024  # This many bits of a mask take the memory of a configuration, and count as one.
_Tried = dict[tuple[int, int, State], tuple[int, ...]]


class Act(NamedTuple):
    """Operation `op` on one register, with the journal positions of its invocation and answer (NEVER: unclear)."""

    call: int
    end: int
    step: Step
    op: int

    @property
    def is_answered(self) -> bool:
        """True if the operation is known to have happened."""
        return self.end != NEVER


class DeadEnd(Struct, frozen=True):
    """The furthest point that any order reaches: none can place operation `blocked` before its answer.

    `states` are the final states of the orders that end there, at most STATES_MAX; `tail` is the end of one such order.
    """

    blocked: int
    states: tuple[State, ...]
    tail: tuple[int, ...]


class Answer(Struct, frozen=True):
    """The verdict of a search, the number of configurations visited, and the dead end if there is no order.

    The dead end of a text is not known yet: `text_dead_end` finds it.
    """

    verdict: Literal["linearizable", "not-linearizable", "undecided"]
    size: int
    dead_end: DeadEnd | None = None


def search(acts: Iterable[Act], model: Model, limit: int) -> Answer:
    """The answer, from at most `limit` configurations. Each takes some microseconds and about 300 bytes."""
    if isinstance(model, OneText):
        return replace(_Search(sorted(acts), model, outlook_until=NEVER).answer(limit), dead_end=None)
    return _Search(sorted(acts), model).answer(limit)


def text_dead_end(acts: Iterable[Act], model: OneText, limit: int, *, before: int = NEVER) -> DeadEnd | None:
    """The dead end of a text that has no order; None if its blocked operation is answered at `before` or later.

    It has no states if `limit` is too low to find them.
    """
    every = sorted(acts)
    answers = sorted((act.end, act.op) for act in every if act.end < before)

    def is_impossible(moment: int) -> bool:
        return _Search(every, model, outlook_until=moment).answer(limit, until=moment).verdict == "not-linearizable"

    if before != NEVER and not (answers and is_impossible(answers[-1][0])):
        return None
    end, op = answers[bisect_left(answers, True, hi=len(answers) - 1, key=lambda each: is_impossible(each[0]))]
    found = _Search(every, model, outlook_until=end - 1).answer(limit)
    dead_end = found.dead_end
    if dead_end is None or dead_end.blocked != op:
        return DeadEnd(op, (), ())
    if found.verdict == "undecided" and len(dead_end.states) < STATES_MAX:
        return replace(dead_end, states=())
    return dead_end


class _Frame(NamedTuple):
    """A configuration on the current path, the operations that led to it from its parent, and its untried choices."""

    base: int
    mask: int
    used: int
    state: State
    by: tuple[int, ...]
    untried: list[int]  # Taken from the end: places of answered operations, or -1 - group.


class _Group(NamedTuple):
    """Unclear operations with the same effect. Their bits in `used` begin at `shift`, in order of invocation."""

    step: Step
    calls: tuple[int, ...]
    ops: tuple[int, ...]
    shift: int

    def spent(self, used: int) -> int:
        """The number of operations of the group that are in `used`."""
        return (used >> self.shift & ((1 << len(self.calls)) - 1)).bit_count()


class _Furthest(Struct):
    """The dead ends found so far whose blocked operation is answered latest."""

    end: int = -1
    blocked: int = -1
    states: dict[State, None] = field(default_factory=dict)
    tail: tuple[int, ...] = ()

    def dead_end(self) -> DeadEnd:
        return DeadEnd(self.blocked, tuple(sorted(self.states, key=str)), self.tail)


class _Search:
    """A search over acts in order of invocation. For a text it considers the gets answered until `outlook_until`."""

    def __init__(self, every: Sequence[Act], model: Model, *, outlook_until: int | None = None) -> None:
        self._model = model
        self._live = [act for act in every if act.is_answered]
        self._calls = [act.call for act in self._live]
        self._ends = [act.end for act in self._live]
        self._steps = [act.step for act in self._live]
        self._is_read = [step.is_read for step in self._steps]
        self._is_plain = all(act.step.more is None for act in every)
        unclear = [act for act in every if not act.is_answered and not act.step.is_read]
        self._groups = _groups(needed(unclear, self._steps) if self._is_plain else unclear)
        self._leading: dict[str | None, list[int]] = {}
        for number, group in enumerate(self._groups):
            self._leading.setdefault(group.step.leads, []).append(number)
        self._tried: _Tried = {}
        self._furthest = _Furthest()
        self._stack: list[_Frame] = []
        self._outlook = None if outlook_until is None else Outlook(self._operations(), until=outlook_until)

    def answer(self, limit: int, *, until: int = NEVER) -> Answer:
        """The answer, from at most `limit` configurations, for all operations that were answered before `until`."""
        size = self._enter(0, 0, 0, self._model.initial, ())
        while self._stack:
            frame = self._stack[-1]
            if frame.base == len(self._live) or self._furthest.end > until:
                return Answer("linearizable", size)
            if not frame.untried:
                self._stack.pop()
                continue
            if size >= limit:
                return Answer("undecided", size, self._furthest.dead_end())
            size += self._take(frame, frame.untried.pop())
        return Answer("not-linearizable", size, self._furthest.dead_end())

    def _take(self, frame: _Frame, choice: int) -> int:
        """Order that operation next, if it fits there; returns its cost in configurations."""
        if choice >= 0:
            after = self._model.after(frame.state, self._steps[choice])
            base, mask = _with(frame.base, frame.mask, choice)
            used, index, number = frame.used, self._live[choice].op, choice
        else:
            group = self._groups[-1 - choice]
            spent = group.spent(frame.used)
            after = self._model.after(frame.state, group.step)
            base, mask, used = frame.base, frame.mask, frame.used | 1 << (group.shift + spent)
            index, number = group.ops[spent], -1 - group.shift - spent
        if after is None or (self._outlook is not None and not self._outlook.allows(number, after)):
            return 0
        return self._enter(base, mask, used, after, (index,))

    def _enter(self, base: int, mask: int, used: int, state: State, by: tuple[int, ...]) -> int:
        """Push that configuration, extended by all reads that fit (rule 1), unless it was tried. Returns its cost."""
        after = self._model.after
        while True:
            places = self._next_places(base, mask)
            fitting = [p for p in places if self._is_read[p] and after(state, self._steps[p]) is not None]
            if not fitting:
                break
            for place in fitting:
                base, mask = _with(base, mask, place)
            by += tuple([self._live[place].op for place in fitting])
        seen = state if self._outlook is None else self._outlook.seen(base, mask, used, state)
        if seen is None or not self._is_new((base, mask, seen), used):
            return 0
        frame = _Frame(base, mask, used, state, by, [])
        self._stack.append(frame)
        if places:
            frame.untried.extend(self._choices(places, used, state))
            self._note(places, state)
        return 1 + mask.bit_length() // _WIDE

    def _next_places(self, base: int, mask: int) -> list[int]:
        """The answered operations that may come next."""
        calls, ends = self._calls, self._ends
        width = mask.bit_length()
        holes = ~mask & ((1 << width) - 1)
        places: list[int] = []
        least = NEVER
        while holes:
            place = base + (holes & -holes).bit_length() - 1
            if calls[place] > least:
                return places
            places.append(place)
            least = min(least, ends[place])
            holes &= holes - 1
        for place in range(base + width, len(calls)):
            if calls[place] > least:
                break
            places.append(place)
            least = min(least, ends[place])
        return places

    def _choices(self, places: list[int], used: int, state: State) -> list[int]:
        """The operations to try from a configuration, by rule 2, the first one last. Unclear ones are tried last."""
        by_end = sorted(places, key=self._ends.__getitem__)
        each: dict[Step, int] = {}
        for place in by_end:
            each.setdefault(self._steps[place], place)
        if not self._groups:
            return list(each.values())[::-1]
        first_end = self._ends[by_end[0]]
        unclear = self._wanted_groups(each, state) if self._is_plain else range(len(self._groups))
        chosen = []
        for number in unclear:
            group = self._groups[number]
            spent = group.spent(used)
            if spent < len(group.calls) and group.calls[spent] < first_end:
                chosen.append(-1 - number)
        return [*chosen, *list(each.values())[::-1]]

    def _wanted_groups(self, steps: Iterable[Step], state: State) -> list[int]:
        """Groups of unclear operations that lead, directly or through others, to a state that a step needs."""
        wanted = list(dict.fromkeys(step.needs for step in steps if step.needs not in {None, state}))
        groups: dict[int, None] = {}
        for value in wanted:  # The loop appends to it.
            for number in self._leading.get(value, ()):
                groups[number] = None
                before = self._groups[number].step.needs
                if before not in {None, state} and before not in wanted:
                    wanted.append(before)
        return list(groups)

    def _is_new(self, key: tuple[int, int, State], used: int) -> bool:
        """True if rule 3 does not give the configuration up; it is then recorded as tried."""
        known = self._tried.get(key, ())
        if any([not each & ~used for each in known]):  # noqa: C419  A list is faster.
            return False
        self._tried[key] = (*known, used)
        return True

    def _operations(self) -> Operations:
        """All operations on a text, in the form that `Outlook` needs."""
        assert isinstance(self._model.initial, str)
        found = Operations(initial=self._model.initial, answered=len(self._live), gets=[], puts=[], appends=[])
        for place, act in enumerate(self._live):
            if act.step.needs is not None:
                found.gets.append(Get(act.end, place, act.step.needs))
        changes = [(act.call, act.step, place) for place, act in enumerate(self._live)]
        for group in self._groups:
            changes += [(call, group.step, -1 - bit) for bit, call in enumerate(group.calls, group.shift)]
        for call, step, number in changes:
            if step.leads is not None:
                found.puts.append(Change(call, step.leads, number))
            elif isinstance(step.more, str):
                found.appends.append(Change(call, step.more, number))
        return found

    def _note(self, places: list[int], state: State) -> None:
        """Record the configuration if it is among the furthest so far."""
        blocked = min(places, key=self._ends.__getitem__)
        end, furthest = self._ends[blocked], self._furthest
        if end > furthest.end:
            tail: tuple[int, ...] = ()
            for frame in reversed(self._stack):
                tail = (*frame.by, *tail)
                if len(tail) >= TAIL_SHOWN:
                    break
            self._furthest = _Furthest(end, self._live[blocked].op, {state: None}, tail[-TAIL_SHOWN:])
        elif end == furthest.end and len(furthest.states) < STATES_MAX:
            furthest.states[state] = None


def needed(unclear: Sequence[Act], steps: Iterable[Step]) -> list[Act]:
    """The unclear operations whose result is needed by one of the steps, or by another one that is returned."""
    kept = list(unclear)
    answered = {step.needs for step in steps if step.needs is not None}
    while True:
        wanted = answered | {act.step.needs for act in kept if act.step.needs is not None}
        still = [act for act in kept if act.step.leads in wanted]
        if len(still) == len(kept):
            return kept
        kept = still


def _groups(unclear: Sequence[Act]) -> list[_Group]:
    """Unclear operations grouped by their effect, in the order of each group's first one."""
    members: dict[Step, list[Act]] = {}
    for act in unclear:
        members.setdefault(act.step, []).append(act)
    shift, groups = 0, []
    for step, acts in members.items():
        groups.append(_Group(step, tuple(act.call for act in acts), tuple(act.op for act in acts), shift))
        shift += len(acts)
    return groups


def _with(base: int, mask: int, place: int) -> tuple[int, int]:
    """The set of ordered operations (number and mask, rule 5) with that place added."""
    mask |= 1 << (place - base)
    ones = (~mask & (mask + 1)).bit_length() - 1
    return base + ones, mask >> ones
