"""Linearizability of each register: one order of its operations must explain all answers.

In that order each operation takes effect between its invocation and its answer. An unclear operation may take effect at
any time after its invocation, or never; a failed one never does.

The steps: `deeds` (each chunk by itself) -> shuffle by key -> for each register the test by intervals if each value is
written once, else a search. A register that a short search leaves undecided is searched again; all such registers share
the budget of configurations of a history. A register that is still undecided then is unknown, with the size of its
search.

A register may have held something before the history began. If its initial value is not declared, none is assumed: a
history that is linearizable only from a value which no operation wrote is unknown.

Witnesses: ok operations that depend on the state of the register (reads, a cas, an acquire), of registers that were
decided, if another operation could have changed it before their answer.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from checkers.engine.protocol import Check, Context
from checkers.history.registers import Register
from checkers.history.transactions import chunks
from checkers.history.troubles import Trouble, judgement
from checkers.linearizability.deeds import (
    Form,
    RegisterHistory,
    acts_of,
    form_of,
    gathered,
    lives_by_key,
    registers_of,
    written,
)
from checkers.linearizability.intervals import first_misfit, is_linearizable
from checkers.linearizability.models import Access, ManyRegisters, Model, OneRegister, OneText, State, model_of
from checkers.linearizability.search import Act, Answer, DeadEnd, search, text_dead_end
from checkers.linearizability.sentences import Problem, problem_of, sentence
from checkers.words.anomalies import NON_LINEARIZABLE, Anomaly
from checkers.words.checks import REGISTERS
from harness.core.columns import NEVER
from harness.core.record import Json
from harness.core.verdict import Judgement

ANOMALIES: Final = {
    NON_LINEARIZABLE: Anomaly(
        meaning="No order of a register's operations, each between its call and its answer, explains all.",
        title="Not linearizable",
    ),
}
FIRST_LIMIT: Final = 20_000  # Configurations for each register at first,
SHARED_LIMIT: Final = 1_000_000  # and for all those together that need more.
STARTS_MAX: Final = 8  # The number of undeclared initial values that are tried.
OPS_SHOWN: Final = 10  # Of the operations that overlap the blocked one.


class Limits(Struct, frozen=True):
    """Limits of configurations: for each register at first, then for all undecided registers together."""

    first: int = FIRST_LIMIT
    shared: int = SHARED_LIMIT


class Open(Struct, frozen=True, kw_only=True):
    """A register that was not decided. `start`: an undeclared initial value from which it would be linearizable."""

    key: str | None
    operations: int
    size: int
    start: str | None = None


class Tally(Struct, frozen=True, kw_only=True):
    """The results of some registers: `size` is the largest search of one, `problem` the earliest of all."""

    decided: int
    operations: int
    witnesses: int
    size: int
    bad: int
    problem: Problem | None
    open: tuple[Open, ...]


class _Bad(NamedTuple):
    """A register that is not linearizable from any of these initial values; `tries` are their models and searches."""

    life: RegisterHistory
    acts: list[Act]
    tries: list[tuple[Model, Answer]]

    @property
    def size(self) -> int:
        """The size of the first search."""
        return self.tries[0][1].size


LIMITS: Final = Limits()


def check(history: Path, context: Context, limits: Limits = LIMITS) -> Judgement:
    """The judgement of the registers of that history.

    Raises HistoryError if the history is damaged, or if a value is not one that an operation on registers can have.
    """
    engine, register = context.engine, context.register
    form = form_of(history, register)
    if form is None:
        return Judgement(checker=REGISTERS, findings=(), witnesses={NON_LINEARIZABLE: 0})
    partitions = engine.parallelism
    route = partial(lives_by_key, form=form, partitions=partitions)
    lives = engine.over(chunks(history)).shuffle(route, gathered, partitions=partitions).keep()
    first = lives.map(partial(judged, form=form, register=register, limit=limits.first)).collect()
    left = [each.key for tally in first for each in tally.open if each.start is None]
    share = limits.shared // max(1, len(left))
    if not left or share <= limits.first:
        return _judgement(first, form, register)
    again = partial(judged, form=form, register=register, limit=share, only=frozenset(left))
    return _judgement([*_closed(first), *lives.map(again).collect()], form, register)


def judged(
    lives: Sequence[RegisterHistory],
    *,
    form: Form,
    register: Register,
    limit: int,
    only: frozenset[str | None] | None = None,
) -> Tally:
    """The results of those registers, or of those with keys in `only`, in at most `limit` configurations each."""
    bad: list[_Bad] = []
    left: list[Open] = []
    decided = operations = witnesses = size = 0
    for life in lives:
        if only is not None and life.key not in only:
            continue
        acts = acts_of(life, register)
        model = _plain(model_of(register, form.model, count=len(registers_of(life))), acts)
        answer = _answer(acts, model, limit)
        size = max(size, answer.size)
        start, is_decided = None, answer.verdict != "undecided"
        tries = [(model, answer)]
        if answer.verdict == "not-linearizable" and not register.is_initial_known:
            starts = _starts(life, acts, form, model)
            tries += [(other, _answer(acts, other, limit)) for _, other in starts[:STARTS_MAX]]
            start, is_decided = _start(starts, [each.verdict for _, each in tries[1:]])
        if not is_decided:
            left.append(Open(key=life.key, operations=len(acts), size=answer.size, start=start))
            continue
        decided += 1
        operations += len(acts)
        witnesses += max(witness_count(acts), answer.verdict == "not-linearizable")
        if answer.verdict == "not-linearizable":
            bad.append(_Bad(life, acts, tries))
    return Tally(
        decided=decided,
        operations=operations,
        witnesses=witnesses,
        size=size,
        bad=len(bad),
        problem=_earliest(bad, limit),
        open=tuple(left),
    )


def _earliest(bad: Iterable[_Bad], limit: int) -> Problem | None:
    """The problem of the register that ceases to be linearizable first."""
    first: Problem | None = None
    # Short refutations first: after them, most of the long ones need not be explained.
    for each in sorted(bad, key=lambda each: each.size):
        dead_end = _furthest(each, limit, before=NEVER if first is None else first.end)
        if dead_end is not None:
            found = problem_of(each.life, each.acts, dead_end)
            first = found if first is None else min(first, found)
    return first


def _furthest(bad: _Bad, limit: int, *, before: int) -> DeadEnd | None:
    """The dead end at the operation that no initial value explains; None if it is answered at `before` or later."""
    end_of = {act.op: act.end for act in bad.acts}
    furthest: DeadEnd | None = None
    for model, answer in bad.tries:
        dead_end = answer.dead_end
        if isinstance(model, OneText):
            dead_end = text_dead_end(bad.acts, model, limit, before=before)
        if dead_end is None:
            return None
        if furthest is None or end_of[dead_end.blocked] > end_of[furthest.blocked]:
            furthest = dead_end
    return furthest


def witness_count(acts: Sequence[Act]) -> int:
    """The number of operations that depend on a state that others could have changed before their answer."""
    calls = sorted(act.call for act in acts if not act.step.is_read)
    count = 0
    for act in acts:
        others = bisect_left(calls, act.end) - (not act.step.is_read)
        count += act.is_answered and act.step.depends and others > 0
    return count


def _answer(acts: Sequence[Act], model: Model, limit: int) -> Answer:
    """Whether one life of a register is linearizable, and where the search ended if not.

    For a single register the interval test runs first. If it says yes, there is no search. If it says no, and the
    search is undecided, the answer is no.
    """
    fits = is_linearizable(acts, str(model.initial)) if isinstance(model, OneRegister) else None
    if fits:
        return Answer("linearizable", 0)
    found = search(acts, model, limit)
    if found.verdict == "undecided" and fits is False:
        return Answer("not-linearizable", found.size, DeadEnd(first_misfit(acts, str(model.initial)), (), ()))
    return found


def _plain(model: Model, acts: Iterable[Act]) -> Model:
    """The same model; but a text to which no operation appends is a register, which the interval test may decide.

    The search for a text took 58 CPU seconds for 10,000 puts and gets of one key.
    """
    if isinstance(model, OneText) and all(act.step.more is None for act in acts):
        return OneRegister(str(model.initial))
    return model


def _start(starts: Sequence[tuple[str, Model]], verdicts: Sequence[str]) -> tuple[str | None, bool]:
    """The first of `starts` from which the register is linearizable, by its name; None if there is none.

    Second, True if the register is certainly not linearizable from any of them. `verdicts` are those of the first ones.
    """
    for (name, _), verdict in zip(starts, verdicts, strict=False):
        if verdict == "linearizable":
            return name, False
    return None, len(starts) <= STARTS_MAX and all(verdict == "not-linearizable" for verdict in verdicts)


def _starts(life: RegisterHistory, acts: Sequence[Act], form: Form, model: Model) -> list[tuple[str, Model]]:
    """The undeclared initial values that come into question, each with its name; of a text only `_first_texts`.

    Such a value was read by an operation that may have come before every write: it began before any of them had ended.
    A failed operation may have tried to write what was there anyway.
    """
    if form.model == "key-value":
        return [(text, _plain(OneText(text), acts)) for text in _first_texts(acts)]
    if form.model in {"register", "cas-register"}:
        return [(value, OneRegister(value)) for value in _first_values(life, acts)]
    return _starts_of_many(life, acts, model.initial) if form.model == "multi-register" else []


def _first_values(life: RegisterHistory, acts: Sequence[Act]) -> Iterable[str]:
    """The values with which one register may have begun: first those that no operation had tried to write by then."""
    tried = dict[str, int]()
    for deed in life.deeds:
        for value in written(deed):
            tried.setdefault(value, deed.call)
    end = min((act.end for act in acts if act.step.leads is not None), default=NEVER)
    seen = [(act.end, act.step.needs) for act in acts if act.step.needs is not None and act.call < end]
    return dict.fromkeys(value for _, _, value in sorted((tried.get(v, e) < e, e, v) for e, v in seen))


def _starts_of_many(life: RegisterHistory, acts: Sequence[Act], initial: State) -> list[tuple[str, Model]]:
    """The initial states of several registers that come into question, one more than are tried if there are more."""
    keys = registers_of(life)
    values: list[list[str]] = []
    for place in range(len(keys)):
        mine = [(act, access) for act in acts for access in act.step.more or () if isinstance(access, Access)]
        mine = [(act, access) for act, access in mine if access.place == place]
        end = min((act.end for act, access in mine if access.is_write), default=NEVER)
        seen = [access.value for act, access in sorted(mine) if not access.is_write and act.call < end]
        values.append(list(dict.fromkeys((*seen, initial[place]))))
    result: list[tuple[str, Model]] = []
    for state in islice(product(*values), STARTS_MAX + 2):
        if state != initial:
            held = zip(keys, state, initial, strict=True)
            name = " and ".join(f"{value} in {key}" for key, value, first in held if value != first)
            result.append((name, ManyRegisters(state)))
    return result


def _first_texts(acts: Sequence[Act]) -> list[str]:
    """Texts that may have been there at first: those of gets that can precede each put, without appends at the end."""
    put_end = min((act.end for act in acts if act.step.leads is not None), default=NEVER)
    seen = sorted((act.end, act.step.needs) for act in acts if act.step.needs is not None and act.call < put_end)
    appended = dict.fromkeys(act.step.more for act in acts if isinstance(act.step.more, str))
    texts = list(dict.fromkeys(text for _, text in seen))[:STARTS_MAX]
    for text in texts:  # The loop appends to it.
        shorter = dict.fromkeys(text.removesuffix(each) for each in appended)
        texts += [each for each in shorter if each not in texts][: STARTS_MAX - len(texts)]
    return texts


def _closed(tallies: Sequence[Tally]) -> list[Tally]:
    """The tallies without the undecided registers, which are searched again."""
    kept = [tuple(each for each in tally.open if each.start is not None) for tally in tallies]
    return [replace(tally, open=left) for tally, left in zip(tallies, kept, strict=True)]


def _judgement(tallies: Sequence[Tally], form: Form, register: Register) -> Judgement:
    problems = [tally.problem for tally in tallies if tally.problem is not None]
    left = sorted((each for tally in tallies for each in tally.open), key=lambda each: (-each.size, str(each.key)))
    troubles = () if not problems else (_trouble(min(problems), sum(tally.bad for tally in tallies)),)
    unknown = {NON_LINEARIZABLE: _reason(left)} if left else {}
    facts: dict[str, Json] = {
        "model": form.model,
        "registers": sum(tally.decided for tally in tallies) + len(left),
        "undecided": len(left),
        "violated": sum(tally.bad for tally in tallies),
        "operations": sum(tally.operations for tally in tallies),
        "most_configurations": max((tally.size for tally in tallies), default=0),
        "initial": register.initial if register.is_initial_known else None,
        "is_initial_known": register.is_initial_known,
        "nil": register.nil,
    }
    witnesses = {NON_LINEARIZABLE: sum(tally.witnesses for tally in tallies)}
    return judgement(REGISTERS, ANOMALIES, troubles, witnesses, scope=(), unknown=unknown, facts=facts)


def _trouble(problem: Problem, count: int) -> Trouble:
    ops = tuple(deed.op for deed in (problem.blocked, *problem.tail, *problem.beside[:OPS_SHOWN]))
    return Trouble(NON_LINEARIZABLE, sentence(problem), (problem.key, problem.blocked.op), ops, count=count)


def _reason(left: Sequence[Open]) -> str:
    """The reason for "unknown", with the register that took the most configurations as its example."""
    first = left[0]
    name = "the register" if first.key is None else f"register {first.key}"
    more = f"; so it is with {len(left) - 1} more" if len(left) > 1 else ""
    if first.start is not None:
        return (
            f"initial-value: {name} is linearizable only if it held {first.start} before the history began, which "
            "nobody says; say what registers hold at first with --initial, or in a promise file, under [register]"
            f"{more}"
        )
    return (
        f"search-too-long: {name} has {first.operations:,} operations, of which {first.size:,} configurations were "
        f"searched{more}"
    )


CHECKS: Final = (Check(name=REGISTERS, anomalies=ANOMALIES, judge=check),)
