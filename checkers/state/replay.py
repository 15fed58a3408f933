"""Reads against timestamps: where a system reports timestamps, they determine what each read must return.

A second opinion beside the dependency graph, which knows no timestamps. Of lists only.
1. `snapshot-mismatch`: an ok operation with a `read_ts` shows of each key exactly what operations with a `commit_ts` at
   or below it appended, in the order of their timestamps, followed by its own earlier appends. Operations that share a
   timestamp, as in a group commit, may come in either order there.
2. `stale-mismatch`: the same for a read of the past: an ok operation that is no transaction, has a `read_ts`, and has a
   list of pairs of a key and a list for its value.
3. `backup-mismatch`, `flashback-mismatch`: the same for such an operation called `restore` or `restored`, which shows
   what would be there after a restore from a backup of the log, or is there after a flashback, to that timestamp.
4. `flashback-overtaken`: nobody appends, at a later timestamp, to a key that a transaction called `flashback` has read:
   it ends such keys, and what is appended after it has another name. Nor does anybody who had started at an earlier
   timestamp append, at a later one, to a key that it has appended to, which it begins.
5. `timestamp-order`: a transaction that was invoked after another had been answered reads at or above the timestamp
   at which that one committed.
Appends of operations of unclear outcome have no known timestamp: they may be missing, and are left out where they were
read. A key to which one element was appended twice is left out, too. O(n log n).

Witnesses: of 1 to 3, reads at a timestamp of a key that had a version then; of 4, appends to keys that a flashback
ended; of 5, transactions with a snapshot before which a commit had been answered.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct

from checkers.columns.arrow import integers
from checkers.columns.files import read_columns
from checkers.columns.index import GroupIndex, ascending, codes
from checkers.columns.runs import expand
from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary, Names, first_difference, shown_list
from checkers.history.tables import rows
from checkers.history.transactions import chunks, read_chunk
from checkers.history.troubles import Trouble, judgement
from checkers.words.anomalies import Anomaly, Cause, Declared
from harness.core.columns import APPEND, FAIL, NEVER, OK, READ, Bools, Int64s, Transactions
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "replay"
MISMATCH: Final = "snapshot-mismatch"
STALE: Final = "stale-mismatch"
BACKUP: Final = "backup-mismatch"
FLASHBACK: Final = "flashback-mismatch"
OVERTAKEN: Final = "flashback-overtaken"
ORDER: Final = "timestamp-order"
READS: Final = (MISMATCH, STALE, BACKUP, FLASHBACK)  # By `Acts.kind`: 0 for transactions.
ANOMALIES: Final[Declared] = {
    "snapshot-mismatch": Anomaly(
        meaning="A transaction read something else than the state at its timestamp.", cause=Cause.PAST
    ),
    "stale-mismatch": Anomaly(
        meaning="A read of the past shows something else than the state at its timestamp.", cause=Cause.PAST
    ),
    "backup-mismatch": Anomaly(
        meaning="A restore from a backup shows something else than the state at its timestamp.", cause=Cause.PAST
    ),
    "flashback-mismatch": Anomaly(
        meaning="A flashback left something else than the state at its timestamp.", cause=Cause.PAST
    ),
    OVERTAKEN: "A transaction committed after a flashback on rows which that had brought back.",
    ORDER: Anomaly(meaning="Dependent transactions have timestamps in the wrong order.", cause=Cause.ORDER),
}
_KINDS: Final = {"restore": READS.index(BACKUP), "restored": READS.index(FLASHBACK)}  # By `f`; others are stale.
_UNPLACED: Final = -1  # The rank of an element whose append has no known timestamp.
_NOBODYS: Final = -2  # The rank of an element that no operation appended, or only a failed one.


class Acts(Struct, frozen=True, kw_only=True):
    """Operations (n,), their appends (a,), their reads at a timestamp (r,), and the elements that these show."""

    index: Int64s  # (n,)
    after: Int64s  # (n,)
    commit: Int64s  # (n,) NEVER: none
    start: Int64s  # (n,) NEVER: none
    snapshot: Int64s  # (n,) NEVER: none
    kind: Int64s  # (n,) the place in READS of the anomaly that a wrong read is
    append_op: Int64s  # (a,) rows of operations
    append_key: Int64s
    append_value: Int64s
    read_op: Int64s  # (r,)
    read_key: Int64s
    read_length: Int64s
    elements: Int64s


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all operations with timestamps. Raises HistoryError if the history is damaged."""
    acts = read_acts(history)
    wrong, is_witness = mismatched(acts)
    early, answered = early_snapshots(acts)
    late, closed = overtakers(acts, _flashbacks(history))
    witnesses, troubles = {ORDER: answered, OVERTAKEN: closed}, []
    for kind, anomaly in enumerate(READS):
        found = wrong[acts.kind[acts.read_op[wrong]] == kind]
        witnesses[anomaly] = int(np.count_nonzero(is_witness & (acts.kind[acts.read_op] == kind)))
        if len(found):
            troubles.append(_mismatch(acts, anomaly, int(found[0]), len(found), context.name))
    if len(late):
        troubles.append(_overtaken(acts, late[0], len(late), context.name))
    if len(early):
        troubles.append(_order(acts, int(early[0]), len(early), context.name))
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def mismatched(acts: Acts) -> tuple[Int64s, Bools]:
    """The reads, sorted by operation, that differ from the state at their timestamp; and True for witnesses, (r,)."""
    return _Replay(acts).judged()


def read_acts(history: Path) -> Acts:
    """The operations with timestamps of the history in that folder. Raises HistoryError if its files are damaged."""
    ops = read_columns(history / "ops.parquet", ["index", "start_ts", "read_ts"])
    order = np.argsort(integers(ops["index"]))
    index, start_ts, read_ts = (integers(ops[name], NEVER)[order] for name in ("index", "start_ts", "read_ts"))
    parts = [_part(read_chunk(chunk), index, start_ts, read_ts) for chunk in chunks(history)]
    return _joined([*parts, _past(history)])


def _past(history: Path) -> Acts:
    """The reads of the past: operations that are no transactions."""
    columns = ["index", "outcome", "is_txn", "after", "read_ts", "value", "f"]
    names, found = Dictionary(history), list[tuple[int, int, int, int, list[list[Json]]]]()
    for op in rows(history, "ops", columns, outcome=[OK]):
        if not op["is_txn"] and op["read_ts"] is not None and op["value"] is not None:
            value = msgspec.json.decode(op["value"])
            if isinstance(value, list) and all(map(_is_key_and_list, value)):
                kind = _KINDS.get(op["f"], READS.index(STALE))
                found.append((int(op["index"]), int(op["after"]), int(op["read_ts"]), kind, value))
    pairs = [(row, key, names.identities(held)) for row, (_, _, _, _, value) in enumerate(found) for key, held in value]
    nothing = np.zeros(0, np.int64)
    return Acts(
        index=_numbers(op[0] for op in found),
        after=_numbers(op[1] for op in found),
        commit=np.full(len(found), NEVER, np.int64),
        start=np.full(len(found), NEVER, np.int64),
        snapshot=_numbers(op[2] for op in found),
        kind=_numbers(op[3] for op in found),
        append_op=nothing,
        append_key=nothing,
        append_value=nothing,
        read_op=_numbers(row for row, _, _ in pairs),
        read_key=_numbers(names.identity(key) for _, key, _ in pairs),
        read_length=_numbers(len(held) for _, _, held in pairs),
        elements=_numbers(element for _, _, held in pairs for element in held),
    )


def _is_key_and_list(pair: Json) -> bool:
    """True for a pair of a key and its list, or null for a key without one."""
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], list | None)


def _numbers(numbers: Iterable[int]) -> Int64s:
    return np.fromiter(numbers, np.int64)


def _part(each: Transactions, index: Int64s, start_ts: Int64s, read_ts: Int64s) -> Acts:
    """The acts of one chunk, with its operations' starts and snapshots, by `index`."""
    owner = np.repeat(np.arange(len(each.index)), np.diff(each.mop_start))
    is_ok = each.outcome == OK
    commit = np.where(is_ok, each.commit, NEVER) if len(each.commit) else np.full(len(each.index), NEVER, np.int64)
    place = np.searchsorted(index, each.index)
    snapshot = np.where(is_ok, read_ts[place], NEVER)
    appends = np.flatnonzero((each.f == APPEND) & (each.outcome[owner] != FAIL))
    reads = np.flatnonzero((each.f == READ) & each.is_known & (snapshot[owner] != NEVER))
    length = each.element_start[reads + 1] - each.element_start[reads]
    return Acts(
        index=each.index,
        after=each.after,
        commit=commit,
        start=start_ts[place],
        snapshot=snapshot,
        kind=np.zeros(len(each.index), np.int64),
        append_op=owner[appends],
        append_key=each.key[appends],
        append_value=each.value[appends],
        read_op=owner[reads],
        read_key=each.key[reads],
        read_length=length,
        elements=each.elements[expand(each.element_start[reads], length)],
    )


def _joined(parts: Sequence[Acts]) -> Acts:
    """The acts of all chunks."""
    counts = np.cumsum([0, *(len(part.index) for part in parts)])

    def column(name: str) -> Int64s:
        return np.concatenate([np.zeros(0, np.int64), *(getattr(part, name) for part in parts)])

    def places(name: str) -> Int64s:
        shifted = (getattr(part, name) + first for part, first in zip(parts, counts[:-1], strict=True))
        return np.concatenate([np.zeros(0, np.int64), *shifted])

    return Acts(
        index=column("index"),
        after=column("after"),
        commit=column("commit"),
        start=column("start"),
        snapshot=column("snapshot"),
        kind=column("kind"),
        append_op=places("append_op"),
        append_key=column("append_key"),
        append_value=column("append_value"),
        read_op=places("read_op"),
        read_key=column("read_key"),
        read_length=column("read_length"),
        elements=column("elements"),
    )


class _Replay:
    """The comparison of every read with the state at its timestamp."""

    def __init__(self, acts: Acts) -> None:
        self._acts = acts
        key = codes(np.concatenate((acts.append_key, acts.read_key)))
        self._append_key, self._read_key = key[: len(acts.append_key)], key[len(acts.append_key) :]
        commit = acts.commit[acts.append_op]
        placed = np.flatnonzero(commit != NEVER)
        self._placed = GroupIndex(self._append_key[placed], commit[placed], placed)
        self._rank = np.full(len(commit), _UNPLACED, np.int64)
        self._rank[self._placed.rows] = np.arange(len(placed))
        key, height = self._append_key[self._placed.rows], commit[self._placed.rows]
        # The number of the key and timestamp of each rank: ranks with the same number may come in any order.
        self._tie = np.cumsum(np.concatenate(([0], (np.diff(key) != 0) | (np.diff(height) != 0))))

    def judged(self) -> tuple[Int64s, Bools]:
        acts = self._acts
        snapshot = acts.snapshot[acts.read_op]
        begin = self._placed.place(self._read_key, np.full(len(snapshot), np.iinfo(np.int64).min + 2))
        count = self._placed.place(self._read_key, snapshot, above=True) - begin
        read = np.repeat(np.arange(len(snapshot)), acts.read_length)
        rank, is_doubtful = self._ranks(read)
        kept = np.flatnonzero(rank != _UNPLACED)
        place = np.arange(len(kept)) - np.searchsorted(read[kept], read[kept])
        is_wrong = np.bincount(read[kept], minlength=len(snapshot)) != count
        due = begin[read[kept]] + place
        inside = np.clip(due, 0, len(self._tie) - 1)
        tie = self._tie[np.maximum(rank[kept], 0)]  # Elements that no operation appended are wrong by their rank.
        is_wrong[read[kept[tie != self._tie[inside]]]] = True
        is_wrong[read[kept[rank[kept][ascending(read[kept], rank[kept])] != due]]] = True
        is_wrong &= ~is_doubtful
        wrong = np.flatnonzero(is_wrong)
        return wrong[np.argsort(acts.index[acts.read_op[wrong]], kind="stable")], count > 0

    def _ranks(self, read: Int64s) -> tuple[Int64s, Bools]:
        """The rank of each element's append, and True for reads of keys with repeated elements.

        `read` has for each element the row of its read. A transaction's own appends count as unplaced.
        """
        acts = self._acts
        total = len(acts.append_key)
        pair = codes(
            np.concatenate((self._append_key, self._read_key[read])), np.concatenate((acts.append_value, acts.elements))
        )
        writer = np.full(int(pair.max(initial=-1)) + 1, -1, np.int64)
        writer[pair[:total]] = np.arange(total)
        found = writer[pair[total:]]
        rank = np.where(found >= 0, np.append(self._rank, 0)[found], _NOBODYS)
        is_own = (found >= 0) & (np.append(acts.append_op, -1)[found] == acts.read_op[read])
        rank[is_own] = _UNPLACED
        repeated = np.flatnonzero(np.bincount(pair[:total], minlength=1)[pair[:total]] > 1)
        return rank, np.isin(self._read_key, self._append_key[repeated])


def early_snapshots(acts: Acts) -> tuple[Int64s, int]:
    """The operations whose snapshot is below the commit timestamp of an operation answered before they began.

    Rows of `acts`, by index; and the number of witnesses.
    """
    commits = np.flatnonzero(acts.commit != NEVER)
    commits = commits[np.argsort(acts.after[commits], kind="stable")]
    highest = np.maximum.accumulate(acts.commit[commits])
    readers = np.flatnonzero((acts.snapshot != NEVER) & (acts.kind == 0))
    place = np.searchsorted(acts.after[commits], acts.index[readers], side="right") - 1
    is_after = place >= 0
    readers, place = readers[is_after], place[is_after]
    early = readers[acts.snapshot[readers] < highest[place]]
    return early[np.argsort(acts.index[early], kind="stable")], len(readers)


def overtakers(acts: Acts, flashbacks: Int64s) -> tuple[list[tuple[int, int]], int]:
    """Appends that overtake a flashback, as (row of the append, row of the first such flashback); and the witnesses.

    `flashbacks` are indexes of operations, (f,).
    """
    ended = _flashed(acts, acts.read_op, acts.read_key, flashbacks)
    begun = _flashed(acts, acts.append_op, acts.append_key, flashbacks)
    found, witnesses = list[tuple[int, int]](), 0
    for row in np.flatnonzero(np.isin(acts.append_key, [*ended, *begun])).tolist():
        op, key = int(acts.append_op[row]), int(acts.append_key[row])
        commit = int(acts.commit[op])
        witnesses += commit != NEVER and key in ended
        over = ended.get(key, []) + [by for by in begun.get(key, ()) if acts.start[op] < acts.commit[by]]
        over = [by for by in over if acts.commit[by] < commit < NEVER]
        if over:
            found.append((row, min(over, key=lambda by: int(acts.commit[by]))))
    return found, witnesses


def _flashed(acts: Acts, op: Int64s, key: Int64s, flashbacks: Int64s) -> dict[int, list[int]]:
    """By key, the rows of the flashbacks with one of these micro-operations."""
    found: dict[int, list[int]] = {}
    for row in np.flatnonzero(np.isin(acts.index[op], flashbacks)).tolist():
        found.setdefault(int(key[row]), []).append(int(op[row]))
    return found


def _flashbacks(history: Path) -> Int64s:
    """The indexes of flashbacks that have happened."""
    ops = rows(history, "ops", ["index", "commit_ts"], outcome=[OK], f=["flashback"])
    return _numbers(int(op["index"]) for op in ops if op["commit_ts"] is not None)


def _overtaken(acts: Acts, late: tuple[int, int], count: int, name: Names) -> Trouble:
    """The violation of that append and flashback."""
    row, flashback = late
    op = int(acts.append_op[row])
    number, by, key = int(acts.index[op]), int(acts.index[flashback]), int(acts.append_key[row])
    why = "had ended that key"
    if not np.any((acts.read_op == flashback) & (acts.read_key == key)):
        why = f"began that key after it had started, at {name.forms.position(int(acts.start[op]))},"
    sentence = (
        f"T{number} appended {name(int(acts.append_value[row]))} to {name.key(key)} at "
        f"{name.forms.position(int(acts.commit[op]))}, although the flashback T{by} {why} at "
        f"{name.forms.position(int(acts.commit[flashback]))}."
    )
    return Trouble(OVERTAKEN, sentence, (number, by, key), (number, by), count=count)


def _mismatch(acts: Acts, anomaly: str, read: int, count: int, name: Names) -> Trouble:
    """The violation of that read, with its first difference."""
    op, key = int(acts.read_op[read]), int(acts.read_key[read])
    start = int(acts.read_length[:read].sum())
    seen = acts.elements[start : start + int(acts.read_length[read])].tolist()
    snapshot = int(acts.snapshot[op])
    number = int(acts.index[op])
    how, row, at = _difference(acts, op, key, snapshot, seen)
    text = shown_list([*map(name, seen)], at)
    ops: tuple[int, ...] = (number,)
    why = "which differs from the commits by then, in the order of commits"
    if row >= 0:
        by = int(acts.append_op[row])
        when = f"{'only ' if how == 'with' else ''}at {name.forms.position(int(acts.commit[by]))}"
        why = f"{how} {name(int(acts.append_value[row]))}, which T{acts.index[by]} committed {when}"
        ops = (number, int(acts.index[by]))
    sentence = f"T{number} read {name.key(key)} at {name.forms.position(snapshot)} as {text}, {why}."
    return Trouble(anomaly, sentence, (number, key, snapshot), ops, count=count)


def _difference(acts: Acts, op: int, key: int, snapshot: int, seen: list[int]) -> tuple[str, int, int | None]:
    """ "without" and the first append that the read lacks, or "with" and the first that it has too early.

    The append is a row, -1 if there is neither; the last result is the place in the list where it differs.
    """
    rows = [row for row in np.flatnonzero(acts.append_key == key).tolist() if acts.append_op[row] != op]
    committed = sorted((int(acts.commit[acts.append_op[row]]), row) for row in rows)
    for place, (commit, row) in enumerate(committed):
        element = int(acts.append_value[row])
        if commit <= snapshot and element not in seen:
            return "without", row, place
        if snapshot < commit < NEVER and element in seen:
            return "with", row, seen.index(element)
    expected = [int(acts.append_value[row]) for commit, row in committed if commit <= snapshot]
    return "", -1, first_difference(seen, expected)


def _order(acts: Acts, reader: int, count: int, name: Names) -> Trouble:
    """The violation for that operation, with the highest commit that was answered before it."""
    before = np.flatnonzero((acts.commit != NEVER) & (acts.after <= acts.index[reader]))
    other = int(before[np.argmax(acts.commit[before])])
    number, by = int(acts.index[reader]), int(acts.index[other])
    sentence = (
        f"T{number} read at {name.forms.position(int(acts.snapshot[reader]))}, although T{by} had committed at "
        f"{name.forms.position(int(acts.commit[other]))}, and had been answered before T{number} was invoked."
    )
    return Trouble(ORDER, sentence, (number, by), (number, by), count=count)


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
