"""S14 lost-tail: when all has come to rest, what was committed has arrived."""

import numpy as np

from checkers.delivery import ALL_CLOSED, Part
from checkers.ragged import distinct, groups
from checkers.stream_around import NOT_AT_REST, Around
from checkers.stream_blocks import BLOCK_ROWS
from checkers.stream_index import ascending, expand
from checkers.stream_versions import Versions, superseded
from checkers.stream_view import Ruling, StreamView
from harness.core.columns import NEVER, OK, Int64s


def lost_tails(view: StreamView, missing: Ruling, around: Around, *, block_rows: int = BLOCK_ROWS) -> Ruling:
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
    limit = NEVER if is_settled else around.settled_seq
    found = [_lost(view, missing, part, limit, around.healed_seq) for part in _parts(view, block_rows)]
    last, place, witness = (np.concatenate([part[at] for part in found]) for at in range(3))
    order = ascending(last, place)
    return Ruling(
        watermark=last[order],
        row=np.full(len(order), -1, np.int64),
        write=view.expected[place[order]],
        witnesses=len(distinct(np.append(witness, view.deliveries.subscriber[last]))),
    )


def _parts(view: StreamView, block_rows: int) -> list[Part]:
    """All expected writes, so many at a time: what is made of them stays in the cache. O(n)."""
    count = len(view.expected)
    rows = np.flatnonzero(view.match >= 0)
    shown = groups(view.match[rows] // block_rows, count // block_rows + 1)
    begins = range(0, count + 1, block_rows)
    return [
        Part(np.arange(begin, min(begin + block_rows, count)), rows[own])
        for begin, own in zip(begins, shown, strict=True)
    ]


def _lost(view: StreamView, missing: Ruling, part: Part, limit: int, healed_seq: int) -> tuple[Int64s, Int64s, Int64s]:
    """Of those expected writes the lost ones, each with the last row of who lost it; and who are witnesses.

    What had not certainly been answered before `limit` does not count, unless that is NEVER.
    """
    w = view.writes
    last, place = _owed(view, part.place)
    write = view.expected[place]
    if limit != NEVER:
        counts = (w.outcome[write] == OK) & (w.complete_seq[write] < limit)
        last, place, write = last[counts], place[counts], write[counts]
    is_late = (w.outcome[write] == OK) & (w.invoke_seq[write] > healed_seq)
    lost = _never_came(view, missing, last, place, part.shown)
    return last[lost], place[lost], distinct(view.deliveries.subscriber[last[is_late]])


def _owed(view: StreamView, places: Int64s) -> tuple[Int64s, Int64s]:
    """The last row of each subscriber, with each of those expected writes that its session covers, as its place."""
    d, w = view.deliveries, view.writes
    n = len(d.kind)
    ends = np.zeros(int(d.subscriber.max(initial=-1)) + 1, np.int64)
    ends[d.subscriber] = np.arange(n)
    last = ends[distinct(d.subscriber)]
    owner, place = expand(np.zeros(len(last), np.int64), np.full(len(last), len(places)))
    place = places[place]
    write = view.expected[place]
    now = np.full(len(owner), n, np.int64)
    covered = view.coverage.at(view.session[last][owner], w.key[write], w.span[write], now)
    is_owed = covered.reaches(w.position[write])
    return last[owner[is_owed]], place[is_owed]


def _never_came(view: StreamView, missing: Ruling, last: Int64s, place: Int64s, shown: Int64s) -> Int64s:
    """Which of these writes the subscriber never had, nor anything in their place, and no watermark spoke of.

    `shown` are the rows that show any of them.
    """
    d, who = view.deliveries, view.deliveries.subscriber
    absent = view.first_times(who, shown).at(view.of_write(who[last], place)) == NEVER
    blamed = view.of_write(d.subscriber[missing.watermark], np.searchsorted(view.expected, missing.write))
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
    return left[~is_replaced]
