"""What each read must return, by timestamps, in plain loops: the slow twin of checkers/state/replay.py."""

from collections.abc import Sequence

from harness.core.record import Complete, Evidence, Invoke, Json, MicroOp


def mismatches(evidence: Sequence[Evidence]) -> set[int]:
    """The operations with a read that is not the state at its timestamp."""
    asked = {record.index: record for record in evidence if isinstance(record, Invoke)}
    ended = {record.index: record for record in evidence if isinstance(record, Complete)}
    placed, loose = list[tuple[int, Json, Json]](), list[tuple[Json, Json]]()
    for index, invoked in asked.items():
        end = ended.get(index)
        for mop in invoked.mops or ():
            if mop.f == "append" and (end is None or end.outcome != "fail"):
                if end is not None and end.outcome == "ok" and end.commit_ts is not None:
                    placed.append((end.commit_ts, mop.key, mop.value))
                else:
                    loose.append((mop.key, mop.value))
    placed.sort(key=lambda each: each[0])
    return {
        index
        for index, end in ended.items()
        if end.outcome == "ok"
        and end.read_ts is not None
        and not all(_is_right(mop, end.read_ts, end.mops or (), placed, loose) for mop in end.mops or ())
    }


def _is_right(
    mop: MicroOp,
    read_ts: int,
    mops: tuple[MicroOp, ...],
    placed: list[tuple[int, Json, Json]],
    loose: list[tuple[Json, Json]],
) -> bool:
    if mop.f != "r" or not isinstance(mop.value, list):
        return True
    own = [each.value for each in mops if each.f == "append" and each.key == mop.key]
    due = [(commit_ts, value) for commit_ts, key, value in placed if key == mop.key and commit_ts <= read_ts]
    seen = [value for value in mop.value if value not in own and (mop.key, value) not in loose]
    at = {value: commit_ts for commit_ts, value in due}
    is_complete = sorted(map(repr, seen)) == sorted(repr(value) for _, value in due)
    return is_complete and [at[value] for value in seen] == [commit_ts for commit_ts, _ in due]


def early(evidence: Sequence[Evidence]) -> set[int]:
    """The operations whose snapshot is below a commit that had been answered before they were invoked."""
    found, highest, snapshot_floor = set(), 0, dict[int, int]()
    for record in evidence:
        if isinstance(record, Invoke):
            snapshot_floor[record.index] = highest
        elif isinstance(record, Complete) and record.outcome == "ok":
            if record.read_ts is not None and record.read_ts < snapshot_floor[record.index]:
                found.add(record.index)
            highest = max(highest, record.commit_ts or 0)
    return found


def overtakers(evidence: Sequence[Evidence]) -> list[tuple[int, Json, bool]]:
    """The appends, as (operation, key, has that key ended), that overtake a flashback on a key of it.

    A flashback takes place at its commit timestamp. The keys that it reads end there: nobody appends to them later. On
    those to which it appends, nothing that began before it commits after it.
    """
    names = {record.index: record.f for record in evidence if isinstance(record, Invoke)}
    done = [
        record
        for record in evidence
        if isinstance(record, Complete) and record.outcome == "ok" and record.commit_ts is not None
    ]
    flashbacks = [end for end in done if names[end.index] == "flashback"]
    found = []
    for end in done:
        for mop in end.mops or ():
            before = [each for each in flashbacks if mop.f == "append" and (each.commit_ts or 0) < (end.commit_ts or 0)]
            has_ended = any(_touches(each, "r", mop.key) for each in before)
            older = [each for each in before if end.start_ts is not None and end.start_ts < (each.commit_ts or 0)]
            if has_ended or any(_touches(each, "append", mop.key) for each in older):
                found.append((end.index, mop.key, has_ended))
    return found


def _touches(end: Complete, f: str, key: Json) -> bool:
    return any((mop.f, mop.key) == (f, key) for mop in end.mops or ())
