"""Independent on purpose: the models that explain a history in which something is unclear, by one formula for a solver.

The formula says what `tests.oracles.explained` tries one by one, so it serves longer histories: an order of commits,
the outcome of each unclear transaction, the first value of each register, and the writer that each read shows. No
element may be appended twice to one list, except by transactions of which all but one failed.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise, permutations

from pysat.solvers import Solver

from checkers.history.transactions import Append, Load, Operation, Read, Store
from harness.core.columns import FAIL, NEVER, NOTHING, OK
from tests.oracles.axioms import INITIAL, timed
from tests.oracles.explained import Model, is_consistent


def solved(
    operations: Sequence[Operation], models: Iterable[Model], *, is_declared: bool = False, is_torn: bool = False
) -> set[Model]:
    """Those of the models that explain the history. `is_declared`: all registers were empty at first.

    If the operations have commits, the versions of registers are in their order. No model explains a transaction that
    contradicts itself. With `is_torn` the axioms alone decide on one that reads a key twice with different results
    before it writes the key.
    """
    if not is_torn and not all(is_consistent(one) for one in operations if one.outcome == OK):
        return set()
    formula = _Formula(operations, is_declared=is_declared)
    with Solver(name="cadical153", bootstrap_with=formula.clauses) as solver:
        return {
            model for model in models if solver.solve([formula.of("axiom", model.axiom), *formula.of_time(model.time)])
        }


class _Formula:
    """The clauses. A variable is named by a tuple, and may be true in more cases than it must be."""

    def __init__(self, operations: Sequence[Operation], *, is_declared: bool) -> None:
        self._is_declared = is_declared
        self._live = live = [one for one in operations if one.outcome != FAIL]
        self._ops = [one.index for one in live]
        self._numbers: dict[tuple[object, ...], int] = {}
        self._writes = {(one.index, mop.key) for one in live for mop in one.mops if isinstance(mop, Append | Store)}
        every = (mop for one in operations for mop in one.mops)
        self._written = {(mop.key, mop[1]) for mop in every if isinstance(mop, Append | Store)}
        self.clauses: list[list[int]] = []
        self._orders()
        self._time()
        self._commits()
        reads = [(one, place, mop) for one in live if one.outcome == OK for place, mop in _external(one)]
        self._firsts(mop for _, _, mop in reads if isinstance(mop, Load))
        self._lists()
        shown = [self._shown(one, place, mop) for one, place, mop in reads]
        for (one, place, mop), writers in zip(reads, shown, strict=True):
            earlier = [seen for (other, at, _), seen in zip(reads, shown, strict=True) if other is one and at < place]
            self._explain(one.index, mop.key, writers, earlier)

    def of(self, *name: object) -> int:
        """The variable of that name."""
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def of_time(self, time: str) -> list[int]:
        return [self.of("time", time)] if time else []

    def before(self, one: int, other: int) -> int:
        """The literal "one commits before the other"."""
        return self.of("before", one, other) if one < other else -self.of("before", other, one)

    def _if(self, *conditions: int, then: Sequence[int] = ()) -> None:
        clause = [*(-condition for condition in conditions), *then]
        never = self.of("never")
        self.clauses += [clause] if clause else [[never], [-never]]  # The solver ignores empty clauses.

    def _orders(self) -> None:
        """One order of commits; `causes` contains base and is transitive, and with an axiom contains conflicts."""
        for one, other, third in permutations(self._ops, 3):
            self._if(self.before(one, other), self.before(other, third), then=[self.before(one, third)])
            causes = self.of("causes", one, other), self.of("causes", other, third)
            self._if(*causes, then=[self.of("causes", one, third)])
        for one, other in permutations(self._ops, 2):
            base = self.of("base", one, other)
            self._if(base, then=[self.before(one, other)])
            self._if(base, then=[self.of("causes", one, other)])
            self._if(base, then=[self.of("saw", one, other)])
            if any((other, key) in self._writes for op, key in self._writes if op == one):
                both = self.before(one, other), self.of("happened", one), self.of("happened", other)
                self._if(*both, self.of("axiom", "parallel"), then=[self.of("causes", one, other)])
                for name in ("snapshot", "update"):
                    self._if(*both, self.of("axiom", name), then=[self.of("saw", one, other)])
        for each in self._live:
            if each.outcome == OK:
                self._if(then=[self.of("happened", each.index)])

    def _time(self) -> None:
        for time in ("process", "realtime"):
            for one, other in timed(self._live, time):
                conditions = (self.of("time", time), self.of("happened", other))
                self._if(*conditions, then=[self.of("base", one, other)])

    def _commits(self) -> None:
        """Writes of a register come in the order of the commits that the system reported."""
        for one, other in permutations(self._live, 2):
            keys = {mop.key for mop in one.mops if isinstance(mop, Store)}
            is_before = one.commit < other.commit < NEVER
            if is_before and any(isinstance(mop, Store) and mop.key in keys for mop in other.mops):
                both = self.of("happened", one.index), self.of("happened", other.index)
                self._if(*both, then=[self.before(one.index, other.index)])

    def _firsts(self, loads: Iterable[Load]) -> None:
        """At most one first value of each register."""
        values: dict[int, set[int]] = {}
        for load in loads:
            values.setdefault(load.key, {NOTHING})
            if (load.key, load.value) not in self._written and not self._is_declared:
                values[load.key].add(load.value)
        self._first_values = values
        for key, each in values.items():
            for one, other in combinations(sorted(each), 2):
                self._if(self.of("first", key, one), self.of("first", key, other))

    def _lists(self) -> None:
        """Each read of a list shows the first elements of what is appended in the order of commits."""
        appends = [(one.index, mop) for one in self._live for mop in one.mops if isinstance(mop, Append)]
        self._appender = {(mop.key, mop.element): op for op, mop in appends}
        assert len(self._appender) == len(appends), "an element was appended twice"
        reads = [
            mop
            for one in self._live
            if one.outcome == OK
            for mop in one.mops
            if isinstance(mop, Read) and mop.elements is not None
        ]
        self._first_lists: dict[int, tuple[int, ...]] = {}
        for read in reads:
            elements = read.elements or ()
            own = [(read.key, each) in self._written for each in elements]
            count = own.index(True) if True in own else len(own)
            self._first_lists[read.key] = max(self._first_lists.get(read.key, ()), elements[:count], key=len)
        for read in reads:
            self._list(read.key, read.elements or ())

    def _list(self, key: int, elements: tuple[int, ...]) -> None:
        first = self._first_lists[key]
        shown = elements[len(first) :]
        if elements[: len(first)] != first or not all((key, each) in self._appender for each in shown):
            self._if()
            return
        writers = [self._appender[key, each] for each in shown]
        for writer in writers:
            self._if(then=[self.of("happened", writer)])
        for one, other in pairwise(writers):
            if one != other:
                self._if(then=[self.before(one, other)])
        if len({*writers}) != sum(1 for one, other in pairwise([INITIAL, *writers]) if one != other):
            self._if()
        for writer in {op for op, each in self._writes if each == key}:
            elements_of = [each for (of, each), op in self._appender.items() if (of, op) == (key, writer)]
            count = len([each for each in shown if each in elements_of])
            if tuple(each for each in shown if each in elements_of) != tuple(elements_of[:count]):
                self._if()
            if 0 < count < len(elements_of) and writers[-1] != writer:
                self._if()
            if not count and writers:
                self._if(self.of("happened", writer), then=[self.before(writers[-1], writer)])

    def _shown(self, one: Operation, place: int, mop: Load | Read) -> dict[int, int]:
        """For each writer that the read may show the literal "it does"."""
        if isinstance(mop, Load):
            writers = {
                other.index: self.of("shows", one.index, place, other.index)
                for other in self._live
                if other is not one and _left(other, Store).get(mop.key) == mop.value
            }
            for writer, literal in writers.items():
                self._if(literal, then=[self.of("happened", writer)])
            if mop.value in self._first_values[mop.key]:
                writers[INITIAL] = self.of("shows", one.index, place, INITIAL)
                self._if(writers[INITIAL], then=[self.of("first", mop.key, mop.value)])
        else:
            elements = mop.elements or ()
            writer = self._appender.get((mop.key, elements[-1]), INITIAL) if elements else INITIAL
            writers = {writer: self.of("shows", one.index, place, writer)}
            if writer != INITIAL and (writer == one.index or _left(self._by(writer), Append)[mop.key] != elements[-1]):
                writers = {}
        self._if(then=list(writers.values()))
        for each, another in combinations(writers.values(), 2):
            self._if(each, another)
        for writer, literal in writers.items():
            if writer != INITIAL:
                self._if(literal, then=[self.of("base", writer, one.index)])
        return writers

    def _by(self, op: int) -> Operation:
        return next(one for one in self._live if one.index == op)

    def _explain(self, reader: int, key: int, writers: dict[int, int], earlier: Sequence[dict[int, int]]) -> None:
        """No visible writer comes after the one that the read shows."""
        for writer in sorted(op for op, each in self._writes if each == key and op != reader):
            for shown, literal in writers.items():
                if shown != writer:
                    then = [] if shown == INITIAL else [self.before(writer, shown)]
                    for visible in self._visible(writer, reader, earlier):
                        self._if(literal, self.of("happened", writer), *visible, then=then)

    def _visible(self, writer: int, reader: int, earlier: Sequence[dict[int, int]]) -> Iterator[tuple[int, ...]]:
        """Yield the cases in which the reader sees the writer, each a conjunction that begins with its axiom."""
        for seen in earlier:
            if writer in seen:
                yield self.of("axiom", "non-monotonic-view"), seen[writer]
        yield self.of("axiom", "fractured-read"), self.of("base", writer, reader)
        yield self.of("axiom", "causal-violation"), self.of("causes", writer, reader)
        yield self.of("axiom", "parallel"), self.of("causes", writer, reader)
        yield self.of("axiom", "serial"), self.before(writer, reader)
        yield self.of("axiom", "update"), self.of("saw", writer, reader)
        for name, pair in (("prefix", "base"), ("snapshot", "saw")):
            yield self.of("axiom", name), self.of(pair, writer, reader)
            for last in self._ops:
                if last not in {writer, reader}:
                    yield self.of("axiom", name), self.of(pair, last, reader), self.before(writer, last)


def _external(one: Operation) -> Iterator[tuple[int, Load | Read]]:
    """The external reads, each with its place; a list that ends with all own appends without these."""
    for place, mop in enumerate(one.mops):
        if isinstance(mop, Append | Store):
            continue
        own = [each for each in one.mops[:place] if isinstance(each, Append | Store) and each.key == mop.key]
        if not own:
            if isinstance(mop, Load) or mop.elements is not None:
                yield place, mop
        elif isinstance(mop, Read) and len(mop.elements or ()) >= len(own):
            others, ends = (mop.elements or ())[: -len(own)], (mop.elements or ())[-len(own) :]
            if all(isinstance(each, Append) and each.element == end for each, end in zip(own, ends, strict=True)):
                yield place, Read(mop.key, others)


def _left(one: Operation, kind: type[Append | Store]) -> dict[int, int]:
    """What it wrote, or appended, last to each key."""
    return {mop.key: mop[1] for mop in one.mops if isinstance(mop, kind)}
