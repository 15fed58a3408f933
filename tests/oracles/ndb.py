"""Slow, obvious oracles for runs of NDB: plain loops over the records, without a line of the checkers.

Each oracle gives its complaints as sentences; a correct run has none. Elements are appended once per key, so (key,
element) names its transaction.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

from harness.core.record import Evidence, Json, State
from tests.oracles.ndb_records import (
    GROUPS,
    Element,
    Key,
    Observed,
    Transaction,
    epoch_of,
    group_of,
    named,
    number,
    numbers,
    states_of,
)

Net = tuple[int | None, int | None]  # The row before and after; None: there is none.


def replicas(run: Observed) -> Iterator[str]:
    """All replicas of a row are equal at quiescence, and each node has every row of its group, as the end reads it."""
    dumped = {(state.node, named(state.key)): (numbers(state.value), state.position) for state in run.rows}
    nodes = {node for node, _ in dumped}
    for group in GROUPS:
        for key in sorted({key for node, key in dumped if node in group}, key=str):
            held = {node: dumped.get((node, key)) for node in group if node in nodes}
            if len({repr(each) for each in held.values()}) > 1:
                yield f"replicas of {key} differ: {held}"
    finally_read = final_lists(run)
    for (node, key), (elements, _) in dumped.items():
        read = finally_read.get(key, elements)
        # An operation of unclear outcome may commit after the last read.
        is_late = [(key, each) in run.writer and run.writer[key, each].outcome == "info" for each in elements]
        if [each for each, late in zip(elements, is_late, strict=True) if each in read or not late] != read:
            yield f"{node} has {key} as {elements}, and the last read saw {finally_read[key]}"


def restored_states(run: Observed) -> Iterator[str]:
    """What a restart restored is the replay of what was committed up to its checkpoint, and not void before."""
    for restart in run.restarts:
        dumps = [state for state in run.restored if state.txn == restart.number]
        if restart.number == 0 or not dumps:
            continue
        expected: dict[Key, list[Transaction]] = defaultdict(list)
        for transaction in run.placed:
            if run.generation(epoch_of(transaction)) < restart.number and not run.is_void(transaction, restart.number):
                for key in transaction.final:
                    expected[key].append(transaction)
        for node in sorted({state.node for state in dumps}):
            rows = {named(state.key): state for state in dumps if state.node == node}
            group = next(group for group in range(len(GROUPS)) if node in GROUPS[group])
            for key in sorted({*rows, *(key for key in expected if group_of(key) == group)}, key=str):
                yield from _restored_row(run, f"restart {restart.number} of {node}", key, rows.get(key), expected[key])
        present = {(named(state.key), value) for state in dumps for value in numbers(state.value)}
        groups = {group for group in range(len(GROUPS)) if any(state.node in GROUPS[group] for state in dumps)}
        yield from _halves(run, f"restart {restart.number}", present, groups)


def _restored_row(
    run: Observed, where: str, key: Key, state: State | None, expected: list[Transaction]
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


def _halves(
    run: Observed, where: str, present: set[Element], groups: Collection[int], until: int | None = None
) -> Iterator[str]:
    """Also what is not known to have an epoch is there as a whole, or not at all; unless it committed after `until`."""
    for transaction in run.transactions:
        if until is not None and transaction.outcome == "info" and (transaction.epoch or 0) >= until:
            continue
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
        found = Counter((named(row.key), number(row.value), row.epoch) for row in stretch.rows)
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
            transaction = run.writer.get((named(row.key), number(row.value)))
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
    sessions: dict[tuple[str, int, Key], list[int]] = defaultdict(list)
    for stretch in run.stretches:
        for row in stretch.rows:
            sessions[stretch.subscriber, stretch.session, named(row.key)].append(number(row.value))
    lists += [(key, values) for (_, _, key), values in sessions.items()]
    before: set[tuple[Key, int, int]] = set()
    for key, elements in {(key, tuple(elements)) for key, elements in lists}:
        for place, value in enumerate(elements):
            before.update((key, earlier, value) for earlier in elements[:place])
    for key, one, other in sorted(before, key=str):
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
        for state in states_of(run.records, thing):
            if members.setdefault(repr(state.key), repr(state.value)) != repr(state.value):
                yield f"{thing} {state.key} has members {members[repr(state.key)]}, and {state.value}"
    transids = Counter(t.transid for t in run.transactions if t.transid is not None)
    yield from (f"transaction number {transid} was given twice" for transid, count in transids.items() if count > 1)
    starts = [restart.number for restart in run.restarts]
    if not starts or starts != sorted(set(starts)):  # One that was tried in vain has a number, too, even the first.
        yield f"the starts of the whole cluster are numbered {starts}"


def final_reads(run: Observed) -> Iterator[str]:
    """The last reads have all that was acknowledged and is not void, once; nothing void, no half of a transaction."""
    newest = run.restarts[-1].number
    lists = final_lists(run)
    began = min((t.epoch for t in run.transactions if t.is_final_phase and t.epoch is not None), default=None)
    present = {(key, value) for key in lists for value in lists[key]}
    yield from _halves(run, "the end", present, range(len(GROUPS)), began)
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


def final_lists(run: Observed) -> dict[Key, list[int]]:
    """What the last read of each key saw."""
    return {key: seen for t in run.transactions if t.is_final_phase for key, seen in t.reads}


def merges(run: Observed) -> Iterator[str]:
    """A merged event leads from the row before the epoch to the row after it. Nothing became nothing: no event.

    What came before an element never changes: a restart only cuts lists off.
    """
    before: dict[Element, int | None] = {}
    for key, elements in run.sightings:
        for place, value in enumerate(elements):
            before[key, value] = elements[place - 1] if place else None
    told: dict[tuple[str, int, int], dict[Key, Net]] = defaultdict(dict)
    for state in states_of(run.records, "merged"):
        assert isinstance(state.value, list)
        session, first, last = state.value
        told[state.node, number(session), number(state.position)][named(state.key)] = (_there(first), _there(last))
    for stretch in run.stretches if told else ():
        due: dict[Key, Net] = {}
        said = dict(told[stretch.subscriber, stretch.session, stretch.to])
        for key in {named(row.key) for row in stretch.rows}:
            changes = {number(row.value) for row in stretch.rows if row.key == key}
            if all((key, value) in before for value in changes):
                [first] = [before[key, value] for value in changes if before[key, value] not in changes]
                [last] = changes - {before[key, value] for value in changes}
                due[key] = _there(first), _there(last)
            else:  # Nobody read the row.
                said.pop(key, None)
        due = {key: net for key, net in due.items() if net != (None, None)}
        if said != due:
            yield f"{stretch.subscriber}, session {stretch.session}, merged {said} in {stretch.to}, due is {due}"


def _there(value: Json) -> int | None:
    """The row after an element: a number below zero deletes it."""
    return None if value is None or number(value) < 0 else number(value)


ORACLES = {
    "replicas": replicas,
    "restored states": restored_states,
    "folds": folds,
    "orders": orders,
    "identities": identities,
    "final reads": final_reads,
    "merges": merges,
}


def complaints(records: Sequence[Evidence]) -> dict[str, list[str]]:
    """What each oracle has to say that says something."""
    run = Observed(records)
    said = {name: list(oracle(run)) for name, oracle in ORACLES.items()}
    return {name: sentences for name, sentences in said.items() if sentences}
