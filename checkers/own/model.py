"""A user's own model of an object, and the check that one order of its operations explains all answers.

In that order each operation takes effect between its invocation and its answer. One without an answer may take effect
at any time after its invocation, or never; a failed one never does. The search is that of `checkers.linearizability`:
here an operation is a step from a set of states to the set of states that may follow, each as a number, so that the
model is asked once for each pair.

Witnesses: answered operations that some state reached by the search refuses. In another state they show it.
"""

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Final, Protocol

import msgspec

from checkers.history.tables import seconds
from checkers.linearizability.check import LIMITS, Limits
from checkers.linearizability.models import State, Step
from checkers.linearizability.search import Act, Answer, search
from checkers.own.check import Check, Finding, Judgement
from checkers.own.history import History, Operation
from checkers.words.anomalies import NON_LINEARIZABLE
from harness.core.columns import NEVER
from harness.core.record import Json, MicroOp

MEANING: Final = "No order of an object's operations, each between its call and its answer, explains all."
_SHOWN: Final = 4  # The number of states, and of operations, that a sentence names.
_TRIED: Final = 32  # States in which an operation is tried to see whether it is a witness.


class Op(msgspec.Struct, frozen=True):
    """An operation as a model sees it. `value` is its answer, None if there is none (`is_answered`).

    `process` is None unless the model has `sees_process = True`: equal operations are one step for the search.
    """

    f: str
    asked: Json
    value: Json
    mops: tuple[MicroOp, ...]
    is_answered: bool
    process: int | None


class Model(Protocol):
    """The rules of an object. States are hashable values.

    A model may have `reads(op) -> bool`, true for operations that leave every state as it is, for a faster search.
    """

    def initial(self) -> Hashable:
        """The state before the first operation."""

    def step(self, state: Hashable, op: Op, /) -> Iterable[Hashable]:
        """The states that may follow; none if the operation is impossible. Without an answer any answer is possible."""

    def key(self, op: Op, /) -> Hashable | None:
        """The object that the operation is about, of many that do not depend on each other; None if there is one."""

    def show(self, op: Op, result: Json, /) -> str:
        """The operation and its result as sentences name it: "dequeue: 3"."""


def linearizable(model: Model, *, name: str = "model", of: Sequence[str] = (), limits: Limits = LIMITS) -> Check:
    """The check that objects with these rules are linearizable. Its anomaly is non-linearizable.

    `of` are the kinds of operations (f) that the model knows, if the history has others. An object that needs more
    than `limits` is unknown.
    """
    judge = partial(judged, model=model, of=tuple(of), limits=limits)
    return Check(name=name, anomalies={NON_LINEARIZABLE: MEANING}, judge=judge)


def judged(history: History, *, model: Model, of: tuple[str, ...], limits: Limits) -> Judgement:
    """The judgement of all objects of that history."""
    lives: dict[Hashable | None, _Object] = {}
    for operation in history.operations(*of):
        if operation.outcome != "fail":
            op = seen(operation, model)
            key = model.key(op)
            if key not in lives:
                lives[key] = _Object(model)
            lives[key].add(operation, op)
    answers = {key: life.answer(limits.first) for key, life in lives.items()}
    left = [key for key, answer in answers.items() if answer.verdict == "undecided"]
    share = limits.shared // max(1, len(left))
    if share > limits.first:
        answers |= {key: lives[key].answer(share) for key in left}
    bad = [key for key, answer in answers.items() if answer.verdict == "not-linearizable"]
    undecided = [key for key, answer in answers.items() if answer.verdict == "undecided"]
    witnesses = sum(max(life.witness_count(), key in bad) for key, life in lives.items() if key not in undecided)
    findings = [lives[key].finding(key, answers[key]) for key in bad]
    return Judgement(
        witnesses={NON_LINEARIZABLE: witnesses},
        findings=findings,
        unknown={NON_LINEARIZABLE: _reason(undecided, answers)} if undecided and not bad else {},
    )


def seen(operation: Operation, model: Model) -> Op:
    """The operation as that model sees it."""
    is_answered = operation.outcome == "ok"
    return Op(
        operation.f,
        operation.asked,
        operation.value if is_answered else None,
        operation.mops,
        is_answered,
        operation.process if getattr(model, "sees_process", False) else None,
    )


class _Reading(Step):
    """The step of an operation that leaves every state as it is."""

    __slots__ = ()
    is_read = True


class _Rules:
    """The model for the search. A state is the name of a set of the model's states, a step that of an operation."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.sets: dict[str, frozenset[Hashable]] = {}
        self._names: dict[frozenset[Hashable], str] = {}
        self._steps: dict[bytes, Step] = {}
        self._ops: dict[str | None, Op] = {}
        self._after: dict[tuple[State, object], str | None] = {}
        self._reads = getattr(model, "reads", None)
        self.initial: State = self._named(frozenset([model.initial()]))

    def step(self, op: Op) -> Step:
        """The step of an operation; equal operations have one."""
        form = msgspec.msgpack.encode(op)
        if form not in self._steps:
            name = str(len(self._steps))
            is_read = self._reads is not None and bool(self._reads(op))
            self._steps[form] = _Reading(more=name) if is_read else Step(more=name)
            self._ops[name] = op
        return self._steps[form]

    def after(self, state: State, step: Step) -> State | None:
        """The set of states after that step; None if it is impossible in each."""
        pair = state, step.more
        if pair in self._after:
            return self._after[pair]
        op = self._ops[str(step.more)]
        states = frozenset([each for before in self.sets[str(state)] for each in self.model.step(before, op)])
        self._after[pair] = self._named(states) if states else None
        return self._after[pair]

    def _named(self, states: frozenset[Hashable]) -> str:
        name = self._names.setdefault(states, str(len(self._names)))
        self.sets[name] = states
        return name


class _Object:
    """One object: its operations, in order."""

    def __init__(self, model: Model) -> None:
        self._rules = _Rules(model)
        self._acts: list[Act] = []
        self._operations: dict[int, Operation] = {}

    def add(self, operation: Operation, op: Op) -> None:
        """Add an operation. One without an answer that only reads observes nothing, and is left out."""
        step = self._rules.step(op)
        if op.is_answered or not step.is_read:
            self._acts.append(Act(operation.invoke_seq, _end(operation), step, operation.index))
            self._operations[operation.index] = operation

    def answer(self, limit: int) -> Answer:
        """The result of a search in at most `limit` configurations."""
        return search(self._acts, self._rules, limit)

    def witness_count(self) -> int:
        """The number of answered operations that some state of the search refuses."""
        rules, states = self._rules, list(islice(self._rules.sets, _TRIED))
        steps = {act.step for act in self._acts if act.is_answered}
        refused = {step for step in steps if any(rules.after(state, step) is None for state in states)}
        return sum(act.is_answered and act.step in refused for act in self._acts)

    def finding(self, key: Hashable | None, answer: Answer) -> Finding:
        """The operation that no order explains, with what was possible, and what was open."""
        end = answer.dead_end
        assert end is not None
        blocked = self._operations[end.blocked]
        beside = [each for each in self._operations.values() if each is not blocked and _overlap(each, blocked)]
        states = dict.fromkeys(str(state) for each in end.states for state in self._rules.sets[str(each)])
        where = "" if key is None else f"Key {key}: "
        parts = [
            f"{where}{self._named(blocked)} ({_when(blocked)}), and no order of the operations allows that",
            "With all in its place that was answered before, the state can only be " + _some(list(states)),
            "One order up to there ends with " + _some([self._named(self._operations[each]) for each in end.tail]),
            "Open at the same time: " + _some([self._named(each) for each in beside]),
        ]
        sentence = " ".join(f"{part}." for part in parts if not part.endswith(" "))
        ops = (blocked.index, *end.tail, *(each.index for each in beside[:_SHOWN]))
        return Finding(anomaly=NON_LINEARIZABLE, sentence=sentence, ops=tuple(dict.fromkeys(ops)))

    def _named(self, operation: Operation) -> str:
        op = seen(operation, self._rules.model)
        return f"T{operation.index} {self._rules.model.show(op, op.value)}"


def _overlap(one: Operation, other: Operation) -> bool:
    return _end(one) > other.invoke_seq and one.invoke_seq < _end(other)


def _end(operation: Operation) -> int:
    return operation.complete_seq if operation.outcome == "ok" and operation.complete_seq is not None else NEVER


def _when(operation: Operation) -> str:
    end = "" if operation.complete_ns is None else f" to {seconds(operation.complete_ns)}"
    return f"process {operation.process}, from {seconds(operation.invoke_ns)}{end}"


def _some(texts: Sequence[str]) -> str:
    more = [f"{len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
    return ", ".join([*texts[:_SHOWN], *more])


def _reason(left: Sequence[Hashable | None], answers: dict[Hashable | None, Answer]) -> str:
    name = "the object" if left[0] is None else f"object {left[0]}"
    more = f"; so it is with {len(left) - 1} more" if len(left) > 1 else ""
    return f"search-too-long: of {name} {answers[left[0]].size:,} configurations were searched{more}"
