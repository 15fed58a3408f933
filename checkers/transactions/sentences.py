"""Sentences of findings: the operations and reads that show an engineer the contradiction."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np

from checkers.axioms.execution import INITIAL
from checkers.axioms.orders.cycles import ChosenStep, Contradiction
from checkers.axioms.weak import AXIOM, AxiomStep, Breach
from checkers.engine.datasets import Dataset
from checkers.graph.classes import Cycle
from checkers.graph.edges import PROCESS, REALTIME, RW, WR, WW
from checkers.graph.reasons import Reason, Witness, around, cycle_finding, relation_of, shown, told, why
from checkers.graph.sightings import NONE, Example, Sighting
from checkers.history.names import Names, listed
from checkers.history.registers import Initial, Order
from checkers.history.transactions import Operation, Source
from checkers.transactions.evidence import Evidence, evidence, longest_reads
from checkers.transactions.list_sentences import ListOrder, ListSentences, Neighbours
from checkers.transactions.registers.sentences import (
    RegisterSentences,
    Seen,
    Version,
    is_of_register,
    seen_versions,
    versions_of,
)
from checkers.words.checks import TRANSACTIONS
from harness.core.verdict import Finding, Step, fingerprint

_PAIR: Final = 2  # Operations in the shortest cycle.


def explainer(
    chunks: Dataset[Source],
    *,
    ops: Iterable[int],
    versions: Iterable[Version],
    name: Names,
    order: Order,
    initial: Initial,
    has_real_time: bool = False,
) -> "Explainer":
    """An explainer for findings that mention those operations, and those versions of registers.

    `has_real_time`: the promises order operations by time, so a sentence may rest on it.
    """
    operations = chunks.map(partial(evidence, op=np.array(sorted(ops), np.int64), initial=initial)).collect()
    found = [operation for part in operations for operation in part.operations]
    keys = {mop.key for operation in found for mop in operation.mops}
    longest = chunks.map(partial(longest_reads, key=np.array(sorted(keys), np.int64))).collect()
    mentioned = {version for operation in found for version in versions_of(operation)} | set(versions)
    if not mentioned:
        return Explainer([*operations, *longest], name, Seen((), order), has_real_time=has_real_time)
    key, value = np.array(sorted(mentioned), np.int64).T
    look = partial(seen_versions, key=key, value=value, initial=initial)
    seen = Seen([row for part in chunks.map(look).collect() for row in part], order)
    return Explainer([*operations, *longest], name, seen, has_real_time=has_real_time)


class Explainer:
    """A maker of findings, in sentences, from sightings, cycles and broken axioms."""

    def __init__(self, parts: Iterable[Evidence], name: Names, seen: Seen, *, has_real_time: bool = False) -> None:
        self._name = name
        self._has_real_time = has_real_time
        parts = list(parts)
        self._operations = {operation.index: operation for part in parts for operation in part.operations}
        order = ListOrder(parts, name)
        self._registers, self._lists = RegisterSentences(seen, name), ListSentences(order, self._operations, name)
        distant = Neighbours(order, name, is_next=False)
        self._witnesses: tuple[Witness[Operation], ...] = (_Time(), Neighbours(order, name), self._registers, distant)

    def cycle(self, anomaly: str, count: int, cycle: Cycle) -> Finding:
        """The finding of a cycle, with the reason of every step."""
        pairs = zip(cycle.ops, (*cycle.ops[1:], cycle.ops[0]), cycle.kinds, strict=True)
        explained = [(source, target, *self.step(source, target, kind)) for source, target, kind in pairs]
        steps = [step for *_, step, _ in explained]
        sentence = told(steps, f"So {around(cycle.ops)}: no order allows that.")
        is_timed = any(step.relation == "realtime" for step in steps)
        if is_timed or (self._has_real_time and len(steps) > _PAIR):
            sentence = next(_by_time([(one, two, step) for one, two, step, _ in explained], self._operations), sentence)
        ops = _with(cycle.ops, (op for *_, why in explained for op in why.ops))
        facts = (cycle.ops, cycle.kinds)
        return cycle_finding(anomaly, TRANSACTIONS, steps, sentence, facts=facts, ops=ops, count=count)

    def broken(self, anomaly: str, evidence: Breach | Contradiction) -> Finding:
        """The finding of a broken axiom, or of a model for which no order of versions exists."""
        if isinstance(evidence, Breach):
            return self._breach(anomaly, evidence)
        return self._unordered(anomaly, evidence)

    def _breach(self, anomaly: str, breach: Breach) -> Finding:
        """The finding of a broken axiom, with the reason of every step."""
        steps = [part for step in breach.cycle for part in self._axiom_steps(step)]
        facts = [(step.source, step.target, step.kind, step.reader, step.key) for step in breach.cycle]
        sentence = told(steps, "No order of commits allows that.")
        return cycle_finding(anomaly, TRANSACTIONS, steps, sentence, facts=facts, ops=breach.ops, count=breach.count)

    def _axiom_steps(self, step: AxiomStep) -> Iterator[Step]:
        """The steps that a finding shows for this one.

        Steps from the initial version, which comes first, are left out.
        """
        source, reader, target = f"T{step.source}", f"T{step.reader}", f"T{step.target}"
        if step.source == INITIAL:
            return
        if step.kind != AXIOM:
            # If no committed transaction wrote some of the key's versions, its reads alone may not give the reason.
            plain = f"{target} read what {source} wrote" if step.kind == WR else f"{target} wrote after {source} did"
            yield self.step(step.source, step.target, step.kind, plain)[0]
            return
        kind, sees = self._seeing(step)
        writes = f"{source} wrote {self._name.key(step.key)}"
        if step.target == INITIAL:
            yield shown(source, reader, kind, sees)
            missed = f"{writes}, but {reader} read it in its initial state"
            yield shown(reader, source, RW, missed)
        else:
            missed = f"{sees}, and {writes}, but {reader} read what {target} wrote, so {source} comes before {target}"
            yield shown(source, target, WW, missed)

    def _seeing(self, step: AxiomStep) -> tuple[int, str]:
        """The kind of dependency by which the reader sees the step's source, and a sentence about it."""
        links = [self._link(before, after) for before, after in pairwise(self._operations[op] for op in step.path)]
        sees = [f"so T{step.reader} sees T{step.source}"] if len(links) > 1 else []
        return links[-1][0], "; ".join([*(sentence for _, sentence in links), *sees])

    def _link(self, before: Operation, after: Operation) -> tuple[int, str]:
        """The kind of dependency by which one operation sees the other at once, and a sentence about it."""
        read = why(self._witnesses, before, after, WR)
        if read is not None or before.after > after.index:
            return WR, read.sentence if read else f"T{after.index} read what T{before.index} wrote"
        kind = PROCESS if before.process == after.process else REALTIME
        return kind, self.step(before.index, after.index, kind)[0].sentence

    def _unordered(self, anomaly: str, found: Contradiction) -> Finding:
        """The finding of a contradiction: whatever the order of versions, one of its cycles exists."""
        steps = [*map(self._chosen_step, found.cycles[0])]
        cycles = dict.fromkeys(around([step.source for step in cycle]) for cycle in found.cycles)
        if len(found.cycles) == 1:
            sentence = told(steps, f"So {next(iter(cycles))}: no order allows that.")
        else:
            keys = sorted({step.key for cycle in found.cycles for step in cycle} - {-1})
            every = f"Whatever the order of the versions of {listed([*map(self._name.key, keys)])}"
            sentence = f"{every}, transactions come before each other in a cycle: {'; or '.join(cycles)}."
        facts = (tuple(value for step in cycle for value in step) for cycle in found.cycles)
        return cycle_finding(anomaly, TRANSACTIONS, steps, sentence, facts=facts, ops=found.ops)

    def _chosen_step(self, step: ChosenStep) -> Step:
        """The step of a cycle that assumes an order of versions, as a finding shows it."""
        what = f"{'wrote' if step.kind == WW else 'read'} {self._name.key(step.key)}"
        chosen = f"T{step.source} {what} before T{step.target} wrote it, in one order of versions"
        if step.kind == WR:
            chosen = f"T{step.target} read what T{step.source} wrote"
        return self.step(step.source, step.target, step.kind, chosen)[0]

    def sighting(self, sighting: Sighting) -> Finding:
        """The finding of an anomaly without a cycle."""
        example = sighting.example
        ops = tuple(sorted({example.op, example.other} - {NONE}))
        what = self._what_happened(sighting.anomaly, example)
        return Finding(
            fingerprint=fingerprint(sighting.anomaly, ops, (example.key, example.element)),
            anomaly=sighting.anomaly,
            checker=TRANSACTIONS,
            sentence=what.sentence,
            count=sighting.count,
            ops=_with(ops, what.ops),
        )

    def step(self, source: int, target: int, kind: int, otherwise: str | None = None) -> tuple[Step, Reason]:
        """The step between two operations as a finding shows it, with its reason; `otherwise` if no witness has one."""
        reason = why(self._witnesses, self._operations[source], self._operations[target], kind)
        if reason is None:
            assert otherwise is not None, f"no reason why T{source} precedes T{target} ({relation_of(kind)})"
            reason = Reason(otherwise)
        return shown(f"T{source}", f"T{target}", kind, reason.sentence), reason

    def _what_happened(self, anomaly: str, example: Example) -> Reason:
        """The sentence about an anomaly without a cycle, with further operations that it mentions."""
        operation = self._operations[example.op]
        of = self._registers if is_of_register(operation, example.key) else self._lists
        return of.sighting(anomaly, example, operation)


class _Time:
    """The order of time as a witness."""

    def why(self, earlier: Operation, later: Operation, kind: int) -> Reason | None:
        """The reason why one operation precedes the other, if they are of one process or apart in time."""
        if kind == PROCESS:
            return Reason(f"process {earlier.process} ran T{earlier.index} before T{later.index}")
        if kind == REALTIME:
            return Reason(f"T{earlier.index} had ended before T{later.index} began")
        return None


def _by_time(steps: Sequence[tuple[int, int, Step]], operations: Mapping[int, Operation]) -> Iterator[str]:
    """The sentences about steps of a cycle whose target had finished before their source began.

    Such a step and the order of time are a cycle of two. The longer cycle may belong to a stronger class, which needs
    no clock, but its reader needs only these two operations. Not checked: that a promise orders operations by time.
    """
    for source, target, step in steps:
        is_dependency = step.relation in ("ww", "wr", "rw")
        if is_dependency and operations[target].after <= operations[source].index:
            yield f"{step.sentence}, although T{target} had finished before T{source} began."


def _with(ops: tuple[int, ...], others: Iterable[int]) -> tuple[int, ...]:
    """The operations of a finding: those that it is about, then the others that its reasons mention, ascending."""
    return (*ops, *sorted(set(others) - set(ops)))
