"""Timestamps against real time, each pair of operations compared: the slow twin of checkers/state/realtime.py."""

from collections.abc import Sequence

from harness.core.record import Complete, Evidence, Invoke

ORDERED = ("txn", "change", "query", "read-source")


def contradictions(evidence: Sequence[Evidence]) -> dict[str, set[int]]:
    """The operations that read below, or write at or below, one that had been answered before they were invoked."""
    place = {id(record): at for at, record in enumerate(evidence)}
    asked = {record.index: record for record in evidence if isinstance(record, Invoke) and record.f in ORDERED}
    done = [each for each in evidence if isinstance(each, Complete) and each.index in asked and each.outcome == "ok"]
    found: dict[str, set[int]] = {"timestamp-regress": set(), "write-not-above": set()}
    for first in done:
        floor = first.commit_ts if first.commit_ts is not None else first.read_ts
        for second in done:
            if floor is None or place[id(first)] > place[id(asked[second.index])]:
                continue
            if second.read_ts is not None and second.read_ts < floor:
                found["timestamp-regress"].add(second.index)
            if second.commit_ts is not None and second.commit_ts <= floor:
                found["write-not-above"].add(second.index)
    return found
