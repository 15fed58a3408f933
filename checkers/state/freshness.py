"""Stale reads of single keys, by real time, in a form that needs no search.

An ok operation that read a key as a list must have seen in it
1. every element whose append had been answered as ok before the operation was invoked;
2. every element that another operation read there, if that one was answered before this one was invoked;
3. every element that it had itself appended before.
An operation reads after it is invoked, so this holds for each read of a transaction by itself, with or without a lock.
Only single keys are checked. The kernel sorts appends and reads of a key by answer; every later read must hold the
highest version so far. A read that is not a prefix of the key's longest read is compared with the appends element by
element, and imposes nothing on later reads.

Witnesses: reads of a key with an element that was appended, or read, before they were invoked.
"""

from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.columns.runs import codes, expand, ordered
from checkers.engine.protocol import Check, Context
from checkers.history.names import Names, shown_list
from checkers.history.stretches import ONCE, Weights
from checkers.history.troubles import Trouble, judgement
from checkers.transactions.acts import Acts, read_acts, versions_read
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import APPEND, NEVER, OK, READ, Int64s, Transactions
from harness.core.verdict import Judgement

CHECKER: Final = "freshness"
STALE: Final = "stale-acknowledged"
ANOMALIES: Final = {
    STALE: Anomaly(
        meaning="A read misses a write that was acknowledged before it began.", title="Stale read", cause=Cause.READ
    ),
}


class Stale(Struct, frozen=True, kw_only=True, order=True):
    """A read (operation, key) that misses `element`.

    `why` names the rule: append, read or own. `by` appended or read it.
    """

    op: int
    key: int
    why: str
    by: int
    element: int
    seen: tuple[int, ...]


class Staleness(Struct, frozen=True, kw_only=True):
    """The operations with a stale read, an example from the earliest of them, and the number of witnesses."""

    ops: Int64s
    example: Stale | None
    witnesses: int


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all reads. Raises HistoryError if the history is damaged."""
    acts = context.facts.of((history, "acts"), partial(read_acts, history))
    found = staleness(acts, Weights(context.stretches))
    unknown = {STALE: "duplicate-appends: an element was appended to one key twice"} if acts.has_duplicates else {}
    troubles = () if found.example is None else (_trouble(found.example, len(found.ops), context.name),)
    return judgement(CHECKER, ANOMALIES, troubles, {STALE: found.witnesses}, unknown=unknown, scope=())


def staleness(acts: Acts, weights: Weights = ONCE) -> Staleness:
    """The stale reads by rules 1 to 3, and the witnesses."""
    own = [_own(transactions, weights) for transactions in acts.transactions]
    demands = _Demands(acts, weights)
    ops = np.unique(np.concatenate([demands.stale_ops(), *(op for op, _, _ in own)]))
    examples = [*demands.examples(ops[:1]), *(stale for _, example, _ in own for stale in example)]
    witnesses = demands.witnesses + sum(count for _, _, count in own)
    first = [example for example in examples if len(ops) and example.op == ops[0]]
    order = ("append", "read", "own")
    example = min(first, key=lambda stale: (order.index(stale.why), stale), default=None)
    return Staleness(ops=ops, example=example, witnesses=witnesses)


class _Demands:
    """The version that each read must hold by rules 1 and 2. Versions are numbered from 0, which is the empty list."""

    def __init__(self, acts: Acts, weights: Weights) -> None:
        self.acts, self.versions = acts, acts.versions
        versions, rows = acts.versions, acts.versions.rows
        size = np.diff(versions.order_start)
        place = np.full(len(rows.appends.op), NEVER, np.int64)
        placed = np.flatnonzero(versions.writer >= 0)
        place[versions.writer[placed]] = placed - versions.order_start[versions.order_code[placed]]
        # Appends that no read shows come after all that some read shows.
        self.append_version = np.minimum(place, size[versions.append_code]) + 1
        self.appended = np.flatnonzero(rows.appends.outcome == OK)
        self.read_version = versions_read(versions)
        self.plain = np.flatnonzero(versions.is_version)
        self.odd = np.flatnonzero(~versions.is_version)
        reader = rows.reads.op.astype(np.int64)
        by_append = _highest_before(
            code=versions.append_code[self.appended],
            after=rows.appends.after[self.appended].astype(np.int64),
            height=self.append_version[self.appended],
            at_code=versions.read_code,
            at=reader,
        )
        by_read = _highest_before(
            code=versions.read_code[self.plain],
            after=rows.reads.after[self.plain].astype(np.int64),
            height=self.read_version[self.plain],
            at_code=versions.read_code,
            at=reader,
        )
        demand = np.maximum(by_append, by_read)
        self.witnesses = weights.of(versions.keys).count(versions.read_code[demand > 0])
        self._stale = self.plain[demand[self.plain] > self.read_version[self.plain]]
        missing = [row for row in self.odd[by_append[self.odd] > 0].tolist() if self._missed(row)]
        self.stale_reads = np.sort(np.concatenate((self._stale, np.array(missing, np.int64))))

    def stale_ops(self) -> Int64s:
        """The operations of the stale reads."""
        return self.versions.rows.reads.op[self.stale_reads].astype(np.int64)

    def examples(self, ops: Int64s) -> list[Stale]:
        """The stale reads of those operations, each with the first element that it misses."""
        rows = self.stale_reads[np.isin(self.stale_ops(), ops)].tolist()
        return [stale for row in rows for stale in (self._missed(row) or self._lost(row))]

    def _seen(self, read: int) -> tuple[int, ...]:
        rows = self.versions.rows
        start = rows.lists.start[rows.reads.of_list[read]]
        return tuple(rows.elements[start : start + self.versions.read_length[read]].tolist())

    def _missed(self, read: int) -> list[Stale]:
        """The first element that the read lacks, though its append had been answered before; empty if there is none."""
        rows, versions = self.versions.rows, self.versions
        op, code, seen = int(rows.reads.op[read]), versions.read_code[read], self._seen(read)
        appended = self.appended[(versions.append_code[self.appended] == code)]
        due = appended[rows.appends.after[appended] <= op].tolist()
        missed = [row for row in due if int(rows.appends.value[row]) not in seen]
        if not missed:
            return []
        row = min(missed, key=lambda each: (int(self.append_version[each]), int(rows.appends.value[each])))
        element, by = int(rows.appends.value[row]), int(rows.appends.op[row])
        return [Stale(op=op, key=int(versions.keys[code]), why="append", by=by, element=element, seen=seen)]

    def _lost(self, read: int) -> list[Stale]:
        """The first element that the read lacks, though an operation answered before had read it; empty if none."""
        rows, versions = self.versions.rows, self.versions
        op, code, seen = int(rows.reads.op[read]), versions.read_code[read], self._seen(read)
        others = self.plain[(versions.read_code[self.plain] == code) & (rows.reads.after[self.plain] <= op)]
        longer = others[self.read_version[others] > self.read_version[read]].tolist()
        if not longer:
            return []
        by = min(int(rows.reads.op[row]) for row in longer)
        next_place = versions.order_start[code] + self.read_version[read]
        element = int(versions.seen[~versions.is_repeated][next_place])
        return [Stale(op=op, key=int(versions.keys[code]), why="read", by=by, element=element, seen=seen)]


def _highest_before(*, code: Int64s, after: Int64s, height: Int64s, at_code: Int64s, at: Int64s) -> Int64s:
    """For each query (at_code, at) the greatest height of that code with `after` <= `at`; 0 if there is none."""
    if not len(code):
        return np.zeros(len(at), np.int64)
    span, reach = int(height.max()) + 1, int(max(after.max(), at.max(initial=0))) + 1
    when = code * reach + after
    order, when = ordered(when)
    highest = np.maximum.accumulate(code[order] * span + height[order])
    place = np.searchsorted(when, at_code * reach + at, side="right") - 1
    is_same = (place >= 0) & (code[order][place] == at_code)
    return np.where(is_same, highest[place] - at_code * span, 0)


def _own(transactions: Transactions, weights: Weights) -> tuple[Int64s, list[Stale], int]:
    """Rule 3 for one chunk: operations that miss their own element, an example, and the number of witnesses."""
    owner = np.repeat(np.arange(len(transactions.index)), np.diff(transactions.mop_start))
    is_ok = transactions.outcome[owner] == OK
    rows = np.flatnonzero(is_ok & ((transactions.f == APPEND) | ((transactions.f == READ) & transactions.is_known)))
    _, code = codes(transactions.key[rows])
    group = owner[rows] * (int(code.max(initial=0)) + 1) + code
    order, group = ordered(group)
    rows = rows[order]
    place = np.arange(len(rows))
    append = np.maximum.accumulate(np.where(transactions.f[rows] == APPEND, place, -1))  # The last own one so far.
    read = np.flatnonzero((transactions.f[rows] == READ) & (append >= 0))
    read = read[group[append[read]] == group[read]]
    value = transactions.value[rows[append[read]]]
    start = transactions.element_start[rows[read]]
    length = transactions.element_start[rows[read] + 1] - start
    is_hit = transactions.elements[expand(start, length)] == np.repeat(value, length)
    hits = np.bincount(np.repeat(np.arange(len(read)), length)[is_hit], minlength=len(read))
    missed = np.flatnonzero(hits == 0)
    ops = transactions.index[owner[rows[read[missed]]]]
    witnesses = weights.count(transactions.key[rows[read]])
    if not len(missed):
        return ops, [], witnesses
    at = int(missed[np.argmin(ops)])
    row, op = int(rows[read[at]]), int(ops.min())
    seen = transactions.elements[start[at] : start[at] + length[at]].tolist()
    key = int(transactions.key[row])
    example = Stale(op=op, key=key, why="own", by=op, element=int(value[at]), seen=tuple(seen))
    return ops, [example], witnesses


def _trouble(stale: Stale, count: int, name: Names) -> Trouble:
    facts = (stale.op, stale.key, stale.why, stale.by, stale.element)
    read = f"T{stale.op} read {name.key(stale.key)} as {shown_list([*map(name, stale.seen)])}"
    match stale.why:
        case "append":
            why = (
                f"without {name(stale.element)}: T{stale.by} had appended that, and its success had been "
                f"answered before T{stale.op} was invoked."
            )
        case "read":
            why = (
                f"without {name(stale.element)}, which T{stale.by} had already read there, and had been answered "
                f"before T{stale.op} was invoked."
            )
        case _:
            why = f"without {name(stale.element)}, which it had itself appended before."
    return Trouble(STALE, f"{read}, {why}", facts, (stale.op, stale.by), count=count)


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check, by_generation=True, of_stretches=True),)
