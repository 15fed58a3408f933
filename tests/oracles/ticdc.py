"""Slow, obvious oracles for runs of TiCDC: plain loops over the records, without a line of the checkers.

Each oracle gives its complaints as sentences; a correct run has none. Elements are appended once per key, so (key,
element) names its transaction.
1. A transaction committed at the timestamp of its answer; an unclear one at the position of any of its rows in a
   stream, and if there is none, not at all: streams are complete at the end.
2. The state of a key at a timestamp is what was committed at or below it, in the order of timestamps.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from harness.core.record import Complete, Evidence, Invoke, Json, MicroOp, State, StreamEvent

Key = Json
History = dict[Key, list[tuple[int, list[Json]]]]  # For each key: commit timestamps, and what was appended then.


def complaints(evidence: Sequence[Evidence]) -> dict[str, list[str]]:
    """The sentences of each oracle that has any."""
    history = committed(evidence)
    found = {
        "snapshots": list(_snapshots(evidence, history)),
        "stale reads": list(_stale_reads(evidence, history)),
        "streams": list(_streams(evidence, history)),
        "flashbacks": list(_flashbacks(evidence, history)),
        "stores": list(_stores(evidence, history)),
    }
    return {name: sentences for name, sentences in found.items() if sentences}


def committed(evidence: Sequence[Evidence]) -> History:
    """What was appended to each key, by commit timestamp."""
    asked = {record.index: record for record in evidence if isinstance(record, Invoke)}
    ended = {record.index: record for record in evidence if isinstance(record, Complete)}
    seen = {
        (event.key, event.value): event.position
        for event in evidence
        if isinstance(event, StreamEvent) and event.kind == "row"
    }
    found: History = defaultdict(list)
    for index, invoked in asked.items():
        end = ended.get(index)
        appends = _appends(invoked.mops or ())
        commit_ts = end.commit_ts if end is not None and end.outcome == "ok" else None
        if end is None or end.outcome == "info":
            places = [seen[key, values[-1]] for key, values in appends.items() if (key, values[-1]) in seen]
            commit_ts = places[0] if places else None
        if commit_ts is not None:
            for key, values in appends.items():
                found[key].append((commit_ts, values))
    for writes in found.values():
        writes.sort(key=lambda write: write[0])
    return found


def state(history: History, key: Key, timestamp: int) -> list[Json]:
    """The list under that key at that timestamp."""
    return [value for commit_ts, values in history.get(key, []) if commit_ts <= timestamp for value in values]


def _appends(mops: Sequence[MicroOp]) -> dict[Key, list[Json]]:
    found: dict[Key, list[Json]] = {}
    for mop in mops:
        if mop.f == "append":
            found.setdefault(mop.key, []).append(mop.value)
    return found


def _snapshots(evidence: Sequence[Evidence], history: History) -> Iterator[str]:
    """Every read of a transaction is the state at its start, and what it had appended before."""
    for end in evidence:
        if not isinstance(end, Complete) or end.outcome != "ok" or end.mops is None or end.read_ts is None:
            continue
        own: dict[Key, list[Json]] = {}
        for mop in end.mops:
            if mop.f == "append":
                own.setdefault(mop.key, []).append(mop.value)
            else:
                expected = [*state(history, mop.key, end.read_ts), *own.get(mop.key, [])]
                if mop.value != expected:
                    yield f"T{end.index} read {mop.key} as {mop.value}, not {expected}"


def _stale_reads(evidence: Sequence[Evidence], history: History) -> Iterator[str]:
    """Every read of the past is the state at its timestamp."""
    for end in evidence:
        if isinstance(end, Complete) and end.outcome == "ok" and end.mops is None and end.read_ts is not None:
            assert isinstance(end.value, list)
            for pair in end.value:
                assert isinstance(pair, list)
                expected = state(history, pair[0], end.read_ts)
                if pair[1] != expected:
                    yield f"T{end.index} read {pair[0]} as {pair[1]}, not {expected}"


def _flashbacks(evidence: Sequence[Evidence], history: History) -> Iterator[str]:
    """A flashback reads all that its keys ever had, and nobody appends to them at a later timestamp."""
    names = {record.index: record.f for record in evidence if isinstance(record, Invoke)}
    for end in evidence:
        if not isinstance(end, Complete) or names[end.index] != "flashback" or end.commit_ts is None:
            continue
        for mop in end.mops or ():
            late = [commit_ts for commit_ts, _ in history.get(mop.key, []) if commit_ts > end.commit_ts]
            if mop.f == "r" and late:
                yield f"{mop.key} was written at {late} after the flashback T{end.index} at {end.commit_ts}"


def _streams(evidence: Sequence[Evidence], history: History) -> Iterator[str]:
    """At each watermark a session has exactly the last value of each key and commit since its start, in order."""
    expected = sorted(
        (commit_ts, str(key), values[-1]) for key, writes in history.items() for commit_ts, values in writes
    )
    rows: list[tuple[int, str, Json]] = []
    session, start, closed, latest = ("", 0), 0, 0, 0
    for who in sorted({event.subscriber for event in evidence if isinstance(event, StreamEvent)}):
        for event in evidence:
            if not isinstance(event, StreamEvent) or event.subscriber != who or event.position is None:
                continue
            if event.kind == "open":
                session, rows = (who, event.session), []
                start = closed = latest = event.position
            elif event.kind == "row":
                if event.position <= closed:
                    yield f"{session}: a row at {event.position} after watermark {closed}"
                if event.position < latest:
                    yield f"{session}: a row at {event.position} after one at {latest}"
                latest = max(latest, event.position)
                rows.append((event.position, str(event.key), event.value))
            elif event.kind == "watermark":
                if event.position < closed:
                    yield f"{session}: watermark {event.position} after {closed}"
                due = [row for row in expected if closed < row[0] <= event.position]
                if sorted(rows) != due:
                    yield f"{session}: at {event.position}, after {start}, {rows} instead of {due}"
                rows, closed = [], max(closed, event.position)


def _stores(evidence: Sequence[Evidence], history: History) -> Iterator[str]:
    """At rest every store holds every key's whole list."""
    dumped: dict[str, dict[Key, Json]] = defaultdict(dict)
    for record in evidence:
        if isinstance(record, State) and record.object == "row":
            dumped[record.node][record.key] = record.value
    for store, held in dumped.items():
        for key, writes in history.items():
            whole = [value for _, values in writes for value in values]
            if held.get(key, []) != whole:
                yield f"{store} holds {held.get(key)} under {key}, not {whole}"
