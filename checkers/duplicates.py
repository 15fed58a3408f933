"""S03: an event comes once where the stream promises so."""

from dataclasses import replace

import numpy as np

from checkers.stream_coverage import Coverage
from checkers.stream_index import GroupIndex, codes
from checkers.stream_view import Ruling, StreamView
from harness.core.columns import CHECKPOINT, GAP, ROW, WATERMARK, Bools, Int64s


def duplicate_events(view: StreamView) -> Ruling:
    """Rows that came before, by identity and value, where `delivery` and `replay` do not allow that.

    At least once: a session repeats nothing, unless `replay` is session. Whether what came again in a later session had
    been confirmed is not recorded, so across sessions nothing is judged. Exactly or at most once: a session repeats
    nothing, and where watermarks bind more than a session, neither do those of one subscriber. What a session itself
    asked for, by opening at a position below it, may come again. One identity with two values is no repetition: it is
    S04's, or that of two units to which the system gave one position. A witness is a first delivery behind which its
    session (its subscriber, where sessions are judged together) received more. O(n log n).
    """
    d, contract = view.deliveries, view.contract
    rows = np.flatnonzero((d.kind == ROW) & ~view.is_phantom)
    if contract.delivery == "at-least-once" and contract.replay == "session":
        rows = rows[:0]
    is_joint = contract.delivery != "at-least-once" and contract.wm_scope != "session"
    group = d.subscriber if is_joint else view.session

    goes_on = _goes_on(view, group)[rows]
    once = int(np.count_nonzero(goes_on & ~view.is_repeated[rows]))
    goes_on, rows = goes_on[view.is_repeated[rows]], rows[view.is_repeated[rows]]

    own = _previous(codes(view.session[rows], view.identity[rows], d.value[rows]), rows)
    other = _previous(codes(group[rows], view.identity[rows], d.value[rows]), rows)
    repeated = np.flatnonzero(other >= 0)
    is_broken = ~_is_asked(view, rows[repeated], own[repeated])
    broken = repeated[is_broken]
    return Ruling(
        watermark=rows[broken],
        row=np.where(own[broken] >= 0, own[broken], other[broken]),
        write=np.full(len(broken), -1, np.int64),
        witnesses=once + int(np.count_nonzero(goes_on[other < 0])),
        legal=len(repeated) - len(broken),
    )


def _is_asked(view: StreamView, rows: Int64s, previous: Int64s) -> Bools:
    """Did each row's session open below its position, since the row `previous` (-1: none) of the same session?

    A gap takes back nothing of what was asked for, nor does the end of one partition for a row that names none.
    """
    d = view.deliveries
    without_gaps = replace(d, kind=np.where(d.kind == GAP, CHECKPOINT, d.kind).astype(np.int8))
    asked = Coverage(without_gaps, view.session, np.zeros(len(d.kind), np.bool_), view.contract)
    # To `Coverage` any partition may be that of a row without one, which would accuse where nobody knows: so such rows
    # stand here in a partition that no event names.
    span = np.where(d.span[rows] < 0, d.span.max(initial=0) + 1, d.span[rows])
    covered = asked.at(view.session[rows], d.key[rows], span, rows)
    return covered.reaches(d.position[rows]) & (covered.since > previous)


def _previous(group: Int64s, rows: Int64s) -> Int64s:
    """For each of `rows`, by time, the last one of its group before it, -1 if there is none."""
    return GroupIndex(group, rows, rows).last_before(group, rows)


def _goes_on(view: StreamView, group: Int64s) -> Bools:
    """Did the group of each row receive a row or watermark after it?"""
    d = view.deliveries
    heard = np.flatnonzero((d.kind == ROW) | (d.kind == WATERMARK))
    last = np.full(int(group.max(initial=-1)) + 1, -1, np.int64)
    last[group[heard]] = heard  # Ascending: the last one stays.
    result: Bools = np.arange(len(group)) < last[group]
    return result
