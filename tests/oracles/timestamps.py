"""Timestamps, watermarks, bounds and what is kept, in plain loops: the slow twin of checkers/state/timestamps.py."""

from collections.abc import Sequence

from harness.core.record import Complete, Evidence, Invoke, Json, State, StreamEvent


def doubles(evidence: Sequence[Evidence]) -> int:
    """How many transactions commit at or below their start, share a timestamp with another, or have a second one.

    Of a transaction with several timestamps each but one counts, and so does each but one transaction of a timestamp.
    """
    ends = [record for record in evidence if isinstance(record, Complete) and record.outcome == "ok"]
    answered = [(end.commit_ts, end.txn) for end in ends if end.start_ts is not None and end.commit_ts is not None]
    low = sum(end.start_ts is not None and end.commit_ts is not None and end.commit_ts <= end.start_ts for end in ends)
    shared = len(answered) - len({commit for commit, _ in answered})
    places = {(txn, commit) for commit, txn in answered if txn is not None}
    for event in evidence:
        if (
            isinstance(event, StreamEvent)
            and event.kind == "row"
            and event.unit is not None
            and event.position is not None
        ):
            places.add((event.unit, event.position))
    return low + shared + len(places) - len({unit for unit, _ in places})


def late(evidence: Sequence[Evidence]) -> set[int]:
    """The transactions that started at or below a watermark announced before they were invoked."""
    invoked = {record.index: record.time_ns for record in evidence if isinstance(record, Invoke)}
    marks = [event for event in evidence if isinstance(event, StreamEvent) and event.kind == "watermark"]
    return {
        end.index
        for end in evidence
        if isinstance(end, Complete) and end.outcome == "ok" and end.start_ts is not None
        if any(mark.time_ns < invoked[end.index] and (mark.position or 0) >= end.start_ts for mark in marks)
    }


def bounded(evidence: Sequence[Evidence]) -> dict[Json, bool]:
    """Each transaction, by its start, that committed and of which a node gave a bound: did it commit below one?

    It committed at the timestamp of its answer, and at those of its rows.
    """
    found: dict[Json, bool] = {}
    for state in evidence:
        if not isinstance(state, State) or state.object != "bound":
            continue
        assert isinstance(state.value, int)
        for record in evidence:
            if isinstance(record, Complete) and record.outcome == "ok":
                start, commit = record.start_ts, record.commit_ts
            elif isinstance(record, StreamEvent) and record.kind == "row":
                start, commit = record.unit, record.position
            else:
                continue
            if start == state.key and commit is not None:
                found[start] = found.get(start, False) or commit < state.value
    return found


def kept(evidence: Sequence[Evidence]) -> list[tuple[bool, bool]]:
    """Of each report of what a node keeps: does a large transaction hold several locks there, and is it too much?

    Each lock of a small transaction is worth an entry, and so is each large transaction.
    """
    found = []
    for state in evidence:
        if isinstance(state, State) and state.object == "tracked":
            assert isinstance(state.value, list)
            left, small, large, held = (number for number in state.value if isinstance(number, int))
            for _ in [*range(small), *range(large)]:
                left -= 1
            found.append((held > large, left > 0))
    return found
