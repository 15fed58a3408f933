"""Registers that are only read and written, each value once: decided without a search, in O(n log n).

The write of a value and the reads that returned it form a cluster. If the last invocation of a cluster comes after its
first answer, the register must hold the value all the time between the two: a forward zone. Otherwise all operations of
the cluster overlap between the last invocation and the first answer, and the cluster fits into any moment of that time:
a backward zone. An order exists iff no two forward zones overlap, no forward zone contains a backward one, and no read
was answered before its write was invoked.
Source: Gibbons and Korach, "Testing shared memories", SIAM J. Comput. 26, 1997, section 4.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from checkers.linearizability.search import Act, needed
from harness.core.columns import NEVER

_BEFORE_ALL: Final = -1


def is_linearizable(acts: Iterable[Act], initial: str) -> bool | None:
    """True if an order exists. None if this test cannot decide: two writes of one value, or a write that needs a state.

    No step may have `more`.
    """
    every = list(acts)
    if any(step.needs is not None and step.leads is not None for _, _, step, _ in every):
        return None
    live = [act for act in every if act.is_answered]
    kept = needed([act for act in every if not act.is_answered], [act.step for act in live])
    clusters = {initial: [Act(_BEFORE_ALL, _BEFORE_ALL, live[0].step, -1)]} if live else {}
    for act in (*live, *kept):
        if act.step.leads is not None:
            if act.step.leads in clusters:
                return None
            clusters[act.step.leads] = [act]
    for act in live:
        if act.step.needs is not None:
            if act.step.needs not in clusters or act.end < clusters[act.step.needs][0].call:
                return False
            clusters[act.step.needs].append(act)
    return _fit(list(clusters.values()))


def first_misfit(acts: Sequence[Act], initial: str) -> int:
    """The first operation after whose answer no order exists. The history must not be linearizable."""
    answers = sorted((act.end, act.op) for act in acts if act.is_answered)
    low, high = 0, len(answers) - 1
    while low < high:
        middle = (low + high) // 2
        if is_linearizable(_until(acts, answers[middle][0]), initial) is False:
            high = middle
        else:
            low = middle + 1
    return answers[low][1]


def _until(acts: Iterable[Act], moment: int) -> list[Act]:
    """The operations as they stand at that moment: those still open have no answer yet."""
    begun = [act for act in acts if act.call < moment]
    return [act if act.end <= moment else act._replace(end=NEVER) for act in begun]


def _fit(clusters: Sequence[Sequence[Act]]) -> bool:
    """True if the zones of those clusters are compatible."""
    zones = [(min(act.end for act in each), max(act.call for act in each)) for each in clusters]
    forward = sorted((first, last) for first, last in zones if first < last)
    if any(following < last for (_, last), (following, _) in pairwise(forward)):
        return False
    starts = [first for first, _ in forward]
    for first, last in zones:
        if first >= last:  # A backward zone: all its operations overlap from `last` to `first`.
            place = bisect_left(starts, last) - 1
            if place >= 0 and first < forward[place][1]:
                return False
    return True
