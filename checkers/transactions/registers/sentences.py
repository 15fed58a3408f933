"""Sentences of findings about registers: which operation saw which version, and why one version precedes another."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from checkers.columns.runs import first_of_each
from checkers.columns.table import take
from checkers.graph.classes import MISSES, WRITES
from checkers.graph.edges import REALTIME, WR, WW
from checkers.graph.paths import StepGraph, Steps
from checkers.graph.reasons import Reason
from checkers.graph.sightings import Example
from checkers.history.names import Names
from checkers.history.registers import Initial, Order, Trust
from checkers.history.transactions import Append, Load, Operation, Read, Source, Store, load
from checkers.transactions.registers.rows import ABSENT, Touches, register_rows
from harness.core.columns import FAIL, NEVER, NOTHING, OK, Int64s

Version = tuple[int, int]  # A key and a value of it.


class Meeting(NamedTuple):
    """One transaction's external read and final write of a register, as in `rows.Touches`."""

    key: int
    op: int
    after: int
    process: int
    commit: int
    outcome: int
    read: int
    write: int

    @property
    def met(self) -> int:
        """The version that it met."""
        return self.write if self.read == ABSENT else self.read

    @property
    def left(self) -> int:
        """The version that it left."""
        return self.read if self.write == ABSENT else self.write


def versions_of(operation: Operation) -> Iterator[Version]:
    """The versions that an operation read or wrote."""
    yield from ((mop.key, mop.value) for mop in operation.mops if isinstance(mop, Load | Store))


def is_of_register(operation: Operation, key: int) -> bool:
    """True if it uses that key as a register. A read of null alone says so, but not beside reads of a list."""
    kinds = {type(mop) for mop in operation.mops if mop.key == key}
    return Store in kinds or (Load in kinds and kinds.isdisjoint({Append, Read}))


def seen_versions(source: Source, *, key: Int64s, value: Int64s, initial: Initial) -> list[Meeting]:
    """Of the transactions of this chunk that met or left those versions all writers, and few readers.

    The readers are the first and the last one of each process.
    """
    touches = register_rows(initial.applied(load(source))).touches
    is_mentioned = np.isin(touches.read, value) | np.isin(touches.write, value)
    touches = take(touches, np.flatnonzero(np.isin(touches.key, key) & is_mentioned & (touches.outcome != FAIL)))
    touches = take(touches, _needed(touches))
    rows = zip(*(getattr(touches, name).tolist() for name in Meeting._fields), strict=True)
    wanted = set(zip(key.tolist(), value.tolist(), strict=True))
    meetings = (Meeting(*row) for row in rows)
    return [each for each in meetings if {(each.key, each.read), (each.key, each.write)} & wanted]


def _needed(touches: Touches) -> Int64s:
    """The rows that an order of time needs: all writes, and each process's first and last read of each version."""
    writes = np.flatnonzero(touches.write != ABSENT)
    reads = np.flatnonzero(touches.write == ABSENT)
    kept = [writes]
    for time in (touches.after, -touches.op):
        order = reads[np.lexsort((time[reads], touches.read[reads], touches.key[reads], touches.process[reads]))]
        columns = (touches.process[order], touches.key[order], touches.read[order])
        kept.append(order[np.any([first_of_each(column) for column in columns], axis=0)])
    return np.unique(np.concatenate(kept))


class Seen:
    """The transactions that met and those that left each version, and the reasons for an order that they give."""

    def __init__(self, meetings: Iterable[Meeting], order: Order) -> None:
        self._order = order
        self._met: dict[Version, list[Meeting]] = {}
        self._left: dict[Version, list[Meeting]] = {}
        self._commit: dict[Version, int] = {}
        for meeting in sorted(meetings):
            self._commit[meeting.key, meeting.write] = meeting.commit
            self._met.setdefault((meeting.key, meeting.met), []).append(meeting)
            # It also left what it read: if two transactions wrote its value, the check leaves out its write.
            for version in {meeting.left, meeting.read} - {ABSENT}:
                self._left.setdefault((meeting.key, version), []).append(meeting)

    def reason(self, key: int, earlier: int, later: int, name: Names) -> Reason | None:
        """A reason why version `earlier` precedes `later`; None if there is none."""
        return next(self._reasons(key, earlier, later, name), None)

    def _reasons(self, key: int, earlier: int, later: int, name: Names) -> Iterator[Reason]:
        order = self._order
        if earlier == NOTHING:
            yield Reason(f"{name.key(key)} held {name.initial} at first")
        for both in self._met.get((key, earlier), ()):
            if order.writes_follow_reads and both.read == earlier and both.write == later:
                yield Reason(
                    f"T{both.op} read {_shown(earlier, name)} before it wrote {_shown(later, name)}", (both.op,)
                )
        left, met = self._left.get((key, earlier), []), self._met.get((key, later), [])
        for process in sorted({each.process for each in left}) if order.process is not Trust.NONE else ():
            for one, other in _apart(left, met, process):
                sentence = f"process {process} ran {_leaving(one, earlier, name)} before {_meeting(other, name)}"
                yield Reason(sentence, (one.op, other.op))
        for one, other in _apart(left, met) if order.real_time is not Trust.NONE else ():
            sentence = f"{_leaving(one, earlier, name)} ended before the start of {_meeting(other, name)}"
            yield Reason(sentence, (one.op, other.op))
        if order.commits and self._commit.get((key, earlier), NEVER) < self._commit.get((key, later), NEVER):
            yield Reason(f"the system committed {_shown(earlier, name)} before {_shown(later, name)}")


def _apart(
    left: Sequence[Meeting], met: Sequence[Meeting], process: int | None = None
) -> Iterator[tuple[Meeting, Meeting]]:
    """The first of `left` to end and the last of `met` to begin, if the one ended before the other began."""
    left = [each for each in left if each.outcome == OK and process in {None, each.process}]
    met = [each for each in met if process in {None, each.process}]
    if left and met:
        one, other = min(left, key=attrgetter("after", "op")), max(met, key=attrgetter("op"))
        if one.after <= other.op:
            yield one, other


def _leaving(one: Meeting, version: int, name: Names) -> str:
    return f"T{one.op}, which {'wrote' if one.write == version else 'read'} {_shown(version, name)},"


def _meeting(other: Meeting, name: Names) -> str:
    return f"T{other.op}, which {'wrote' if other.read == ABSENT else 'read'} {_shown(other.met, name)}"


def _shown(version: int, name: Names) -> str:
    return name.initial if version == NOTHING else name(version)


class RegisterSentences:
    """The sentences about registers: for the steps of cycles, and for anomalies without a cycle."""

    def __init__(self, seen: Seen, name: Names) -> None:
        self._seen, self._name = seen, name

    def why(self, earlier: Operation, later: Operation, kind: int) -> Reason | None:
        """The reason why one operation precedes the other, if registers show it."""
        return next(self._reasons(earlier, later, kind), None)

    def _reasons(self, before: Operation, after: Operation, kind: int) -> Iterator[Reason]:
        if kind & WRITES[REALTIME]:
            yield from self._ww(before, after)
        if kind & WR:
            yield from self._wr(before, after)
        if kind & MISSES[REALTIME]:
            yield from self._rw(before, after)

    def _ww(self, before: Operation, after: Operation) -> Iterator[Reason]:
        """Reasons why a write of `before` precedes a write of `after`."""
        for store in _final(after):
            for earlier in _final(before):
                why = self._why(store, earlier)
                if why is not None:
                    yield Reason(
                        f"T{before.index} wrote {_shown(earlier.value, self._name)} to {self._name.key(store.key)}, "
                        f"and {self._later(after, store, why)}",
                        why.ops,
                    )

    def _wr(self, before: Operation, after: Operation) -> Iterator[Reason]:
        """Reads by `after` of what `before` wrote."""
        for load_ in _foreign(after):
            if Store(load_.key, load_.value) in list(_final(before)):
                yield Reason(
                    f"T{after.index} read {self._name.key(load_.key)} as {self._name(load_.value)}, "
                    f"which T{before.index} wrote"
                )

    def _rw(self, before: Operation, after: Operation) -> Iterator[Reason]:
        """Reads by `before` that miss a write of `after`."""
        for store in _final(after):
            for load_ in _foreign(before):
                why = self._why(store, load_)
                if why is not None:
                    yield Reason(
                        f"T{before.index} read {self._name.key(store.key)} as {_shown(load_.value, self._name)}, and "
                        f"{self._later(after, store, why)}",
                        why.ops,
                    )

    def _later(self, after: Operation, store: Store, why: Reason) -> str:
        """The write of a version that is later by inference, with the reason: no read shows the order."""
        return f"T{after.index} wrote {_shown(store.value, self._name)}, which counts as later ({why.sentence})"

    def _why(self, store: Store, earlier: Load | Store) -> Reason | None:
        if store.key != earlier.key or store.value == earlier.value:
            return None
        return self._seen.reason(store.key, earlier.value, store.value, self._name)

    def sighting(self, anomaly: str, example: Example, operation: Operation) -> Reason:
        """The sentence about an anomaly without a cycle of transactions."""
        return (
            self._cyclic(example) if anomaly == "cyclic-versions" else Reason(self._plain(anomaly, example, operation))
        )

    def _plain(self, anomaly: str, example: Example, operation: Operation) -> str:
        op, other, key = f"T{example.op}", f"T{example.other}", self._name.key(example.key)
        value = _shown(example.element, self._name)
        match anomaly:
            case "internal":
                return self._contradiction(operation, example.key)
            case "missed-own-write":
                return self._own_missed(operation, example.key)
            case "future-read":
                return f"{op} read {key} as {value} before it wrote that."
            case "G1a":
                return f"{op} read {key} as {value}, but {other}, which wrote {value}, failed."
            case "G1b":
                return f"{op} read {key} as {value}, but {other} wrote that and then more: an intermediate state."
            case "garbage-read":
                return f"{op} read {key} as {value}, which no operation wrote."
            case "G0":
                theirs = _shown(example.versions[0], self._name)
                return (
                    f"{op} read {key} as {value}, which {other} had written, and then wrote {key}; {other} read it as "
                    f"{theirs}, which {op} had written, and then wrote it: their writes interleave."
                )
            case "unwritten-read":
                return (
                    f"{op} read {key} as {value}, which no operation wrote; nor was it declared as the initial value."
                )
            case _:
                read = next((each.value for each in _external(operation) if each.key == example.key), NOTHING)
                return (
                    f"{op} and {other} both read {key} as {_shown(read, self._name)}, and both wrote to it: "
                    "one did not see the other's update."
                )

    def _contradiction(self, operation: Operation, key: int) -> str:
        mops = [mop for mop in operation.mops if isinstance(mop, Load | Store) and mop.key == key]
        for known, mop in pairwise(mops):
            if isinstance(mop, Load) and mop.value != known.value:
                verb = "read" if isinstance(known, Load) else "written"
                return (
                    f"T{operation.index} read {self._name.key(key)} as {_shown(mop.value, self._name)}, "
                    f"but it had itself {verb} {_shown(known.value, self._name)}."
                )
        return f"T{operation.index} contradicts itself about {self._name.key(key)}."

    def _own_missed(self, operation: Operation, key: int) -> str:
        last: Store | None = None
        for mop in operation.mops:
            if isinstance(mop, Store) and mop.key == key:
                last = mop
            elif isinstance(mop, Load) and mop.key == key and last is not None and mop.value != last.value:
                return (
                    f"T{operation.index} read {self._name.key(key)} as {_shown(mop.value, self._name)}, "
                    f"but it had itself written {_shown(last.value, self._name)} last."
                )
        return f"T{operation.index} does not see its own write of {self._name.key(key)}."

    def _cyclic(self, example: Example) -> Reason:
        """The reasons why each version of a cycle precedes the next, and the last the first."""
        name, key = self._name, example.key
        steps = {
            (one, other): why
            for one in example.versions
            for other in example.versions
            if one != other and (why := self._seen.reason(key, one, other, name)) is not None
        }
        cycle = _shortest_cycle(example.versions, steps)
        if not cycle:
            listed = ", ".join(_shown(version, name) for version in example.versions)
            return Reason(f"The versions of {name.key(key)} form a cycle, {listed} among them.")
        pairs = list(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        reasons = "; ".join(
            f"{_shown(one, name)} is before {_shown(other, name)}, as {steps[one, other].sentence}"
            for one, other in pairs
        )
        sentence = f"The versions of {name.key(key)} have no order: {reasons}."
        return Reason(sentence, tuple(op for pair in pairs for op in steps[pair].ops))


def _shortest_cycle(versions: Sequence[int], steps: Iterable[tuple[int, int]]) -> list[int]:
    """A shortest cycle, from its least version on; empty if there is none."""
    place = {version: at for at, version in enumerate(versions)}
    ends = sorted((place[one], place[other]) for one, other in steps)
    source, target = np.array(ends, np.int64).reshape(-1, 2).T
    graph = StepGraph([Steps(source, target, np.full(len(source), WW))], len(versions))
    paths = ((one, other, graph.path(other, one)) for one, other in ends)
    cycles = [[one, other, *target[rows[:-1]].tolist()] for one, other, rows in paths if rows is not None]
    least = [versions[at] for at in min(cycles, key=len, default=[])]
    at = least.index(min(least)) if least else 0
    return least[at:] + least[:at]


def _final(operation: Operation) -> Iterator[Store]:
    """The last write of the operation to each register."""
    last = {mop.key: mop for mop in operation.mops if isinstance(mop, Store)}
    yield from sorted(last.values())


def _foreign(operation: Operation) -> Iterator[Load]:
    """The operation's external reads, and the later ones that show neither what it met or left there, nor its own."""
    yield from _external(operation)
    last: dict[int, Load | Store] = {}
    own = {(mop.key, mop.value) for mop in operation.mops if isinstance(mop, Store)}
    for mop in operation.mops:
        if isinstance(mop, Load | Store):
            before = last.get(mop.key)
            if isinstance(mop, Load) and before and before.value != mop.value and (mop.key, mop.value) not in own:
                yield mop
            last[mop.key] = mop


def _external(operation: Operation) -> Iterator[Load]:
    """The operation's external reads: it had done nothing to those registers before."""
    first: dict[int, Load | Store] = {}
    for mop in operation.mops:
        if isinstance(mop, Load | Store):
            first.setdefault(mop.key, mop)
    yield from (mop for _, mop in sorted(first.items()) if isinstance(mop, Load))
