"""Long fork and write skew: transactions that see the same keys at moments that fit into no order.

A *long fork* is two reads of the same keys, each of which sees more of one key than the other does. Keys only grow:
from nothing to their one value, or, in transactions over lists, by appends.

A *write skew* is two transactions that read the same two keys and write one each, and neither sees the other's write.
In transactions over lists a write is an append. Plain histories have inserts of [key, [a, b]], of which one is null:
each inserts its own only if it finds neither, so that at most one may succeed for each key.

Witnesses: for long-fork, reads of the same keys that see more than the least and less than the most of all such reads,
if there are two; for write-skew, transactions that overlap one which appends to the other key, and inserts that
succeeded on a key with several attempts.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from checkers.history.troubles import Trouble, judgement
from checkers.invariants.operations import Op, Token, invariant, listed, shown, token
from checkers.words import transactional
from harness.core.columns import NEVER, Int64s
from harness.core.record import Json
from harness.core.verdict import Judgement

LONG_FORK: Final = "long-fork"
WRITE_SKEW: Final = "write-skew"
FORK_ANOMALIES: Final = {LONG_FORK: "Two reads of the same keys each see more of one key than the other read does."}
SKEW_ANOMALIES: Final = {WRITE_SKEW: transactional.WRITE_SKEW}


class View(NamedTuple):
    """How much a read saw of each of its keys, in `amounts`. The keys have the same order in all reads of them."""

    amounts: tuple[int, ...]
    number: int


class Skewer(NamedTuple):
    """A transaction that read two keys and appended `element` to one; `other` are the elements it saw in the other."""

    op: Op
    other: frozenset[Token]
    element: Token


def judged_long_fork(operations: Sequence[Op]) -> Judgement:
    """The judgement of read-only transactions of several keys. O(n log n)."""
    groups: dict[tuple[Token, ...], list[View]] = {}
    for op in operations:
        seen = _seen(op)
        if len(seen) > 1:
            keys = tuple(sorted(seen, key=lambda key: (isinstance(key, str), key)))
            groups.setdefault(keys, []).append(View(tuple(seen[key] for key in keys), op.number))
    troubles: list[Trouble] = []
    witnesses = 0
    for keys, views in groups.items():
        between = _between(views)
        witnesses += between if between > 1 else 0
        troubles += _forks(keys, views)
    return judgement(LONG_FORK, FORK_ANOMALIES, troubles, {LONG_FORK: witnesses})


def _seen(op: Op) -> dict[Token, int]:
    """How much the operation saw of each key; empty unless it only reads."""
    if not op.is_ok:
        return {}
    if op.mops is not None:
        if any(mop.elements is None for mop in op.mops):
            return {}
        return {mop.key: len(mop.elements or ()) for mop in op.mops}
    if op.f != "read" or not isinstance(op.value, list):
        return {}
    return dict(_steps(op.value))


def _steps(steps: Sequence[Json]) -> Iterator[tuple[Token, int]]:
    """Key and amount of each read in a list of [r, key, value]."""
    for step in steps:
        if isinstance(step, list) and len(step) == 3 and step[0] in {"r", ":r"}:
            yield token(step[1]), int(step[2] is not None)


def _between(views: Sequence[View]) -> int:
    """The number of views that saw neither the least nor the most of every key: only such views can disagree."""
    amounts = np.array([view.amounts for view in views], np.int64)
    is_least = (amounts == amounts.min(axis=0)).all(axis=1)
    is_most = (amounts == amounts.max(axis=0)).all(axis=1)
    return int(np.count_nonzero(~is_least & ~is_most))


def _forks(keys: Sequence[Token], views: Sequence[View]) -> Iterator[Trouble]:
    """Violations between neighbours in order of total amount. There is one iff any two views contradict each other."""
    first = {view.amounts: view for view in reversed(views)}
    ordered = sorted(first.values(), key=lambda view: (sum(view.amounts), view.amounts))
    for less, more in pairwise(ordered):
        behind = [place for place, amount in enumerate(less.amounts) if amount > more.amounts[place]]
        if behind:
            ahead = next(place for place, amount in enumerate(less.amounts) if amount < more.amounts[place])
            text = (
                f"T{less.number} and T{more.number} both read {listed(keys)}. T{less.number} saw more of "
                f"{shown(keys[behind[0]])} than T{more.number}, which saw more of {shown(keys[ahead])}: "
                "neither can have come first."
            )
            ops = (less.number, more.number)
            yield Trouble(LONG_FORK, text, (*map(str, keys), *sorted(ops)), ops)


def judged_write_skew(operations: Sequence[Op]) -> Judgement:
    """The judgement of transactions that read two keys and write one. O(n log n)."""
    troubles = list(_double_inserts(operations))
    witnesses = len(_rivals(operations))
    for (key, other), (these, those) in _skewers(operations).items():
        witnesses += _overlapping(these, those) + _overlapping(those, these)
        troubles += _skews(key, other, these, those)
    return judgement(WRITE_SKEW, SKEW_ANOMALIES, troubles, {WRITE_SKEW: witnesses})


def _skewers(
    operations: Sequence[Op],
) -> Mapping[tuple[Token, Token], tuple[list[Skewer], list[Skewer]]]:
    """For each pair of keys the transactions that appended to the first, and those that appended to the second."""
    found: dict[tuple[Token, Token], tuple[list[Skewer], list[Skewer]]] = {}
    for op in operations:
        reads = dict(op.reads)
        appends = [(key, element) for key, element in op.appends if key in reads]
        if len(appends) != 1 or len(reads) != 2:
            continue
        ((target, element),) = appends
        first, second = sorted(reads, key=lambda key: (isinstance(key, str), key))
        other = second if target == first else first
        skewer = Skewer(op, frozenset(reads[other]), element)
        found.setdefault((first, second), ([], []))[target == second].append(skewer)
    return found


def _skews(key: Token, other: Token, these: Sequence[Skewer], those: Sequence[Skewer]) -> Iterator[Trouble]:
    """A violation for each of `these` for which one of `those` exists such that neither saw the other's append.

    Lists only grow, so an element at place p is missed by every transaction that saw at most p elements. Among those,
    the one whose own element has the highest place is missed by `these` if any is. Each pair found like this is then
    checked exactly.
    """
    here, there = _places(these, those), _places(those, these)
    order = sorted(range(len(those)), key=lambda number: len(those[number].other))
    sizes = np.array([len(those[number].other) for number in order], np.int64)
    highest: list[int] = []  # For each prefix of `order`, its member with the highest element.
    for number in order:
        is_higher = not highest or there[number] > there[highest[-1]]
        highest.append(number if is_higher else highest[-1])
    for number, one in enumerate(these):
        reach = int(np.searchsorted(sizes, here[number], side="right"))
        if reach:
            two = those[highest[reach - 1]]
            if one.element not in two.other and two.element not in one.other:
                first, second = f"T{one.op.number}", f"T{two.op.number}"
                text = (
                    f"{first} and {second} both read {shown(key)} and {shown(other)}; {first} wrote "
                    f"{shown(one.element)} to the former, {second} {shown(two.element)} to the latter, and neither saw "
                    "what the other wrote."
                )
                ops = (one.op.number, two.op.number)
                yield Trouble(WRITE_SKEW, text, (str(key), str(other), *ops), ops)


def _places(these: Sequence[Skewer], those: Sequence[Skewer]) -> list[int]:
    """For each of `these` an upper bound on its element's place in the list; NEVER if `those` did not see it."""
    wanted = {one.element for one in these}
    least: dict[Token, int] = {}
    for two in those:
        for element in two.other:
            if element in wanted:
                least[element] = min(least.get(element, NEVER), len(two.other) - 1)
    return [least.get(one.element, NEVER) for one in these]


def _overlapping(these: Sequence[Skewer], those: Sequence[Skewer]) -> int:
    """The number of `these` that were open at the same time as one of `those`."""
    if not those:
        return 0
    starts: Int64s = np.array([two.op.number for two in those], np.int64)
    ends = np.maximum.accumulate(np.array([two.op.after for two in those], np.int64))
    before = np.searchsorted(starts, np.array([one.op.after for one in these], np.int64), side="left")
    began = np.array([one.op.number for one in these], np.int64)
    return int(np.count_nonzero((before > 0) & (ends[np.maximum(before - 1, 0)] > began)))


def _rivals(operations: Sequence[Op]) -> dict[Token, list[int]]:
    """For each key with more than one attempt, the inserts that succeeded."""
    tried: dict[Token, list[Op]] = {}
    for op in operations:
        if op.f == "insert" and isinstance(op.given, list) and len(op.given) == 2 and isinstance(op.given[1], list):
            tried.setdefault(token(op.given[0]), []).append(op)
    rivals = {key: [op.number for op in ops if op.is_ok] for key, ops in tried.items() if len(ops) > 1}
    return {key: ops for key, ops in rivals.items() if ops}


def _double_inserts(operations: Sequence[Op]) -> Iterator[Trouble]:
    for key, ops in _rivals(operations).items():
        if len(ops) > 1:
            text = f"T{ops[0]} and T{ops[1]} both inserted for {shown(key)}, each only if there was nothing yet."
            yield Trouble(WRITE_SKEW, text, (str(key), *ops), tuple(ops))


CHECKS: Final = (
    invariant(LONG_FORK, FORK_ANOMALIES, judged_long_fork),
    invariant(WRITE_SKEW, SKEW_ANOMALIES, judged_write_skew),
)
