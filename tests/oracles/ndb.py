"""Slow, obvious oracles for runs of NDB: plain loops over the records, without a line of the checkers.

Each oracle gives its complaints as sentences; a correct run has none. Elements are appended once per key, so (key,
element) names its transaction.
1. A transaction committed if it was answered ok, or if it is unclear and any of its elements was seen anywhere.
2. Its epoch is that of the answer; of an unclear one, that of its rows in a stream. Its generation follows from it.
3. After a restart of the whole cluster a transaction of an earlier generation is void if its global checkpoint is
   above the restored one, and stays so, whatever later restarts restore.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from harness.core.record import Complete, Evidence, Invoke, Json, Mark, State, StreamEvent

GCI_BITS = 32
GROUPS = (("d1", "d2"), ("d3", "d4"))
Element = tuple[int, int]  # Key and value.


@dataclass(slots=True)
class Transaction:
    """One transaction. `final` are its last elements by key; `is_seen`: something of it was."""

    index: int
    outcome: str
    appends: list[Element]
    reads: list[tuple[int, list[int]]]
    epoch: int | None
    transid: int | None
    is_final_phase: bool
    is_seen: bool = False
    final: dict[int, int] = field(default_factory=dict)

    @property
    def is_committed(self) -> bool:
        return self.outcome == "ok" or (self.outcome == "info" and self.is_seen)


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart of the whole cluster; number 0 is the initial start."""

    number: int
    restored: int
    first_epoch: int


@dataclass(slots=True)
class Stretch:
    """What one session closed by one watermark, and which part it followed without a break: epochs in (after, to]."""

    subscriber: str
    session: int
    after: int
    to: int
    rows: list[StreamEvent]
    began_after: int


class Observed:
    """A run's records, as the oracles look at them."""

    def __init__(self, records: Sequence[Evidence]) -> None:
        self.records = records
        self.transactions = list(_transactions(records))
        reports = {number(s.key): _pair(s.value) for s in reversed(_states(records, "restart"))}  # The first counts.
        self.restarts = [Restart(key, *pair) for key, pair in sorted(reports.items())]
        self.rows = _states(records, "row")
        self.restored = _states(records, "restored")
        self.stretches = list(_stretches(records))
        self.writer = {each: t for t in self.transactions for each in t.appends}
        self.sightings = list(self._sightings())
        for key, elements in self.sightings:
            self._see(key, elements)
        for event in records:
            if isinstance(event, StreamEvent) and event.kind == "row":
                self._deliver(event)
        self.placed = sorted(
            (t for t in self.transactions if t.is_committed and t.appends and t.epoch is not None), key=_epoch
        )

    def is_void(self, transaction: Transaction, restart: int) -> bool:
        """Is it lost by that restart of the whole cluster, or by one before?"""
        epoch = _epoch(transaction)
        own = self.generation(epoch)
        return any(own < each.number <= restart and epoch >> GCI_BITS > each.restored for each in self.restarts)

    def generation(self, epoch: int) -> int:
        """The number of the restart with which its generation began."""
        return max((each.number for each in self.restarts if each.first_epoch <= epoch), default=0)

    def due(self, after: int, to: int) -> list[Transaction]:
        """The committed writers with epochs in (after, to], as far as their epochs are known."""
        low, high = (bisect_right(self.placed, bound, key=_epoch) for bound in (after, to))
        return self.placed[low:high]

    def _sightings(self) -> Iterator[tuple[int, list[int]]]:
        """All lists that were read or dumped."""
        for transaction in self.transactions:
            yield from transaction.reads
        for state in (*self.rows, *self.restored):
            yield number(state.key), numbers(state.value)

    def _see(self, key: int, elements: list[int]) -> None:
        for element in elements:
            if (key, element) in self.writer:
                self.writer[key, element].is_seen = True

    def _deliver(self, event: StreamEvent) -> None:
        transaction = self.writer.get((number(event.key), number(event.value)))
        if transaction is not None:
            transaction.is_seen = True
            if transaction.outcome == "info":
                transaction.epoch = event.epoch


# The oracles.


def replicas(run: Observed) -> Iterator[str]:
    """All replicas of a row are equal at quiescence, and each node has every row of its group, as the end reads it."""
    dumped = {(state.node, number(state.key)): (numbers(state.value), state.position) for state in run.rows}
    nodes = {node for node, _ in dumped}
    for group in GROUPS:
        for key in sorted({key for node, key in dumped if node in group}):
            held = {node: dumped.get((node, key)) for node in group if node in nodes}
            if len({repr(each) for each in held.values()}) > 1:
                yield f"replicas of {key} differ: {held}"
    finally_read = final_lists(run)
    for (node, key), (elements, _) in dumped.items():
        if key in finally_read and finally_read[key] != elements:
            yield f"{node} has {key} as {elements}, and the last read saw {finally_read[key]}"


def restored_states(run: Observed) -> Iterator[str]:
    """What a restart restored is the replay of what was committed up to its checkpoint, and not void before."""
    for restart in run.restarts:
        dumps = [state for state in run.restored if state.txn == restart.number]
        if restart.number == 0 or not dumps:
            continue
        expected: dict[int, list[Transaction]] = defaultdict(list)
        for transaction in run.placed:
            if run.generation(_epoch(transaction)) < restart.number and not run.is_void(transaction, restart.number):
                for key in transaction.final:
                    expected[key].append(transaction)
        for node in sorted({state.node for state in dumps}):
            rows = {number(state.key): state for state in dumps if state.node == node}
            group = next(group for group in range(len(GROUPS)) if node in GROUPS[group])
            for key in sorted({*rows, *(key for key in expected if group_of(key) == group)}):
                yield from _restored_row(run, f"restart {restart.number} of {node}", key, rows.get(key), expected[key])
        present = {(number(state.key), value) for state in dumps for value in numbers(state.value)}
        groups = {group for group in range(len(GROUPS)) if any(state.node in GROUPS[group] for state in dumps)}
        yield from _halves(run, f"restart {restart.number}", present, groups)


def _restored_row(
    run: Observed, where: str, key: int, state: State | None, expected: list[Transaction]
) -> Iterator[str]:
    elements = [] if state is None else numbers(state.value)
    due = [value for transaction in expected for k, value in transaction.appends if k == key]
    missing = [value for value in due if value not in elements]
    if missing:
        yield f"{where}: {key} lacks {missing}"
    last = 0
    for place, value in enumerate(elements):
        transaction = run.writer.get((key, value))
        if transaction is None or transaction.outcome == "fail" or value in elements[:place]:
            yield f"{where}: {key} has {value}, which nobody committed, or twice"
        elif transaction.epoch is not None:
            if transaction not in expected:
                yield f"{where}: {key} has {value} of epoch {transaction.epoch}, which is void"
            if transaction.epoch < last:
                yield f"{where}: {key} has {value} of epoch {transaction.epoch} behind one of {last}"
            last = transaction.epoch
    newest = run.writer.get((key, elements[-1])) if elements else None
    if state is not None and newest is not None and newest.epoch not in (None, state.position):
        yield f"{where}: {key} is said to be of {state.position}, its last element is of {newest.epoch}"


def _halves(run: Observed, where: str, present: set[Element], groups: Collection[int]) -> Iterator[str]:
    """Also what is not known to have an epoch is there as a whole, or not at all."""
    for transaction in run.transactions:
        asked = [each for each in transaction.appends if group_of(each[0]) in groups]
        there = [each for each in asked if each in present]
        if there and there != asked:
            yield f"{where}: of T{transaction.index} there is {there} only, of {asked}"


def folds(run: Observed) -> Iterator[str]:
    """At every watermark of a session its fold is the replay of the transactions since it began to follow.

    By induction: between two watermarks come exactly the final changes of the transactions with epochs in between.
    """
    for stretch in run.stretches:
        expected = Counter(
            (key, value, transaction.epoch)
            for transaction in run.due(stretch.after, stretch.to)
            if not run.is_void(transaction, run.generation(stretch.began_after + 1))
            for key, value in transaction.final.items()
        )
        found = Counter((number(row.key), number(row.value), row.epoch) for row in stretch.rows)
        if found != expected:
            where = f"{stretch.subscriber}, session {stretch.session}, epochs {stretch.after} to {stretch.to}"
            yield f"{where}: missing {list(expected - found)}, too many {list(found - expected)}"
    yield from _units(run)
    yield from _unplaced(run)


def _units(run: Observed) -> Iterator[str]:
    """Rows name the transaction that they are of."""
    units: dict[int, int] = {}
    for stretch in run.stretches:
        for row in stretch.rows:
            transaction = run.writer.get((number(row.key), number(row.value)))
            if transaction is None or row.unit is None:
                yield f"nobody appended {row.value} to {row.key}"
            elif (
                transaction.transid not in (None, row.unit) or units.setdefault(transaction.index, row.unit) != row.unit
            ):
                yield f"a row of T{transaction.index} names transaction {row.unit}"


def _unplaced(run: Observed) -> Iterator[str]:
    """A committed element that no stream showed lies in no stretch as a whole: its neighbours bound its epoch."""
    followed: dict[tuple[str, int, int], int] = {}
    for stretch in run.stretches:
        followed[stretch.subscriber, stretch.session, stretch.began_after] = stretch.to
    for key, elements in run.sightings:
        epochs = [run.writer[key, value].epoch if (key, value) in run.writer else None for value in elements]
        for place, value in enumerate(elements):
            if epochs[place] is not None or (key, value) not in run.writer:
                continue
            if run.writer[key, value].final[key] != value:
                continue
            low = max((epoch for epoch in epochs[:place] if epoch is not None), default=0)
            high = min((epoch for epoch in epochs[place:] if epoch is not None), default=None)
            for (subscriber, session, after), to in followed.items():
                if high is not None and after < low and high <= to:
                    yield f"{subscriber}, session {session}, was not told of {key}'s {value}"


def orders(run: Observed) -> Iterator[str]:
    """Any two elements of a key have one order in all lists and in all sessions, and it does not go back in epochs."""
    lists = [*run.sightings]
    sessions: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    for stretch in run.stretches:
        for row in stretch.rows:
            sessions[stretch.subscriber, stretch.session, number(row.key)].append(number(row.value))
    lists += [(key, values) for (_, _, key), values in sessions.items()]
    before: set[tuple[int, int, int]] = set()
    for key, elements in {(key, tuple(elements)) for key, elements in lists}:
        for place, value in enumerate(elements):
            before.update((key, earlier, value) for earlier in elements[:place])
    for key, one, other in sorted(before):
        if one == other or (one < other and (key, other, one) in before):
            yield f"{key} has {one} and {other} in both orders"
        first, second = run.writer.get((key, one)), run.writer.get((key, other))
        if first is None or second is None or first.outcome == "fail" or second.outcome == "fail":
            yield f"{key} has {one} and {other}, one of which nobody committed"
        elif first.epoch is not None and second.epoch is not None and first.epoch > second.epoch:
            yield f"{key} has {one} of epoch {first.epoch} before {other} of {second.epoch}"


def identities(run: Observed) -> Iterator[str]:
    """No number is given twice: neither to two views, nor to two transactions, nor to two restarts."""
    for thing in ("view", "grant"):
        members: dict[str, str] = {}
        for state in _states(run.records, thing):
            if members.setdefault(repr(state.key), repr(state.value)) != repr(state.value):
                yield f"{thing} {state.key} has members {members[repr(state.key)]}, and {state.value}"
    transids = Counter(t.transid for t in run.transactions if t.transid is not None)
    yield from (f"transaction number {transid} was given twice" for transid, count in transids.items() if count > 1)
    starts = [restart.number for restart in run.restarts]
    if starts[:1] != [0] or starts != sorted(set(starts)):  # One that was tried in vain has a number, too.
        yield f"the starts of the whole cluster are numbered {starts}"


def final_reads(run: Observed) -> Iterator[str]:
    """The last reads have all that was acknowledged and is not void, once; nothing void, no half of a transaction."""
    newest = run.restarts[-1].number
    lists = final_lists(run)
    yield from _halves(run, "the end", {(key, value) for key in lists for value in lists[key]}, range(len(GROUPS)))
    for (key, value), transaction in run.writer.items():
        count = lists[key].count(value) if key in lists else 0
        is_void = transaction.epoch is not None and run.is_void(transaction, newest)
        if key not in lists:
            yield f"{key} was not read at the end"
        elif transaction.outcome == "ok" and not is_void and count != 1:
            yield f"{key}'s {value}, which T{transaction.index} appended, is there {count} times at the end"
        elif (transaction.outcome == "fail" or is_void) and count:
            yield f"{key}'s {value} of T{transaction.index} is there at the end, though failed or void"
        elif count > 1:
            yield f"{key}'s {value} is there {count} times at the end"


def final_lists(run: Observed) -> dict[int, list[int]]:
    """What the last read of each key saw."""
    return {key: seen for t in run.transactions if t.is_final_phase for key, seen in t.reads}


ORACLES = {
    "replicas": replicas,
    "restored states": restored_states,
    "folds": folds,
    "orders": orders,
    "identities": identities,
    "final reads": final_reads,
}


def complaints(records: Sequence[Evidence]) -> dict[str, list[str]]:
    """What each oracle has to say that says something."""
    run = Observed(records)
    said = {name: list(oracle(run)) for name, oracle in ORACLES.items()}
    return {name: sentences for name, sentences in said.items() if sentences}


# Reading the records.


def group_of(key: int) -> int:
    """The node group of a key: even fragments of four belong to the first, odd ones to the second."""
    return key % 4 % 2


def number(value: Json) -> int:
    assert isinstance(value, int)
    return value


def numbers(value: Json) -> list[int]:
    assert isinstance(value, list)
    return [number(each) for each in value]


def _pair(value: Json) -> tuple[int, int]:
    first, second = numbers(value)
    return first, second


def _epoch(transaction: Transaction) -> int:
    assert transaction.epoch is not None
    return transaction.epoch


def _states(records: Sequence[Evidence], thing: str) -> list[State]:
    return [record for record in records if isinstance(record, State) and record.object == thing]


def _transactions(records: Sequence[Evidence]) -> Iterator[Transaction]:
    asked: dict[int, Invoke] = {}
    is_final_phase = False
    for record in records:
        match record:
            case Mark(phase="final"):
                is_final_phase = True
            case Invoke():
                asked[record.index] = record
            case Complete():
                appends = [
                    (number(mop.key), number(mop.value)) for mop in asked[record.index].mops or () if mop.f == "append"
                ]
                reads = [(number(mop.key), numbers(mop.value)) for mop in record.mops or () if mop.f == "r"]
                yield Transaction(
                    index=record.index,
                    outcome=record.outcome,
                    appends=appends,
                    reads=reads if record.outcome == "ok" else [],
                    epoch=record.epoch,
                    transid=record.txn,
                    is_final_phase=is_final_phase,
                    final=dict(appends),
                )


def _stretches(records: Sequence[Evidence]) -> Iterator[Stretch]:
    """What each watermark closed, where the session had told from where on it follows."""
    open_ones: dict[tuple[str, int], Stretch] = {}
    for record in records:
        if not isinstance(record, StreamEvent):
            continue
        who = (record.subscriber, record.session)
        current = open_ones.get(who)
        match record.kind:
            case "open":
                after = number(record.position)
                open_ones[who] = Stretch(*who, after, after, [], after)
            case "row" if current is not None:
                current.rows.append(record)
            case "watermark" if current is not None:
                to, began = number(record.position), current.began_after
                yield Stretch(*who, current.after, to, current.rows, began)
                open_ones[who] = Stretch(*who, to, to, [], began)
            case "gap" | "close":
                open_ones.pop(who, None)
            case _:
                pass
