"""S21 lost-acknowledged: after a crash a subscriber still holds what it acknowledged, as the source need not repeat it.

Two events show this, if the contract gives them this meaning (`acknowledged: held`): a `checkpoint`, recorded when its
position is acknowledged upstream; and the `open` with which a later session begins, whose position is that of the
subscriber's durable state. A position includes what is at it with `resume: after`, and not with `at`.

A violation is a committed write that the acknowledging session covered, and that the acknowledged position includes and
the later opening does not. Each is reported once per subscriber. Not judged: sessions that begin with a snapshot, which
gives them everything anew; reopenings inside a session; positions of different partitions, or on two sides of a log's
end. A witness is an opening with a position, before which the subscriber crashed after it had acknowledged a write that
it had been sent.
"""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, codes, earliest_of_each, expand, first_rows, max_so_far
from checkers.history.names import Names
from checkers.streams.examples import Example
from checkers.streams.findings import both, lost, written
from checkers.streams.rule import Need, OfLog, Rule
from checkers.streams.rules.events.duplicate_event import acknowledgements
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import SHARED
from harness.core.columns import BACKFILL, NEVER, OPEN, Bools, Int64s


def lost_acknowledged(view: StreamView) -> Ruling:
    """S21: a violation's event is the opening, its row the acknowledgement.

    Judged if the contract says that `acknowledged` is held. O(n log n), and for each opening below an acknowledgement
    the writes in between.
    """
    if view.contract.acknowledged == "unknown":
        return Ruling.nothing()
    d = view.deliveries
    openings, every = _openings(view), acknowledgements(view)
    opens, acks = _below(view, openings, every)
    low, high = d.position[opens], d.position[acks]
    index = GroupIndex(np.zeros(len(view.expected), np.int64), view.writes.position[view.expected])
    is_after = view.contract.resume == "after"
    none = np.zeros(len(opens), np.int64)
    pair, place = expand(index.place(none, low, above=is_after), index.place(none, high, above=is_after))
    candidate = index.rows[place]
    kept = np.flatnonzero(_is_meant(view, opens[pair], acks[pair], candidate))
    pair, candidate = pair[kept], candidate[kept]
    chosen = earliest_of_each(codes(d.subscriber[opens[pair]], candidate), opens[pair])
    pair, candidate = pair[chosen], candidate[chosen]
    return Ruling(
        watermark=opens[pair],
        row=acks[pair],
        write=view.expected[candidate],
        witnesses=_witnesses(view, openings, every),
    )


def _openings(view: StreamView) -> Int64s:
    """The `open` rows with which sessions begin at a known position, and not with a snapshot."""
    d = view.deliveries
    first = first_rows(view.session)
    first = first[(d.kind[first] == OPEN) & (d.position[first] != NEVER)]
    result: Int64s = first[~np.isin(view.session[first], view.session[d.kind == BACKFILL])]
    return result


def _below(view: StreamView, opens: Int64s, acks: Int64s) -> tuple[Int64s, Int64s]:
    """Pairs of an opening and a higher acknowledgement by an earlier session of the same subscriber."""
    d = view.deliveries
    everything = np.sort(np.append(opens, acks))
    height = np.where(np.isin(everything, acks), d.position[everything], -1)
    reached = np.zeros(len(d.kind), np.int64)
    reached[everything] = max_so_far(d.subscriber[everything], height)
    low = opens[reached[opens] > d.position[opens]]  # Usually none.
    by_time = GroupIndex(d.subscriber[acks], acks, acks)
    who = d.subscriber[low]
    pair, place = expand(by_time.place(who, np.zeros(len(low), np.int64)), by_time.place(who, low))
    opened, ack = low[pair], by_time.rows[place]
    is_apart = view.session[opened] != view.session[ack]
    kept = is_apart & (d.position[opened] < d.position[ack])
    return opened[kept], ack[kept]


def _is_meant(view: StreamView, opens: Int64s, acks: Int64s, candidate: Int64s) -> Bools:
    """True for writes that the acknowledging session covered, and that the opening requests, of the same log."""
    d, w, counts = view.deliveries, view.writes, view.counts()
    write = view.expected[candidate]
    key, span, position = w.key[write], w.span[write], w.position[write]
    result = view.coverage.at(view.session[acks], key, span, acks).reaches(position)
    result &= (d.span[acks] < 0) | (d.span[acks] == span)
    result &= (d.key[opens] == NEVER) | (d.key[opens] == key)
    result &= (d.span[opens] < 0) | (d.span[opens] == span)
    result &= counts[opens] == counts[acks]
    if not view.contract.is_position_global:
        result &= d.span[opens] == d.span[acks]
    return result


def _witnesses(view: StreamView, opens: Int64s, acks: Int64s) -> int:
    """The openings before which their subscriber acknowledged a write that it had been sent, and then crashed."""
    d = view.deliveries
    crashed = _last_crashes(view, opens)
    raised = acks[first_rows(d.subscriber[acks], max_so_far(d.subscriber[acks], d.position[acks]))]
    ack = GroupIndex(d.subscriber[raised], d.seq[raised], raised).last_before(d.subscriber[opens], crashed)
    kept = np.flatnonzero(ack >= 0)
    opens, ack, crashed = opens[kept], ack[kept], crashed[kept]
    sent = np.flatnonzero(view.match >= 0)
    by_time = GroupIndex(view.session[sent], d.seq[sent], sent)
    begin, end = (
        by_time.place(view.session[ack], np.zeros(len(ack), np.int64)),
        by_time.place(view.session[ack], crashed),
    )
    # Several openings of one log after one acknowledgement look at the same rows.
    case = codes(ack, end, view.counts()[opens], d.span[opens] + 1, d.key[opens])
    chosen = first_rows(case)
    pair, place = expand(begin[chosen], end[chosen])
    at, candidate = chosen[pair], view.match[by_time.rows[place]]
    position = view.writes.position[view.expected[candidate]]
    is_held = position <= d.position[ack[at]] if view.contract.resume == "after" else position < d.position[ack[at]]
    at, candidate = at[is_held], candidate[is_held]
    is_meant = _is_meant(view, opens[at], ack[at], candidate)
    return int(np.count_nonzero(np.isin(case, case[at[is_meant]])))


def _last_crashes(view: StreamView, opens: Int64s) -> Int64s:
    """For each opening the journal position of its subscriber's last crash up to there; -1 without one."""
    d, crashes = view.deliveries, view.log.around.crashes
    by_time = GroupIndex(crashes.subscriber, crashes.seq, crashes.seq)
    return by_time.last_before(d.subscriber[opens], d.seq[opens], or_equal=True)


def _sentence(example: Example, name: Names) -> str:
    (opened, acked), write = both(example), lost(example)
    at = name.forms.position
    return (
        f"{example.subscriber} acknowledged {at(acked.position)}, and began session {opened.session} with what it "
        f"holds up to {at(opened.position)}: {written(write, name)} is gone, and the source need not send it again."
    )


def _identity(example: Example, name: Names) -> tuple[object, ...]:
    (opened, acked), write = both(example), lost(example)
    return (example.subscriber, opened.session, acked.position, opened.position, name(write.key), name(write.value))


LOST_ACKNOWLEDGED: Final = Rule(
    name="lost-acknowledged",
    id="S21",
    rank=250,
    anomaly=SHARED["lost-acknowledged"],
    witness="an opening after a crash, of a subscriber that had acknowledged a write it was sent",
    needs=frozenset({Need.SOURCE}),
    scope=OfLog(lost_acknowledged, _sentence),
    identity=_identity,
)
