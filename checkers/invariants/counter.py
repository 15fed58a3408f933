"""Counter: a read shows at least the sum that was certain when it began, and at most the sum possible at its end.

An add of outcome info may happen at any time from its invocation on, or never; a failed one does not count. Adds may be
negative: such an add lowers the lower bound as soon as it is invoked, and the upper bound once it is certain.
Transactions over lists are adds of one for each append, and a read of a list is a read of its length. Counters of
different keys are judged separately.

Witnesses: reads that ended after some add had begun.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from checkers.history.troubles import Trouble, judgement
from checkers.invariants.operations import Op, Token, invariant, shown
from harness.core.columns import FAIL, INFO, NEVER, Int64s
from harness.core.verdict import Judgement

CHECKER: Final = "counter"
OUT: Final = "counter-out-of-bounds"
ANOMALIES: Final = {OUT: "A counter shows less than was certainly added, or more than could have been."}
_PLAIN: Final = "the counter"


class Add(NamedTuple):
    """An amount that was, or may have been, added. `after` is NEVER if the add is not certain."""

    number: int
    after: int
    amount: int


class Read(NamedTuple):
    """One read of the counter as `value`."""

    number: int
    after: int
    value: int


class Counts(NamedTuple):
    """All adds and reads of one counter."""

    adds: list[Add]
    reads: list[Read]


def judged(operations: Sequence[Op]) -> Judgement:
    """The judgement of all reads of counters."""
    troubles, witnesses = [], 0
    for key, counts in counters(operations).items():
        lower, upper = bounds(counts)
        began = np.sort(np.array([add.number for add in counts.adds], np.int64))
        after = np.array([read.after for read in counts.reads], np.int64)
        witnesses += int(np.count_nonzero(np.searchsorted(began, after) > 0))
        for read, low, high in zip(counts.reads, lower.tolist(), upper.tolist(), strict=True):
            if not low <= read.value <= high:
                troubles.append(_trouble(key, read, low, high))
    return judgement(CHECKER, ANOMALIES, troubles, {OUT: witnesses})


def _trouble(key: Token, read: Read, low: int, high: int) -> Trouble:
    text = (
        f"T{read.number} read {shown(key)} as {read.value}: when it began, what had been added for certain came to "
        f"{low}, and when it ended, what could have been added came to {high}."
    )
    return Trouble(OUT, text, (str(key), read.number, read.value), (read.number,))


def bounds(counts: Counts) -> tuple[Int64s, Int64s]:
    """The least and the greatest value that each read may show. O(n log n)."""
    index = np.array([read.number for read in counts.reads], np.int64)
    after = np.array([read.after for read in counts.reads], np.int64)
    amount = np.array([add.amount for add in counts.adds], np.int64)
    began = np.array([add.number for add in counts.adds], np.int64)
    ended = np.array([add.after for add in counts.adds], np.int64)
    up, down = np.maximum(amount, 0), np.minimum(amount, 0)
    # Certain is what ended at the read's index or before, and possible what began before its end.
    lower = _sums(up, ended, index + 1) + _sums(down, began, after)
    upper = _sums(up, began, after) + _sums(down, ended, index + 1)
    return lower, upper


def _sums(amount: Int64s, times: Int64s, until: Int64s) -> Int64s:
    """For each time in `until` the sum of the amounts with an earlier time."""
    order = np.argsort(times, kind="stable")
    running = np.append(0, np.cumsum(amount[order]))
    result: Int64s = running[np.searchsorted(times[order], until)]
    return result


def counters(operations: Sequence[Op]) -> Mapping[Token, Counts]:
    """All counters by name, without failed adds. A transaction's own adds count like those of other transactions."""
    found: defaultdict[Token, Counts] = defaultdict(lambda: Counts([], []))
    for op in operations:
        adds: list[tuple[Token, int]] = [(key, 1) for key, _ in op.appends]
        reads: list[tuple[Token, int]] = [(key, len(elements)) for key, elements in op.reads]
        if op.mops is None and op.f == "add" and type(op.given) is int:
            adds = [(_PLAIN, op.given)]
        elif op.mops is None and op.f == "read" and op.is_ok and type(op.value) is int:
            reads = [(_PLAIN, op.value)]
        until = NEVER if op.outcome == INFO else op.after
        for key, amount in adds if op.outcome != FAIL else ():
            found[key].adds.append(Add(op.number, until, amount))
        for key, value in reads:
            found[key].reads.append(Read(op.number, op.after, value))
    return found


CHECKS: Final = (invariant(CHECKER, ANOMALIES, judged),)
