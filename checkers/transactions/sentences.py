"""Sentences of findings: the operations and reads that show an engineer the contradiction."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Final

import numpy as np

from checkers.axioms.execution import INITIAL
from checkers.axioms.orders.cycles import ChosenStep, Contradiction
from checkers.axioms.weak import AXIOM, AxiomStep, Breach
from checkers.engine.datasets import Dataset
from checkers.graph.classes import MISSES, WRITES, Cycle
from checkers.graph.edges import PROCESS, REALTIME, RW, WR, WW
from checkers.graph.sightings import NONE, Example, Sighting
from checkers.history.names import Names, first_difference, listed, shown_list
from checkers.history.registers import Initial, Order
from checkers.history.transactions import Append, Operation, Read, Source
from checkers.transactions.evidence import Evidence, appends, evidence, longest_reads, own_missed, reads
from checkers.transactions.registers.sentences import (
    Reason,
    RegisterSentences,
    Seen,
    Version,
    is_of_register,
    seen_versions,
    versions_of,
)
from checkers.transactions.simplest import PAIR, Relation, by_time
from checkers.words.anomalies import TRANSACTIONAL
from harness.core.verdict import Finding, Step, fingerprint

CHECKER: Final = "serializability"
_RELATIONS: Final[dict[int, Relation]] = {WW: "ww", WR: "wr", RW: "rw", PROCESS: "process", REALTIME: "realtime"}


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
        self._registers = RegisterSentences(seen, name)
        self._operations: dict[int, Operation] = {}
        longest: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        for part in parts:
            self._operations |= {operation.index: operation for operation in part.operations}
            for key, op, elements in part.longest:
                candidate = (-len(elements), op, elements)
                longest[key] = min(longest.get(key, candidate), candidate)
        # The order of versions, and the first place of each element in it.
        self._order = {key: list(dict.fromkeys(elements)) for key, (_, _, elements) in longest.items()}
        self._reader = {key: op for key, (_, op, _) in longest.items()}  # The reader of that order.

    def cycle(self, anomaly: str, count: int, cycle: Cycle) -> Finding:
        """The finding of a cycle, with the reason of every step."""
        pairs = zip(cycle.ops, (*cycle.ops[1:], cycle.ops[0]), cycle.kinds, strict=True)
        explained = [
            (source, target, *next(self._reasons(self._operations[source], self._operations[target], kind)))
            for source, target, kind in pairs
        ]
        steps = tuple(
            Step(source=f"T{source}", target=f"T{target}", relation=relation, sentence=why.sentence)
            for source, target, relation, why in explained
        )
        around = " before ".join([*(f"T{op}" for op in cycle.ops), f"T{cycle.ops[0]}"])
        reasons = "; ".join(step.sentence for step in steps)
        shortest = f"{reasons}. So {around}: no order allows that."
        if self._has_real_time and len(steps) > PAIR:
            shortest = next(by_time(explained, self._operations), shortest)
        return Finding(
            fingerprint=fingerprint(anomaly, cycle.ops, cycle.kinds),
            anomaly=anomaly,
            checker=CHECKER,
            sentence=f"{shortest[:1].upper()}{shortest[1:]}",
            count=count,
            ops=_with(cycle.ops, (op for *_, why in explained for op in why.ops)),
            cycle=steps,
        )

    def broken(self, anomaly: str, evidence: Breach | Contradiction) -> Finding:
        """The finding of a broken axiom, or of a model for which no order of versions exists."""
        if isinstance(evidence, Breach):
            return self._breach(anomaly, evidence)
        return self._unordered(anomaly, evidence)

    def _breach(self, anomaly: str, breach: Breach) -> Finding:
        """The finding of a broken axiom, with the reason of every step."""
        shown = [part for step in breach.cycle for part in self._axiom_steps(step)]
        facts = [(step.source, step.target, step.kind, step.reader, step.key) for step in breach.cycle]
        reasons = "; ".join(step.sentence for step in shown)
        return Finding(
            fingerprint=fingerprint(anomaly, *facts),
            anomaly=anomaly,
            checker=CHECKER,
            sentence=f"{reasons[:1].upper()}{reasons[1:]}. No order of commits allows that.",
            count=breach.count,
            ops=breach.ops,
            cycle=tuple(shown),
        )

    def _axiom_steps(self, step: AxiomStep) -> Iterator[Step]:
        """The steps that a finding shows for this one.

        Steps from the initial version, which comes first, are left out.
        """
        source, reader, target = f"T{step.source}", f"T{step.reader}", f"T{step.target}"
        if step.source == INITIAL:
            return
        if step.kind != AXIOM:
            reasons = self._reasons(self._operations[step.source], self._operations[step.target], step.kind)
            # If no committed transaction wrote some of the key's versions, its reads alone may not give the reason.
            plain = f"{target} read what {source} wrote" if step.kind == WR else f"{target} wrote after {source} did"
            relation, why = next(reasons, (_RELATIONS[step.kind], Reason(plain)))
            yield Step(source=source, target=target, relation=relation, sentence=why.sentence)
            return
        relation, sees = self._seeing(step)
        writes = f"{source} wrote {self._name.key(step.key)}"
        if step.target == INITIAL:
            yield Step(source=source, target=reader, relation=relation, sentence=sees)
            missed = f"{writes}, but {reader} read it in its initial state"
            yield Step(source=reader, target=source, relation="rw", sentence=missed)
        else:
            missed = f"{sees}, and {writes}, but {reader} read what {target} wrote, so {source} comes before {target}"
            yield Step(source=source, target=target, relation="ww", sentence=missed)

    def _seeing(self, step: AxiomStep) -> tuple[Relation, str]:
        """The relation by which the reader sees the step's source, and a sentence about it."""
        links = [self._link(before, after) for before, after in pairwise(self._operations[op] for op in step.path)]
        sees = [f"so T{step.reader} sees T{step.source}"] if len(links) > 1 else []
        return links[-1][0], "; ".join([*(sentence for _, sentence in links), *sees])

    def _link(self, before: Operation, after: Operation) -> tuple[Relation, str]:
        """The relation by which one operation sees the other at once, and a sentence about it."""
        read = next(self._reasons(before, after, WR), None)
        if read is not None:
            return read[0], read[1].sentence
        if before.after > after.index:
            return "wr", f"T{after.index} read what T{before.index} wrote"
        relation, reason = next(self._reasons(before, after, PROCESS if before.process == after.process else REALTIME))
        return relation, reason.sentence

    def _unordered(self, anomaly: str, found: Contradiction) -> Finding:
        """The finding of a contradiction: whatever the order of versions, one of its cycles exists."""
        steps = tuple(map(self._chosen_step, found.cycles[0]))
        around = dict.fromkeys(
            " before ".join([*(f"T{step.source}" for step in cycle), f"T{cycle[0].source}"]) for cycle in found.cycles
        )
        if len(found.cycles) == 1:
            reasons = "; ".join(step.sentence for step in steps)
            sentence = f"{reasons[:1].upper()}{reasons[1:]}. So {next(iter(around))}: no order allows that."
        else:
            keys = sorted({step.key for cycle in found.cycles for step in cycle} - {-1})
            every = f"Whatever the order of the versions of {listed([*map(self._name.key, keys)])}"
            sentence = f"{every}, transactions come before each other in a cycle: {'; or '.join(around)}."
        facts = (tuple(value for step in cycle for value in step) for cycle in found.cycles)
        return Finding(
            fingerprint=fingerprint(anomaly, *facts),
            anomaly=anomaly,
            checker=CHECKER,
            sentence=sentence,
            ops=found.ops,
            cycle=steps,
        )

    def _chosen_step(self, step: ChosenStep) -> Step:
        """The step of a cycle that assumes an order of versions, as a finding shows it."""
        before, after = self._operations[step.source], self._operations[step.target]
        relation, why = next(self._reasons(before, after, step.kind), (_RELATIONS[step.kind], None))
        what = f"{'wrote' if step.kind == WW else 'read'} {self._name.key(step.key)}"
        chosen = f"T{before.index} {what} before T{after.index} wrote it, in one order of versions"
        if step.kind == WR:
            chosen = f"T{after.index} read what T{before.index} wrote"
        sentence = why.sentence if why else chosen
        return Step(source=f"T{before.index}", target=f"T{after.index}", relation=relation, sentence=sentence)

    def sighting(self, sighting: Sighting) -> Finding:
        """The finding of an anomaly without a cycle."""
        example = sighting.example
        ops = tuple(sorted({example.op, example.other} - {NONE}))
        what = self._what_happened(sighting.anomaly, example)
        return Finding(
            fingerprint=fingerprint(sighting.anomaly, ops, (example.key, example.element)),
            anomaly=sighting.anomaly,
            checker=CHECKER,
            sentence=what.sentence,
            count=sighting.count,
            ops=_with(ops, what.ops),
        )

    def _reasons(self, before: Operation, after: Operation, kind: int) -> Iterator[tuple[Relation, Reason]]:
        if kind == PROCESS:
            yield "process", Reason(f"process {before.process} ran T{before.index} before T{after.index}")
        if kind == REALTIME:
            yield "realtime", Reason(f"T{before.index} had ended before T{after.index} began")
        if kind & WRITES[REALTIME]:
            yield from (("ww", reason) for reason in chain(self._ww(before, after), self._registers.ww(before, after)))
        if kind == WR:
            yield from (("wr", reason) for reason in chain(self._wr(before, after), self._registers.wr(before, after)))
        if kind & MISSES[REALTIME]:
            yield from (("rw", reason) for reason in chain(self._rw(before, after), self._registers.rw(before, after)))
        yield from self._distant_reasons(before, after, kind)

    def _distant_reasons(self, before: Operation, after: Operation, kind: int) -> Iterator[tuple[Relation, Reason]]:
        """The reasons that lists give over other elements, such as those of failed or unknown operations."""
        if kind == WW:
            yield from (("ww", reason) for reason in self._ww(before, after, is_next=False))
        if kind == WR:
            yield from (("wr", reason) for reason in self._wr(before, after, is_next=False))
        if kind == RW:
            yield from (("rw", reason) for reason in self._rw(before, after, is_next=False))

    def _ww(self, before: Operation, after: Operation, *, is_next: bool = True) -> Iterator[Reason]:
        for append in appends(after):
            earlier = self._earlier(append)
            for element in reversed(earlier[-1:] if is_next else earlier):
                if Append(append.key, element) in before.mops:
                    when = "right after" if is_next and self._is_placed(append) else "after"
                    yield self._ordered(
                        f"T{after.index} appended {self._name(append.element)} to {self._name.key(append.key)} "
                        f"{when} T{before.index} appended {self._name(element)}",
                        append,
                    )

    def _wr(self, before: Operation, after: Operation, *, is_next: bool = True) -> Iterator[Reason]:
        for read in reads(after):
            elements = read.elements or ()
            # Before what it had appended itself, a list shows what that extended.
            others = [each for each in elements if Append(read.key, each) not in after.mops]
            for element in reversed(others[-1:] if is_next else others):
                if Append(read.key, element) in before.mops:
                    saw = f"{self._name.key(read.key)} as {self._list(elements, elements.index(element))}"
                    yield Reason(f"T{after.index} read {saw}, and T{before.index} appended {self._name(element)}")

    def _rw(self, before: Operation, after: Operation, *, is_next: bool = True) -> Iterator[Reason]:
        for append in appends(after):
            versions = [None, *self._earlier(append)]
            for read in reads(before):
                last = read.elements[-1] if read.elements else None
                if read.key == append.key and last in (versions[-1:] if is_next else versions):
                    saw = f"{self._name.key(read.key)} as {self._list(read.elements or ())}"
                    yield self._ordered(
                        f"T{before.index} read {saw}, without {self._name(append.element)}, "
                        f"which T{after.index} appended {'next' if is_next else 'later'}",
                        append,
                    )

    def _ordered(self, sentence: str, append: Append) -> Reason:
        """The sentence, with the reader whose read gives the append's place in the order of its key."""
        reader = self._reader.get(append.key)
        if self._is_placed(append):
            return Reason(f"{sentence} (as T{reader} saw)", (self._reader[append.key],))
        unseen = f"{sentence} (the longest read shows no {self._name(append.element)}, so it is newer)"
        return Reason(unseen, () if reader is None else (reader,))

    def _earlier(self, append: Append) -> list[int]:
        """The elements before that of the append in the order of its key."""
        order = self._order.get(append.key, [])
        return order[: order.index(append.element)] if append.element in order else order

    def _is_placed(self, append: Append) -> bool:
        return append.element in self._order.get(append.key, [])

    def _what_happened(self, anomaly: str, example: Example) -> Reason:
        """The sentence about an anomaly without a cycle, with further operations that it mentions."""
        operation = self._operations[example.op]
        if is_of_register(operation, example.key):
            return self._registers.sighting(anomaly, example, operation)
        sentence = self._sentence(anomaly, example, operation)
        return Reason(sentence, (self._reader[example.key],) if anomaly == "dirty-update" else ())

    def _sentence(self, anomaly: str, example: Example, operation: Operation) -> str:
        """The sentence about an anomaly of a list.

        See checkers/transactions/list_anomalies.py for what each example holds.
        """
        op, other = f"T{example.op}", f"T{example.other}"
        key = self._name.key(example.key)
        element = self._name(example.element) if example.element != NONE else "nothing"
        match anomaly:
            case "internal":
                return self._contradiction(operation, example.key)
            case "missed-own-write":
                read, last = own_missed(operation, example.key)
                return self._against(operation, read, None, f"it had itself appended {self._name(last)} last")
            case "future-read":
                return f"{op} read {element} in {key} before it appended it."
            case "duplicate-elements":
                return f"{op} read {key} with {element} in it twice: {self._seen(example)}."
            case "incompatible-order" if example.element != NONE:
                order = self._list(self._order.get(example.key, ()))
                return f"{op} read {key} as {order}, but {other} had appended more to it before it appended {element}."
            case "incompatible-order":
                return self._disagreement(example)
            case "G1a":
                return f"{op} read {key} as {self._seen(example)}, but {other}, which appended {element}, failed."
            case "G1b":
                return (
                    f"{op} read {key} as {self._seen(example)}, but {other}, which appended {element}, "
                    f"appended more to {key} after that: an intermediate state."
                )
            case "garbage-read":
                return f"{op} read {key} as {self._seen(example)}, but nobody appended {element}."
            case "dirty-update":
                saw = f"as T{self._reader[example.key]} saw"
                return f"{op} committed {element} in {key} on top of what {other} appended, which failed ({saw})."
            case "lost-update":
                return (
                    f"{op} and {other} both read {key} as {self._seen(example)}, and both appended to it: "
                    "one did not see the other's update."
                )
            case _:
                return f"{op}: {TRANSACTIONAL[anomaly]}"

    def _seen(self, example: Example) -> str:
        """The list that the operation read of the example's key: the first read with the example's element counts."""
        own = [read for read in reads(self._operations[example.op]) if read.key == example.key]
        holding = [read for read in own if read.elements and example.element in read.elements]
        elements = (holding or own)[0].elements or ()
        places = [at for at, element in enumerate(elements) if element == example.element]
        return self._list(elements, places[-1] if places else None)

    def _disagreement(self, example: Example) -> str:
        """Two reads of a key, neither a prefix of the other, and the place where they differ."""
        key = example.key
        ours, theirs = (
            [read.elements or () for read in reads(self._operations[op]) if read.key == key]
            for op in (example.op, example.other)
        )
        longest = max(theirs, key=len)
        odd = next(read for read in ours if read != longest[: len(read)])
        place = next(at for at, (one, other) in enumerate(zip(odd, longest, strict=False)) if one != other)
        return (
            f"T{example.op} read {self._name.key(key)} as {self._list(odd, place)}, and T{example.other} read it as "
            f"{self._list(longest, place)}: neither is the beginning of the other, as element {place + 1} is "
            f"{self._name(odd[place])} in the one and {self._name(longest[place])} in the other."
        )

    def _contradiction(self, operation: Operation, key: int) -> str:
        """The sentence about a read that contradicts what its transaction had read and appended before."""
        known: tuple[int, ...] | None = None  # Its last read, and
        appended: tuple[int, ...] = ()  # its appends since.
        for mop in operation.mops:
            match mop:
                case Append() if mop.key == key:
                    appended += (mop.element,)
                case Read(elements=tuple() as elements) if mop.key == key:
                    expected = (known or ()) + appended
                    if known is not None and elements != expected:
                        at = first_difference(elements, expected)
                        return self._against(operation, mop, at, f"it knew it as {self._list(expected, at)}")
                    if elements[max(0, len(elements) - len(appended)) :] != appended:
                        return self._against(operation, mop, None, f"it had itself appended {self._list(appended)}")
                    known, appended = elements, ()
        return f"T{operation.index}: {TRANSACTIONAL['internal']}"

    def _against(self, operation: Operation, read: Read, at: int | None, knew: str) -> str:
        shown = self._list(read.elements or (), at)
        return f"T{operation.index} read {self._name.key(read.key)} as {shown}, but {knew}."

    def _list(self, elements: Sequence[int], at: int | None = None) -> str:
        return shown_list([*map(self._name, elements)], at)


def _with(ops: tuple[int, ...], others: Iterable[int]) -> tuple[int, ...]:
    """The operations of a finding: those that it is about, then the others that its reasons mention, ascending."""
    return (*ops, *sorted(set(others) - set(ops)))
