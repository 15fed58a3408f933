"""Explanation of a register that is not linearizable: the answer, the possible states, and the open operations."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from checkers.history.tables import MS, seconds
from checkers.linearizability.deeds import RegisterHistory, RegisterOp, registers_of, written
from checkers.linearizability.models import State
from checkers.linearizability.search import Act, DeadEnd
from harness.core.columns import FAIL, NEVER

_SHOWN: Final = 4  # The number of states, and of operations, that are named; the rest is counted.
_LENGTH: Final = 60  # The number of characters of a value; of a longer one only the end is shown.


class Problem(Struct, frozen=True, kw_only=True, order=True):
    """A register whose operations have no order: `blocked`, answered at the position `end`, fits nowhere before that.

    `states` are those that were possible then, if known. `tail` is the end of an order of everything answered before.
    `beside` are the operations that overlap the blocked one. `sources` tried to write the state that it needs.
    """

    end: int
    key: str | None
    registers: tuple[str, ...]
    blocked: RegisterOp
    states: tuple[State, ...]
    tail: tuple[RegisterOp, ...]
    beside: tuple[RegisterOp, ...]
    sources: tuple[RegisterOp, ...]
    needs: str | None


def problem_of(life: RegisterHistory, acts: Sequence[Act], dead_end: DeadEnd) -> Problem:
    """The problem of a register, at the dead end of its search."""
    deeds = {deed.op: deed for deed in life.deeds}
    blocked = deeds[dead_end.blocked]
    needs = next(act.step.needs for act in acts if act.op == blocked.op)
    others = [deed for deed in life.deeds if deed is not blocked and deed.outcome != FAIL and not _is_idle(deed)]
    beside = [deed for deed in others if deed.call < blocked.end and deed.end > blocked.call]
    return Problem(
        end=blocked.end,
        key=life.key,
        registers=tuple(registers_of(life)),
        blocked=blocked,
        states=_possible(acts, dead_end, blocked, needs),
        tail=tuple(deeds[index] for index in dead_end.tail),
        # Those that have been unclear for long come last.
        beside=tuple(sorted(beside, key=lambda deed: (deed.end == NEVER, -deed.call))),
        sources=tuple(d for d in life.deeds if d.call < blocked.end and _claimed(blocked) in written(d)),
        needs=needs,
    )


def sentence(problem: Problem) -> str:
    """The explanation as a paragraph."""
    where = "" if problem.key is None else f"Key {_cut(problem.key)}: "
    parts = [f"{where}{_with_times(problem.blocked)}, and no order of the operations allows that", _states(problem)]
    if problem.tail:
        parts.append(f"One order up to there ends with {_listed(map(_described, problem.tail[-_SHOWN:]))}")
    parts.append(_sources(problem))
    if problem.beside:
        parts.append(
            f"Open at the same time: {_listed(map(_with_times, problem.beside[:_SHOWN]), len(problem.beside))}"
        )
    return " ".join(f"{part}." for part in parts if part)


def _possible(acts: Sequence[Act], dead_end: DeadEnd, blocked: RegisterOp, needs: str | None) -> tuple[State, ...]:
    """The states at the dead end, and those to which unclear operations may have led from there."""
    states = list(dead_end.states)
    unclear = [act.step for act in acts if act.end == NEVER and act.call < blocked.end and act.step.more is None]
    for state in states:  # The loop appends to it.
        for step in unclear:
            if step.needs in {None, state} and step.leads is not None and step.leads not in {needs, *states}:
                states.append(step.leads)
    return tuple(sorted(states, key=str))


def _is_idle(deed: RegisterOp) -> bool:
    """True for an unanswered read: it observes nothing and changes nothing."""
    return deed.is_read and deed.end == NEVER


def _claimed(deed: RegisterOp) -> str | None:
    """The value, as JSON, that the operation says the register held; None if it says nothing."""
    match deed.f:
        case "read" | "get":
            return deed.result
        case "cas":
            return deed.argument[1 : -len(written(deed)[0]) - 2]  # [old,new]
        case _:
            return None


def _states(problem: Problem) -> str:
    if not problem.states:
        return ""
    shown = [_state(state, problem.registers) for state in problem.states[:_SHOWN]]
    what = _listed(shown, len(problem.states), "or")
    return f"With all in its place that was answered before, the state can only be {what}"


def _state(state: State, registers: Sequence[str]) -> str:
    if isinstance(state, str):
        return _cut(state) or "the empty text"
    return ", ".join(f"{name} = {_cut(value)}" for name, value in zip(registers, state, strict=True))


def _sources(problem: Problem) -> str:
    value = _claimed(problem.blocked)
    if value is None:
        return ""
    if not problem.sources:
        return f"No operation had tried to write {_cut(value)}" if problem.blocked.f != "get" else ""
    if all(deed.outcome == FAIL for deed in problem.sources):
        return f"Only operations that certainly failed had tried to write {_cut(value)}: T{problem.sources[0].op}"
    return ""


def _with_times(deed: RegisterOp) -> str:
    """An operation with its process and times. A history without times has small numbers instead; these are hidden."""
    times = ""
    if deed.call_ns >= MS:
        times = f", from {seconds(deed.call_ns)}" + (f" to {seconds(deed.end_ns)}" if deed.end_ns != NEVER else "")
    unclear = ", unclear" if deed.end == NEVER else ""
    return f"{_described(deed)} (process {deed.process}{times}{unclear})"


def _described(deed: RegisterOp) -> str:
    if deed.accesses:
        return f"T{deed.op} " + ", ".join(f"{f} {key} {_cut(value)}" for f, key, value in deed.accesses)
    value = deed.result if deed.is_read else deed.argument
    return f"T{deed.op} {deed.f}" + (f" {_cut(value)}" if value != "null" or deed.is_read else "")


def _cut(text: str) -> str:
    return text if len(text) <= _LENGTH else f"...{text[-_LENGTH:]}"


def _listed(shown: Iterable[str], count: int = 0, conjunction: str = "and") -> str:
    """The texts joined by commas and `conjunction`. If `count` is greater than their number, the rest is counted."""
    texts = list(shown)
    if count > len(texts):
        texts.append(f"{count - len(texts)} more")
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {conjunction} {texts[-1]}"
