"""S03 duplicate-event: an event comes once if that is promised, and never again once it is confirmed."""

from typing import Final

import numpy as np
from msgspec.structs import replace

from checkers.columns.blocks import pieces
from checkers.columns.index import GroupIndex, codes, first_places, is_kind, joint_codes, max_so_far
from checkers.history.names import Names
from checkers.streams.coverage import Coverage
from checkers.streams.examples import NO_TIME, Example
from checkers.streams.findings import after, both, first, place
from checkers.streams.rule import OfLog, Rule
from checkers.streams.rules.watermarks.torn_unit import CAME_AGAIN
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import CHECKPOINT, COMMIT, GAP, NEVER, OPEN, ROW, WATERMARK, Bools, Int64s


def duplicate_events(view: StreamView) -> Ruling:
    """Rows that came before, with the same identity and value, although `delivery` and `replay` do not allow that.

    At least once: a session repeats nothing, unless `replay` is session, and a later one only what was not confirmed
    (`confirmed_again`). Exactly or at most once: a session repeats nothing, and if watermarks bind more than a session,
    neither do the sessions of one subscriber. Rows that a session itself requested, by opening at a position below
    them, may come again. One identity with two values is no repetition: it is left to S04, or belongs to two units to
    which the system gave one position. Rows on two sides of a log's end are of two logs. A witness is a first delivery
    after which its session (its subscriber, if sessions are judged together) received more. O(n log n).
    """
    d, contract = view.deliveries, view.contract
    if contract.delivery == "at-least-once" and contract.replay == "session":
        return Ruling.nothing()
    is_joint = contract.delivery != "at-least-once" and contract.wm_scope != "session"
    group = d.subscriber if is_joint else view.session

    rows = np.flatnonzero((d.kind == ROW) & view.is_repeated & ~view.is_phantom)
    last, once = _last_heard(view, group), 0
    goes_on = rows < last[group[rows]]
    for piece in pieces(len(d.kind)):
        alone = np.flatnonzero((d.kind[piece] == ROW) & ~view.is_phantom[piece] & ~view.is_repeated[piece])
        once += int(np.count_nonzero(alone + piece.start < last[group[piece][alone]]))

    what = _contents(view, rows)
    own, other = _previous(codes(view.session[rows], what), rows), _previous(codes(group[rows], what), rows)
    repeated = np.flatnonzero(other >= 0)
    is_broken = ~_is_requested(view, rows[repeated], own[repeated])
    broken = repeated[is_broken]
    return Ruling.of_events(
        rows[broken],
        np.where(own[broken] >= 0, own[broken], other[broken]),
        witnesses=once + int(np.count_nonzero(goes_on[other < 0])),
        legal=len(repeated) - len(broken),
    )


def repetitions(view: StreamView) -> Ruling:
    """All of S03 by time: the violations by `duplicate_events` and `confirmed_again`, and announced ends."""
    found, more = duplicate_events(view), confirmed_again(view)
    d = view.deliveries
    ends = np.flatnonzero((d.kind == COMMIT) & (d.unit_rows == CAME_AGAIN))
    watermark = np.concatenate([found.watermark, more.watermark, ends])
    order = np.argsort(watermark, kind="stable")
    return Ruling.of_events(
        watermark[order],
        np.concatenate([found.row, more.row, np.full(len(ends), -1)])[order],
        witnesses=found.witnesses + more.witnesses,
        legal=found.legal,
    )


def confirmed_again(view: StreamView) -> Ruling:
    """Rows that an earlier session of the subscriber received, and that a checkpoint before this session confirmed.

    Only if `delivery` is at least once and `resumes_behind_checkpoint`, and only for sessions with an `open`, because
    the request of any other is not known. A checkpoint confirms what is at its position with `resume: after`, and not
    with `at`. A witness is the first delivery of such a row, if a later session received anything. O(n log n).
    """
    d, contract = view.deliveries, view.contract
    if contract.delivery != "at-least-once" or not contract.resumes_behind_checkpoint:
        return Ruling.nothing()
    rows = np.flatnonzero((d.kind == ROW) & ~view.is_phantom)
    what = _contents(view, rows)
    own, other = _previous(codes(view.session[rows], what), rows), _previous(codes(d.subscriber[rows], what), rows)
    opened = _since_open(view)
    again = np.flatnonzero((own < 0) & (other >= 0) & (opened[rows] >= 0))
    again = again[_is_confirmed(view, rows[again], opened[rows[again]])]
    again = again[~_is_requested(view, rows[again], own[again])]

    last = _last_open(view, opened)[d.subscriber[rows]]
    first = np.flatnonzero((other < 0) & (rows < last))
    witnesses = np.count_nonzero(_is_confirmed(view, rows[first], last[first]))
    return Ruling.of_events(rows[again], other[again], witnesses=int(witnesses))


def acknowledgements(view: StreamView) -> Int64s:
    """The checkpoints with a position, of a whole stream or of a partition."""
    d = view.deliveries
    return np.flatnonzero((d.kind == CHECKPOINT) & (d.position != NEVER) & (d.key == NEVER))


def _is_confirmed(view: StreamView, rows: Int64s, time: Int64s) -> Bools:
    """True for rows that a checkpoint of their subscriber, recorded before that time, confirmed."""
    d, held = view.deliveries, np.zeros(len(rows), np.bool_)
    acks = acknowledgements(view)
    spans = [d.span[rows]]
    if view.contract.is_position_global:
        spans.append(np.full(len(rows), -1))
    for span in spans:
        of_ack, of_row = joint_codes([d.subscriber[acks], d.span[acks]], [d.subscriber[rows], span])
        place = GroupIndex(of_ack, acks, np.arange(len(acks))).last_before(of_row, time)
        highest = np.append(max_so_far(of_ack, d.position[acks]), -1)[place]
        held |= d.position[rows] <= highest if view.contract.resume == "after" else d.position[rows] < highest
    return held


def _since_open(view: StreamView) -> Int64s:
    """The `open` with which the session of each row began; -1 if it began with something else."""
    d = view.deliveries
    first = first_places(view.session, int(view.session.max(initial=-1)) + 1)
    return np.where(d.kind[first] == OPEN, first, -1)[view.session]


def _last_open(view: StreamView, opened: Int64s) -> Int64s:
    """For each subscriber the last `open` of a session that received anything; -1 if there is none."""
    d = view.deliveries
    heard = np.flatnonzero(((d.kind == ROW) | (d.kind == WATERMARK)) & (opened >= 0))
    result = np.full(int(d.subscriber.max(initial=-1)) + 1, -1, np.int64)
    np.maximum.at(result, d.subscriber[heard], opened[heard])
    return result


def _is_requested(view: StreamView, rows: Int64s, previous: Int64s) -> Bools:
    """True for rows that their session requested after row `previous` (-1: ever), by opening at a position below them.

    A gap cancels nothing that was requested, nor does the end of one partition for a row that names none.
    """
    d = view.deliveries
    without_gaps = replace(d, kind=np.where(d.kind == GAP, CHECKPOINT, d.kind).astype(np.int8))
    requested = Coverage(without_gaps, view.session, np.zeros(len(d.kind), np.bool_), view.contract)
    # For `Coverage`, a row without a partition may be in any of them, which would report uncertain violations.
    # So such rows get a partition here that no event names.
    span = np.where(d.span[rows] < 0, d.span.max(initial=0) + 1, d.span[rows])
    covered = requested.at(view.session[rows], d.key[rows], span, rows)
    return covered.reaches(d.position[rows]) & (covered.since > previous)


def _contents(view: StreamView, rows: Int64s) -> Int64s:
    """Equal numbers for those of `rows` that are the same event with the same value."""
    return codes(view.identity[rows], view.deliveries.value[rows], view.counts()[rows])


def _previous(group: Int64s, rows: Int64s) -> Int64s:
    """For each of `rows`, which are in order of time, the last row of its group before it; -1 if there is none."""
    return GroupIndex(group, rows, rows).last_before(group, rows)


def _last_heard(view: StreamView, group: Int64s) -> Int64s:
    """The last row or watermark that each group received; -1 if there is none."""
    d = view.deliveries
    last = np.full(int(group.max(initial=-1)) + 1, -1, np.int64)
    for piece in pieces(len(group)):
        heard = np.flatnonzero(is_kind(d.kind[piece], (ROW, WATERMARK)))
        last[group[piece][heard]] = heard + piece.start  # Rows ascend: the last one is kept.
    return last


def _sentence(example: Example, name: Names) -> str:
    if example.event is None:
        unit = name.unit(example.watermark.unit)
        return f"The begin or the end of transaction {unit} reached {example.subscriber} again."
    mark, event = both(example)
    what = first(mark, name) + place(mark, name)
    where = "" if mark.session == event.session else f" in session {mark.session}, having come in {event.session}"
    if mark.ns == event.ns != NO_TIME and not where:
        return f"{what} was delivered twice to {example.subscriber} at the same instant."
    return f"{what} reached {example.subscriber} again{where}, {after(event, mark)} after the previous delivery."


DUPLICATE_EVENT: Final = Rule(
    name="duplicate-event",
    id="S03",
    rank=70,
    anomaly=Anomaly(meaning="An event came again where the stream promises that it does not.", cause=Cause.REPEATED),
    witness="a first delivery after which more events came",
    is_online=True,
    scope=OfLog(repetitions, _sentence),
)
