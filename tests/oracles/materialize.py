"""Slow, obvious oracles for runs of Materialize: plain loops over the records, without a line of the checkers.

Each oracle gives its complaints as sentences; a correct run has none. The state at a timestamp is rebuilt from the
timestamps that answers name. Writes without an answer may be there or not.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from harness.core.record import Complete, Evidence, Fault, Invoke, Json, Probe, State, StreamEvent

STRICT = ("txn", "change", "query", "read-source")


class Run:
    """What the records of a run hold, sorted out."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self.asked = {record.index: record for record in evidence if isinstance(record, Invoke)}
        self.ended = {record.index: record for record in evidence if isinstance(record, Complete)}
        self.done = {index: end for index, end in self.ended.items() if end.outcome == "ok"}
        self.events = [record for record in evidence if isinstance(record, StreamEvent)]
        self.states = [record for record in evidence if isinstance(record, State)]
        self.epochs = [record for record in evidence if isinstance(record, Probe) and record.name == "epoch"]
        self.bounds = [record for record in evidence if isinstance(record, Probe) and record.name == "bound"]
        self.faults = [record for record in evidence if isinstance(record, Fault)]

    def ok(self, *names: str) -> Iterator[tuple[Invoke, Complete]]:
        """The operations of those names that succeeded."""
        for index, end in self.done.items():
            if self.asked[index].f in names:
                yield self.asked[index], end

    def loose(self) -> set[tuple[Json, Json]]:
        """The elements, with their keys, of appends whose outcome is not known."""
        return {
            (mop.key, mop.value)
            for index, asked in self.asked.items()
            for mop in asked.mops or ()
            if mop.f == "append" and (index not in self.ended or self.ended[index].outcome == "info")
        }

    def placed(self) -> dict[Json, list[tuple[int, Json]]]:
        """For each key the elements whose timestamps are known, with these."""
        found: dict[Json, list[tuple[int, Json]]] = defaultdict(list)
        for asked, end in self.ok("txn"):
            for mop in asked.mops or ():
                if mop.f == "append":
                    assert end.commit_ts is not None
                    found[mop.key].append((end.commit_ts, mop.value))
        return found


def complaints(evidence: Sequence[Evidence], *, is_strict: bool = True) -> dict[str, list[str]]:
    """The sentences of each oracle that has any. `is_strict`: all reads were strictly serializable."""
    run = Run(evidence)
    found = {
        "lists": list(_lists(run)),
        "rows": list(_rows(run)),
        "shards": list(_shards(run)),
        "source": list(_source(run, is_strict=is_strict)),
        "streams": list(_streams(run)),
        "epochs": list(_epochs(run)),
        "created": list(_created(run)),
        "counted": list(_counted(run)),
        "waits": list(_waits(run)),
    }
    if is_strict:
        found |= {"real time": list(_real_time(run)), "leaders": list(_leaders(run))}
    return {name: sentences for name, sentences in found.items() if sentences}


def _lists(run: Run) -> Iterator[str]:
    """Each read of lists, whatever its kind, is the state at its timestamp."""
    placed, loose = run.placed(), run.loose()
    for asked, end in run.ok("txn", "stale-read", "serializable-read"):
        if end.read_ts is None:
            continue
        reads: list[Any] = [[mop.key, mop.value] for mop in end.mops or () if mop.f == "r"]
        if asked.f != "txn":
            assert isinstance(end.value, list)
            reads = end.value
        for key, seen in reads:
            due = {value: ts for ts, value in placed[key] if ts <= end.read_ts}
            shown = [value for value in seen if (key, value) not in loose]
            if len(set(seen)) != len(seen) or set(shown) != set(due):
                yield f"T{asked.index} read {key} at {end.read_ts} as {seen}, which should be {list(due)}"
            elif [due[value] for value in shown] != sorted(due[value] for value in shown):
                yield f"T{asked.index} read {key} at {end.read_ts} out of order: {seen}"


def _real_time(run: Run) -> Iterator[str]:
    """Timestamps follow real time."""
    for asked, end in run.ok(*STRICT):
        for before, past in run.ok(*STRICT):
            if past.time_ns >= asked.time_ns:
                continue
            floor = past.commit_ts if past.commit_ts is not None else past.read_ts
            if floor is not None and end.read_ts is not None and end.read_ts < floor:
                yield f"T{asked.index} read at {end.read_ts}, after T{before.index} had ended at {floor}"
            if floor is not None and end.commit_ts is not None and end.commit_ts <= floor:
                yield f"T{asked.index} wrote at {end.commit_ts}, after T{before.index} had ended at {floor}"


def _leaders(run: Run) -> Iterator[str]:
    """A later epoch has higher timestamps, and no epoch answers what was asked after its end."""
    highest: dict[int, int] = defaultdict(int)
    lowest: dict[int, int] = {}
    for asked, end in run.ok(*STRICT):
        for ts in (end.read_ts, end.commit_ts):
            if ts is not None and end.epoch is not None:
                highest[end.epoch] = max(highest[end.epoch], ts)
                lowest[end.epoch] = min(lowest.get(end.epoch, ts), ts)
        last = max((probe.value for probe in run.epochs if probe.time_ns < asked.time_ns), default=0)
        if end.read_ts is not None and end.epoch is not None and end.epoch < last:
            yield f"T{asked.index} was answered by epoch {end.epoch} after epoch {last} had begun"
    for epoch, low in lowest.items():
        for earlier, high in highest.items():
            if earlier < epoch and high > low:
                yield f"epoch {epoch} gave {low}, and epoch {earlier} {high}"


def _rows(run: Run) -> Iterator[str]:
    """A query of a table shows the rows that were inserted by then and not deleted."""
    unclear: set[str] = set()
    changes: dict[str, list[tuple[int, Json, Json, int]]] = defaultdict(list)
    for index, asked in run.asked.items():
        if asked.f != "change":
            continue
        rows: Any = asked.value
        if index not in run.ended or run.ended[index].outcome == "info":
            unclear.add(f"{rows[0][0]} {rows[0][1]}")
        elif index in run.done and run.done[index].commit_ts is not None:
            shown: Any = run.done[index].value
            for table, key, value, diff in shown:
                changes[table].append((run.done[index].commit_ts or 0, key, value, diff))
    for asked, end in run.ok("query"):
        answer: Any = end.value
        name, shown = answer
        if name in ("sums", "pairs", "kinds", "tops"):
            continue
        state: Counter[str] = Counter()
        for ts, key, value, diff in changes[name]:
            if ts <= (end.read_ts or 0) and f"{name} {key}" not in unclear:
                state[f"{key} {value}"] += diff
        seen = Counter(f"{key} {value}" for key, value in shown if f"{name} {key}" not in unclear)
        if {row: count for row, count in state.items() if count} != seen:
            yield f"T{asked.index} read {name} at {end.read_ts} as {dict(seen)}, which should be {dict(state)}"


def _shards(run: Run) -> Iterator[str]:
    """Each append begins where the one before it ended, epochs do not go back, and no row is there less than never."""
    for state in run.states:
        value: Any = state.value
        if state.object == "shard":
            upper = last = 0
            for expected, new, epoch, at_ns in value:
                if expected != upper or new <= upper or epoch < last:
                    yield f"shard {state.key} at {upper} of epoch {last} got {expected} to {new} of epoch {epoch}"
                for end in run.done.values() if epoch else ():
                    if end.epoch is not None and end.epoch > epoch and end.time_ns < at_ns:
                        yield f"shard {state.key} got {expected} of epoch {epoch} after epoch {end.epoch} had answered"
                upper, last = new, epoch
        if state.object == "negative" and value:
            yield f"table {state.key} has {value}"


def _source(run: Run, *, is_strict: bool) -> Iterator[str]:
    """Reads of the source are beginnings of the upstream log, longer at higher timestamps, with all acknowledged."""
    logs: list[Any] = [state.value for state in run.states if state.object == "upstream"]
    length: dict[int, int] = {}
    for asked, end in run.ok("read-source", "source-as-of"):
        answer: Any = end.value
        values = [value for _, value in answer[1]]
        if logs and values != logs[-1][1][: len(values)]:
            yield f"T{asked.index} read {values} of {logs[-1][1]}"
        if length.setdefault(end.read_ts or 0, len(values)) != len(values):
            yield f"T{asked.index} read {len(values)} records at {end.read_ts}, and another read had others"
        for written, acknowledged in run.ok("produce"):
            offset: Any = acknowledged.value
            is_before = acknowledged.time_ns < asked.time_ns
            if is_strict and asked.f == "read-source" and is_before and offset >= len(values):
                yield f"T{asked.index} lacks record {offset}, of which T{written.index} had seen the acknowledgement"
    ordered = [length[ts] for ts in sorted(length)]
    if ordered != sorted(ordered):
        yield f"the source shrank: {ordered}"


def _streams(run: Run) -> Iterator[str]:
    """In a session no row comes below the progress, and at its end all rows below it have come in some session."""
    placed = run.placed()
    progress: dict[tuple[str, int], int] = {}
    came: dict[str, set[tuple[Json, Json, int | None]]] = defaultdict(set)
    once: dict[tuple[str, int], set[tuple[Json, Json, int | None]]] = defaultdict(set)
    for event in run.events:
        if event.span is not None:
            continue  # It is of a view.
        session = event.subscriber, event.session
        assert event.position is not None
        if event.kind == "row":
            if event.position < progress.get(session, 0):
                what = f"{event.value} of {event.key} at {event.position}"
                yield f"{event.subscriber} got {what} after progress {progress[session]}"
            row = event.key, event.value, event.position
            if row in once[session]:
                yield f"{event.subscriber} got {row} twice in session {event.session}"
            once[session].add(row)
            came[event.subscriber].add(row)
        elif event.kind == "watermark":
            progress[session] = event.position
            for key, elements in placed.items() if event.position % 8 == 0 else ():
                for ts, value in elements:
                    if ts < event.position and (key, value, ts) not in came[event.subscriber]:
                        yield f"{event.subscriber} got no {value} of {key} at {ts} before progress {event.position}"


def _epochs(run: Run) -> Iterator[str]:
    """An epoch has one node, and its writes are below the bounds of their time."""
    ended = [(run.asked[index], end) for index, end in run.done.items() if end.epoch is not None]
    for asked, end in ended:
        for other, by in ended:
            assert end.epoch is not None
            assert by.epoch is not None
            if by.epoch == end.epoch and by.node != end.node:
                yield f"{end.node} and {by.node} answered T{asked.index} and T{other.index} in epoch {end.epoch}"
        durable = [probe.value for probe in run.bounds if probe.time_ns <= end.time_ns]
        if end.commit_ts is not None and run.bounds and end.commit_ts >= max(durable, default=0):
            yield f"T{asked.index} wrote at {end.commit_ts}, above the bounds {durable}"


def _created(run: Run) -> Iterator[str]:
    """Who comes after the answer to a table's creation finds it, if nobody has asked to drop it."""
    for made, answer in run.ok("create"):
        drops = [each.time_ns for each in run.asked.values() if each.f == "drop" and each.value == made.value]
        for index, asked in run.asked.items():
            rows: Any = asked.value
            name = rows[0][0] if asked.f == "change" else rows if asked.f == "query" else None
            end = run.ended.get(index)
            if (
                name != made.value
                or end is None
                or asked.time_ns <= answer.time_ns
                or min(drops, default=2**63) <= end.time_ns
            ):
                continue
            if end.outcome == "fail" and "no such table" in (end.error or ""):
                yield f"T{index} did not find {name} of T{made.index}"


def _counted(run: Run) -> Iterator[str]:
    """The list of the counting timeline, at each of its timestamps."""
    loose = {
        asked.value
        for index, asked in run.asked.items()
        if asked.f == "count-append" and (index not in run.ended or run.ended[index].outcome == "info")
    }
    stamps: dict[Json, int] = {}
    ended: list[tuple[Invoke, Complete, int]] = []
    for asked, end in run.ok("count-append"):
        answer: Any = end.value
        stamps[asked.value] = answer[0]
        ended.append((asked, end, answer[0]))
    for asked, end in run.ok("count-read", "mixed-read"):
        answer = end.value
        ended.append((asked, end, answer[0]))
        due = {element for element, ts in stamps.items() if ts <= answer[0]}
        shown = [element for element in answer[1] if element not in loose]
        if (
            asked.f == "mixed-read"
            or set(shown) != due
            or [stamps[each] for each in shown] != sorted(stamps[each] for each in due)
        ):
            yield f"T{asked.index} read {answer}, which should be {due}"
    for asked, _, ts in ended:
        for before, past, floor in ended:
            if past.time_ns < asked.time_ns and (ts < floor or (ts == floor and asked.f == "count-append")):
                yield f"T{asked.index} has {ts}, after T{before.index} had ended at {floor}"


def _waits(run: Run) -> Iterator[str]:
    """Where nothing was struck for four seconds no change of a0 or a1 takes long, and leaders stay."""
    ms = 1_000_000
    begun = {fault.step: fault.time_ns for fault in run.faults if fault.phase == "begin"}
    ends = {fault.step: fault.time_ns for fault in run.faults if fault.phase == "end"}
    spans = [(begin, ends.get(step, 2**63)) for step, begin in begun.items()]
    opened = sorted(probe.time_ns for probe in run.epochs)
    for index, asked in run.asked.items():
        end = run.ended.get(index)
        rows: Any = asked.value
        if asked.f != "change" or end is None or rows[0][0] not in ("a0", "a1"):
            continue
        is_struck = any(begin <= end.time_ns and over >= asked.time_ns - 4000 * ms for begin, over in spans)
        is_led = not any(asked.time_ns - 2000 * ms <= ns <= end.time_ns for ns in opened)
        if not is_struck and is_led and end.time_ns - asked.time_ns > 800 * ms:
            yield f"T{index} took {(end.time_ns - asked.time_ns) // ms} ms"
    served = {end.epoch for end in run.done.values()}
    led = sorted(probe.time_ns for probe in run.epochs if probe.value in served)
    for first, last in zip(led, led[3:], strict=False):
        if last - first < 3000 * ms and not any(begin <= last and over >= first - 4000 * ms for begin, over in spans):
            yield f"four leaders began between {first} and {last}"
