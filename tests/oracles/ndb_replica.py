"""Slow, obvious oracles for binlogs and replicas of NDB: plain loops over the records, without a line of the checkers.

Each oracle gives its complaints as sentences; a correct run has none. The source's log is what injectors received, by
epochs; a replica that is at an epoch has every element of the epochs up to it, in their order, and no other.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from harness.core.record import Complete, Evidence, Invoke, State, StreamEvent

SCHEMA = "schema"
Row = tuple[Any, Any]


class Observed:
    """A run's records, as the oracles look at them."""

    def __init__(self, records: Sequence[Evidence]) -> None:
        invoked = {each.index: each for each in records if isinstance(each, Invoke)}
        self.done = [
            (invoked[each.index], each) for each in records if isinstance(each, Complete) and each.outcome == "ok"
        ]
        self.received: dict[str, dict[int, list[Row]]] = {}  # By injector and epoch.
        for each in records:
            if isinstance(each, StreamEvent) and each.kind == "row" and each.position is not None:
                epochs = self.received.setdefault(each.subscriber, {})
                epochs.setdefault(each.position, []).append((each.key, each.value))
        self.epochs: dict[int, list[Row]] = {}
        for received in self.received.values():
            for epoch, rows in received.items():
                self.epochs.setdefault(epoch, rows)
        self.shown: dict[tuple[str, str], Any] = {
            (each.object, str(each.key)): each.value for each in records if isinstance(each, State)
        }  # The last one counts.

    def of(self, thing: str) -> Iterator[tuple[str, Any]]:
        """The states of that kind, by node."""
        for (kind, node), value in self.shown.items():
            if kind == thing:
                yield node, value

    def at(self, epoch: int) -> dict[Any, list[Any]]:
        """The lists after that epoch."""
        lists: dict[Any, list[Any]] = {}
        for number in sorted(self.epochs):
            if number <= epoch:
                for key, value in self.epochs[number]:
                    if key != SCHEMA:
                        lists.setdefault(key, []).append(value)
        return lists


def complaints(records: Sequence[Evidence]) -> dict[str, list[str]]:
    """The complaints of each oracle that has some."""
    run = Observed(records)
    oracles = {
        "binlogs": binlogs(run),
        "acknowledged": acknowledged(run),
        "index": index(run),
        "reads": reads(run),
        "end": end(run),
        "restores": restores(run),
    }
    found = {name: [*sentences] for name, sentences in oracles.items()}
    return {name: sentences for name, sentences in found.items() if sentences}


def binlogs(run: Observed) -> Iterator[str]:
    """Each transaction has what the injector received in its epoch, and each epoch is there once."""
    for node, log in run.of("binlog"):
        for epoch, count in Counter(epoch for kind, epoch, _, _ in log if kind == "epoch").items():
            if count > 1:
                yield f"{node} has {epoch} {count} times"
        for kind, epoch, _, rows in log:
            there = [(key, value) for key, value in run.received.get(node, {}).get(epoch, []) if key != SCHEMA]
            if kind == "epoch" and Counter(map(repr, there)) != Counter(repr((key, value)) for key, value in rows):
                yield f"{node} has {rows} in {epoch}, and received {there}"


def acknowledged(run: Observed) -> Iterator[str]:
    """Between two transactions without an incident each acknowledged change of an epoch between them is there."""
    for node, log in run.of("binlog"):
        there = {epoch for kind, epoch, _, _ in log if kind == "epoch"}
        for _, complete in run.done:
            mops = complete.mops or ()
            if complete.epoch is None or not any(mop.f == "append" and mop.key != SCHEMA for mop in mops):
                continue
            before = [at for at, each in enumerate(log) if each[0] == "epoch" and each[1] < complete.epoch]
            after = [at for at, each in enumerate(log) if each[0] == "epoch" and each[1] > complete.epoch]
            if before and after and complete.epoch not in there:
                between = log[before[-1] : after[0]]
                if not any(kind == "incident" for kind, _, _, _ in between):
                    yield f"{node} lacks {complete.epoch} of T{complete.index}"


def index(run: Observed) -> Iterator[str]:
    """Each row names the place of its epoch."""
    for node, rows in run.of("binlog-index"):
        log = run.shown["binlog", node]
        for epoch, position, next_position, count in rows:
            between = log[position:next_position]
            if [each[:2] for each in between] != [["epoch", epoch]] or len(between[0][3]) != count:
                yield f"{node} has {epoch} at {position} to {next_position}, where {between} is"


def reads(run: Observed) -> Iterator[str]:
    """Each read of the replica has the lists after the epoch that it names."""
    for invoke, complete in run.done:
        if invoke.f == "replica-read":
            value: Any = complete.value
            (((_, epoch),), lists) = value
            due = run.at(epoch)
            for key, elements in lists:
                if elements != due.get(key, []):
                    yield f"T{invoke.index} read {elements} under {key} at {epoch}, where {due.get(key, [])} is due"


def restores(run: Observed) -> Iterator[str]:
    """A restore has what was committed up to its epoch, and nothing later: as of restarts, see ndb_records.py."""
    restarts = [(value[0], value[1]) for _, value in run.of("restart")]
    for invoke, complete in run.done:
        if invoke.f != "restore":
            continue
        value: Any = complete.value
        gci, until, lists = value
        held = {str(key): elements for key, elements in lists}
        for asked, answer in run.done:
            epoch, appends = answer.epoch, [mop for mop in asked.mops or () if mop.f == "append"]
            if epoch is None:
                continue
            is_void = any(epoch < first <= until and epoch >> 32 > restored for restored, first in restarts)
            is_due = epoch <= until and not is_void
            for place, mop in enumerate(appends):
                is_last = all(later.key != mop.key for later in appends[place + 1 :])
                is_there = mop.value in held.get(str(mop.key), [])
                if mop.key != SCHEMA and is_there and not is_due:
                    yield f"T{invoke.index} restored {mop.key}'s {mop.value} of {epoch} at {until}"
                if mop.key != SCHEMA and not is_there and is_due and (is_last or epoch >> 32 <= gci):
                    yield f"T{invoke.index} has not restored {mop.key}'s {mop.value} of {epoch} at {until}"


def end(run: Observed) -> Iterator[str]:
    """At rest the replica has everything, unless both binlogs have a gap behind its epoch."""
    for node, (is_at_end, status, schema) in run.of("replica"):
        latest = max((epoch for _, epoch in status), default=0)
        held = dict(run.shown["replica-state", node][1])
        due = run.at(latest)
        if held != due:
            yield f"{node} has {held} at {latest}, where {due} is due"
        incidents = [
            [until for kind, until, _, _ in log if kind == "incident" and until > latest] for _, log in run.of("binlog")
        ]
        if is_at_end and not all(incidents):
            yield f"{node} has stopped at {latest}, and a binlog has no gap after it"
        if not is_at_end:
            last = max(
                (epoch for epoch, rows in run.epochs.items() if any(key != SCHEMA for key, _ in rows)), default=0
            )
            changes = [value for rows in run.epochs.values() for key, value in rows if key == SCHEMA]
            if latest != last or {*map(repr, changes)} - {*map(repr, schema)}:
                yield f"{node} ends at {latest} of {last}, with the schema {schema} of {changes}"
