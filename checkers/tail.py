"""S14 lost-tail: when all has come to rest, what was committed has arrived."""

import numpy as np

from checkers.delivery import ALL_CLOSED
from checkers.ragged import distinct
from checkers.stream_around import NOT_AT_REST, Around
from checkers.stream_index import codes, expand
from checkers.stream_versions import Versions, superseded
from checkers.stream_view import Ruling, StreamView
from harness.core.columns import NEVER, OK, Int64s


def lost_tails(view: StreamView, missing: Ruling, around: Around) -> Ruling:
    """S14: expected writes that a live subscriber's session covered at the end, and that never reached the subscriber.

    Said only where all had come to rest: the contract says so (`tail`), and then every committed write counts; or the
    run waited for it, and then those count that had been answered before it began to wait. Those which a watermark
    closed are S09's (`missing`). A session is live if it did not end. The rule's event is the session's last. A witness
    is a live subscriber whose session covers a certain write that began when no fault was in force any more.
    O(n log n), and for each subscriber what the source wrote behind its start.
    """
    is_settled = view.contract.tail == "settled"
    if view.contract.delivery == "at-most-once" or not (is_settled or around.settled_seq != NOT_AT_REST):
        return Ruling.nothing()
    w, e = view.writes, view.expected
    last, place = _owed(view)
    write = e[place]
    if not is_settled:
        counts = (w.outcome[write] == OK) & (w.complete_seq[write] < around.settled_seq)
        last, place, write = last[counts], place[counts], write[counts]
    is_late = (w.outcome[write] == OK) & (w.invoke_seq[write] > around.healed_seq)
    subscriber = view.deliveries.subscriber
    lost = _never_came(view, missing, last, place)
    return Ruling(
        watermark=last[lost],
        row=np.full(len(lost), -1, np.int64),
        write=write[lost],
        witnesses=len(distinct(np.append(subscriber[last[is_late]], subscriber[last[lost]]))),
    )


def _owed(view: StreamView) -> tuple[Int64s, Int64s]:
    """The last row of each subscriber, with each expected write that its session covers, as its place in `expected`."""
    d, w, e = view.deliveries, view.writes, view.expected
    n = len(d.kind)
    ends = np.zeros(int(d.subscriber.max(initial=-1)) + 1, np.int64)
    ends[d.subscriber] = np.arange(n)
    last = ends[distinct(d.subscriber)]
    owner, place = expand(np.zeros(len(last), np.int64), np.full(len(last), len(e)))
    write = e[place]
    now = np.full(len(owner), n, np.int64)
    covered = view.coverage.at(view.session[last][owner], w.key[write], w.span[write], now)
    is_owed = covered.reaches(w.position[write])
    return last[owner[is_owed]], place[is_owed]


def _never_came(view: StreamView, missing: Ruling, last: Int64s, place: Int64s) -> Int64s:
    """Which of these writes the subscriber never had, nor anything in their place, and no watermark spoke of."""
    d, who = view.deliveries, view.deliveries.subscriber
    absent = view.first_times(who).at(view.of_write(who[last], place)) == NEVER
    of_row = np.full(len(view.writes.op), -1, np.int64)
    of_row[view.expected] = np.arange(len(view.expected))
    blamed = view.of_write(d.subscriber[missing.watermark], of_row[missing.write])
    absent &= ~np.isin(view.of_write(who[last], place), blamed)
    left = np.flatnonzero(absent)
    is_replaced = superseded(
        view,
        Versions.of_expected(view, place[left]),
        group=who,
        watermark=last[left],
        height=np.full(len(left), ALL_CLOSED),
        before=np.full(len(left), NEVER),
    )
    left = left[~is_replaced]
    return left[np.lexsort((codes(place[left]), last[left]))]
