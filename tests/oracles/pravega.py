"""Slow, obvious oracles for runs of Pravega: plain loops over the records, without a line of the checkers.

Each oracle gives its complaints as sentences; a correct run has none. An element is appended once per key. The stream
of a key is what the dumped segments hold of it: those that cover its hash, epoch by epoch.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

from msgspec import convert

from harness.core.record import Complete, Evidence, Invoke, Json, State, StreamEvent

Place = tuple[int, int]  # The epoch of a segment, and an offset in it: places of one key are ordered by it.
Shown = tuple[Json, Json, int, str, int]  # An event: key, element, transaction (0: none), writer, its number there.
Dumped = tuple[bool, list[Shown], int]  # A segment: is it sealed, its events, and the first that was not truncated.
EpochOf = tuple[int, list[tuple[int, int, int, int]]]  # Its reference; and for each segment low, high, number, epoch.
Cut = tuple[int, list[tuple[int, int, int]]]  # The number of a checkpoint; and number, epoch, offset of its segments.
SPACE = 1 << 16


class Run:
    """What the records of a run hold, sorted out."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self.asked = {record.index: record for record in evidence if isinstance(record, Invoke)}
        self.ended = {record.index: record for record in evidence if isinstance(record, Complete)}
        self.events = [each for each in evidence if isinstance(each, StreamEvent) and each.span is not None]
        self.rows = [each for each in self.events if each.kind == "row"]
        states = [record for record in evidence if isinstance(record, State)]
        self.segments = {str(state.key): convert(state.value, Dumped) for state in states if state.object == "segment"}
        self.epochs = [convert(state.value, EpochOf) for state in states if state.object == "epoch"]
        self.statuses = {state.key: state.value for state in states if state.object == "txn"}
        self.changes = [convert(state.value, list[Any]) for state in states if state.object == "change"]
        self.restored = [(state.key, *convert(state.value, Cut)) for state in states if state.object == "restored"]
        self.numbers = [state.key for state in states if state.object == "epoch"]

    def stream(self, key: Json) -> list[tuple[Place, Shown]]:
        """The events of a key in order, each with its place."""
        place = crc32(str(key).encode()) % SPACE
        path = dict.fromkeys(
            (number, epoch) for _, spans in self.epochs for low, high, number, epoch in spans if low <= place < high
        )
        return [
            ((epoch, offset), event)
            for number, epoch in path
            for offset, event in enumerate(self.segments[f"{number}/{epoch}"][1])
            if event[0] == key
        ]

    def is_truncated(self, key: Json, place: Place) -> bool:
        """True if what is there was truncated."""
        where = crc32(str(key).encode()) % SPACE
        return any(
            epoch == place[0] and low <= where < high and place[1] < self.segments[f"{number}/{epoch}"][2]
            for _, spans in self.epochs
            for low, high, number, epoch in spans
        )

    def used(self) -> list[Json]:
        """All keys that operations name."""
        return list(dict.fromkeys(mop.key for asked in self.asked.values() for mop in asked.mops or ()))


def complaints(evidence: Sequence[Evidence]) -> dict[str, list[str]]:
    """The sentences of each oracle that has any."""
    run = Run(evidence)
    found = {
        "epochs": list(_epochs(run)),
        "acknowledged": list(_acknowledged(run)),
        "transactions": list(_transactions(run)),
        "writers": list(_writers(run)),
        "orders": list(_orders(run)),
        "reads": list(_reads(run)),
        "deliveries": list(_deliveries(run)),
        "readers": list(_readers(run)),
        "statuses": list(_statuses(run)),
        "processor": list(_processor(run)),
        "cuts": list(_cuts(run)),
        "times": list(_times(run)),
        "restorations": list(_restorations(run)),
    }
    return {name: sentences for name, sentences in found.items() if sentences}


def _epochs(run: Run) -> Iterator[str]:
    """Each epoch cuts the whole space of keys; a copy has the numbers and keys of what it refers to."""
    if run.numbers != list(range(len(run.epochs))):
        yield f"the epochs are {run.numbers}"
    for number, (reference, spans) in zip(run.numbers, run.epochs, strict=True):
        edge = 0
        for low, high, _, _ in spans:
            if low != edge:
                yield f"epoch {number} has a hole or an overlap at {edge}"
            edge = high
        if edge != SPACE:
            yield f"epoch {number} ends at {edge}"
        root = run.epochs[reference]
        if root[0] != reference:
            yield f"epoch {number} refers to {reference}, which is a copy itself"
        if [span[:3] for span in spans] != [span[:3] for span in root[1]]:
            yield f"epoch {number} is no copy of epoch {reference}"
    active = [f"{number}/{epoch}" for _, _, number, epoch in run.epochs[-1][1]]
    past = dict.fromkeys(f"{number}/{epoch}" for _, spans in run.epochs[:-1] for _, _, number, epoch in spans)
    for name in past:
        if name not in active and not run.segments[name][0]:
            yield f"segment {name} is in the past, and open"


def _acknowledged(run: Run) -> Iterator[str]:
    """What was acknowledged is there once, what failed is not, and nothing is there twice, or in the wrong segment."""
    counts = Counter((key, event[1]) for key in run.used() for _, event in run.stream(key))
    for index, asked in run.asked.items():
        outcome = run.ended[index].outcome if index in run.ended else "info"
        expected = {"ok": (1,), "fail": (0,), "info": (0, 1)}[outcome]
        for mop in asked.mops or ():
            count = counts[mop.key, mop.value]
            if mop.f == "append" and count not in expected:
                yield f"operation {index} was {outcome}, and {mop.value} is {count} times in the stream of {mop.key}"
    listed = dict.fromkeys(f"{number}/{epoch}" for _, spans in run.epochs for _, _, number, epoch in spans)
    everywhere = Counter((event[0], event[1]) for name in listed for event in run.segments[name][1])
    for (key, element), count in everywhere.items():
        if counts[key, element] != count:
            yield f"{element} of {key} is {count} times in segments, and {counts[key, element]} times in its stream"


def _transactions(run: Run) -> Iterator[str]:
    """A transaction is there whole or not at all, its events of a segment together, and those of a key in order."""
    for index, asked in run.asked.items():
        appends = [mop for mop in asked.mops or () if mop.f == "append"]
        if len(appends) < 2:
            continue
        there = 0
        for key in dict.fromkeys(mop.key for mop in appends):
            wanted = [mop.value for mop in appends if mop.key == key]
            held = [event[1] for _, event in run.stream(key) if event[1] in wanted]
            there += len(held)
            if held and held != wanted:
                yield f"operation {index} appended {wanted} to {key}, and that has {held}"
        if there not in (0, len(appends)):
            yield f"of operation {index} {there} of {len(appends)} events are there"
    for name, (_, events, _) in run.segments.items():
        blocks = [event[2] for at, event in enumerate(events) if event[2] and (not at or events[at - 1][2] != event[2])]
        if len(blocks) != len(set(map(str, blocks))):
            yield f"in segment {name} a transaction is in several places: {blocks}"


def _writers(run: Run) -> Iterator[str]:
    """The plain events of a writer are in the order in which it took them, key by key."""
    for key in run.used():
        last: dict[str, int] = {}
        for _, (_, element, txn, writer, number) in run.stream(key):
            if not txn and number <= last.get(writer, 0):
                yield f"{element} of {key} is number {number} of {writer}, behind number {last[writer]}"
            if not txn:
                last[writer] = number


def _orders(run: Run) -> Iterator[str]:
    """There is one order of transactions: those of one epoch come in the same order wherever two of them meet."""
    before: dict[int, set[int]] = defaultdict(set)
    for key in run.used():
        txns = [event[2] for _, event in run.stream(key) if event[2]]
        for at, one in enumerate(txns):
            before[one].update(other for other in txns[at + 1 :] if other != one)
    done: set[int] = set()
    while ready := [txn for txn in before if txn not in done and before[txn] <= done]:
        done.update(ready)
    if left := [txn for txn in before if txn not in done]:
        yield f"transactions {left} are in no order"


def _reads(run: Run) -> Iterator[str]:
    """A read is a beginning of its key's stream, and has what was acknowledged before it began."""
    for index, end in run.ended.items():
        for mop in (end.mops or ()) if end.outcome == "ok" else ():
            if mop.f != "r":
                continue
            stream = [event[1] for _, event in run.stream(mop.key)]
            assert isinstance(mop.value, list)
            if stream[: len(mop.value)] != mop.value:
                yield f"T{index} read {mop.key} as {mop.value}, and its stream is {stream}"
            for other, asked in run.asked.items():
                answer = run.ended.get(other)
                if answer is None or answer.outcome != "ok" or answer.time_ns > run.asked[index].time_ns:
                    continue
                for append in asked.mops or ():
                    if append.f == "append" and append.key == mop.key and append.value not in mop.value:
                        yield f"T{index} read {mop.key} without {append.value}, which T{other} had appended"


def _deliveries(run: Run) -> Iterator[str]:
    """What readers deliver is what stands there; and the group delivers all, each key in the order of its stream.

    A reader that skipped truncated events may be followed by one that still finds them, with a former owner.
    """
    first: dict[Json, list[Place]] = defaultdict(list)
    for row in run.rows:
        number, epoch = map(int, str(row.span).split("/"))
        assert row.position is not None
        _, events, _ = run.segments[f"{number}/{epoch}"]
        if row.position >= len(events) or events[row.position][:2] != (row.key, row.value):
            yield f"{row.subscriber} read {row.value} of {row.key} at {row.position} of {row.span}"
        if (epoch, row.position) not in first[row.key]:
            first[row.key].append((epoch, row.position))
    for key in run.used():
        places = [place for place, _ in run.stream(key) if not run.is_truncated(key, place)]
        came = [place for place in first[key] if not run.is_truncated(key, place)]
        if came != places:
            yield f"of {key} were delivered {came}, and its stream is {places}"


def _readers(run: Run) -> Iterator[str]:
    """A segment ends where it was sealed, and from where a session opens it each event comes once, in order."""
    reached: dict[tuple[str, int, str], int] = {}
    for event in run.events:
        at, position = (event.subscriber, event.session, str(event.span)), event.position
        if event.kind == "open":
            assert position is not None
            reached[at] = position - 1
        elif event.kind == "row":
            if position != reached[at] + 1:
                yield f"{event.subscriber} read {position} of {event.span} after {reached[at]}"
            assert position is not None
            reached[at] = position
        elif event.kind == "gap":
            assert position is not None
            reached[at] = position - 1
        elif event.kind == "end":
            is_sealed, events, _ = run.segments[str(event.span)]
            if not is_sealed or reached[at] != len(events) - 1:
                yield f"{event.subscriber} saw the end of {event.span} at {reached[at]}, which has {len(events)} events"


def _restorations(run: Run) -> Iterator[str]:
    """Sessions after a restoration read nothing that lies before it, and after the last one all that does not."""
    for at, (session, _, cut) in enumerate(run.restored):
        end = run.restored[at + 1][0] if at + 1 < len(run.restored) else None
        read: dict[Json, set[Place]] = defaultdict(set)
        for row in run.rows:
            assert isinstance(session, int)
            assert row.position is not None
            if session < row.session and (not isinstance(end, int) or row.session <= end):
                read[row.key].add((int(str(row.span).split("/")[1]), row.position))
        for key in run.used():
            where = crc32(str(key).encode()) % SPACE
            path = [span[2:] for _, spans in run.epochs for span in spans if span[0] <= where < span[1]]
            covers = [(epoch, offset) for number, epoch, offset in cut if (number, epoch) in path]
            places = [place for place, _ in run.stream(key)]
            behind = [place for place in places if place >= min(covers)]
            if early := [place for place in read[key] if place < min(covers)]:
                yield f"of {key} {early} were read after restoration {session} to {min(covers)}"
            lost = [place for place in behind if place not in read[key] and not run.is_truncated(key, place)]
            if lost and end is None:
                yield f"of {key} {lost} were not read after restoration {session} to {min(covers)}"


def _statuses(run: Run) -> Iterator[str]:
    """An accepted commit ends as committed, and what answers show of a transaction only goes on."""
    rank = {"unknown": 0, "open": 1, "committing": 2, "aborting": 2, "committed": 3, "aborted": 3}
    shown: list[tuple[int, int, Any, str]] = []
    for index, end in run.ended.items():
        begun = run.asked[index].time_ns
        if end.outcome == "ok" and end.txn is not None:
            shown.append((begun, end.time_ns, end.txn, "committing"))
            if run.statuses.get(end.txn) not in ("committing", "committed"):
                yield f"transaction {end.txn} of operation {index} is {run.statuses.get(end.txn)}"
        elif end.outcome == "ok" and run.asked[index].f == "status":
            shown += [(begun, end.time_ns, txn, status) for txn, status in convert(end.value, list[tuple[int, str]])]
    for _, ended, txn, before in shown:
        for begun, _, other, after in shown:
            is_later = txn == other and ended < begun
            if is_later and (rank[after] < rank[before] or (rank[before] >= 2 and before[0] != after[0])):
                yield f"transaction {txn} was {before}, and then {after}"
    if ["state", "sealed"] in run.changes:
        for txn, status in run.statuses.items():
            if status not in ("committed", "aborted"):
                yield f"the stream is sealed, and transaction {txn} is {status}"


def _processor(run: Run) -> Iterator[str]:
    """Scales move the epoch by one while the stream scales, rolls by two while it commits; batches stay the same."""
    state, current, batch = "active", 0, None
    order: list[int] = []
    for what, *values in run.changes:
        if what == "state":
            state = values[0]
        elif what == "epoch":
            step, current = values[0] - current, values[0]
            if (
                step not in (0, 1, 2)
                or (step == 1) != (state == "scaling" and step == 1)
                or (step == 2 and state == "scaling")
            ):
                yield f"epoch {current} came by {step} while the stream was {state}"
        elif what == "committing":
            if batch is None:
                order += values[1]
            elif batch != values[1]:
                yield f"batch {batch} became {values[1]}"
            batch = values[1]
        elif what == "committed":
            batch = None
    for name, (_, events, _) in run.segments.items():
        places = [order.index(event[2]) for event in events if event[2] in order]
        if "/" in name and places != sorted(places) and name.count("/") == 1:
            yield f"segment {name} has transactions in the order {places}"


def _cuts(run: Run) -> Iterator[str]:
    """Nothing is truncated behind the last cut."""
    cuts = [values for what, *values in run.changes if what == "truncated" and values[0] >= 0]
    before = (
        {f"{number}/{created}" for _, spans in run.epochs[: cuts[-1][0]] for *_, number, created in spans}
        if cuts
        else set()
    )
    at = {f"{number}/{created}": offset for number, created, offset in cuts[-1][1]} if cuts else {}
    for name, (_, _, start) in run.segments.items():
        if start and name.count("/") == 1 and start > at.get(name, start if name in before else 0):
            yield f"segment {name} begins at {start}"


def _times(run: Run) -> Iterator[str]:
    """What a writer had acknowledged by the time of a watermark that counts it lies before the cut."""
    marks = [values for what, *values in run.changes if what == "mark"]
    acknowledged = {
        (mop.key, mop.value): run.ended[index].time_ns
        for index, asked in run.asked.items()
        if index in run.ended and run.ended[index].outcome == "ok"
        for mop in asked.mops or ()
        if mop.f == "append"
    }
    for key in run.used():
        where = crc32(str(key).encode()) % SPACE
        path = list(
            dict.fromkeys((n, e) for _, spans in run.epochs for low, high, n, e in spans if low <= where < high)
        )
        for (epoch, offset), (_, element, txn, writer, _) in run.stream(key):
            place = next(each for each in path if each[1] == epoch)
            for time_ns, cut, writers in marks:
                if txn or writer not in writers or acknowledged.get((key, element), time_ns + 1) > time_ns:
                    continue
                ends = [(path.index((n, e)), end) for n, e, end in cut if (n, e) in path]
                if all((path.index(place), offset) >= end for end in ends):
                    yield f"{element} of {key} lies behind the cut of {time_ns}"
