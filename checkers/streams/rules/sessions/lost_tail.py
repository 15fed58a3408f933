"""S14 lost-tail: when the run has come to rest, all committed writes have arrived."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from checkers.columns.blocks import pieces
from checkers.columns.index import Places, ascending, expand
from checkers.columns.runs import distinct
from checkers.history.around import NOT_AT_REST
from checkers.history.names import Names
from checkers.streams.closings import ALL_CLOSED, Part, missing_events
from checkers.streams.examples import Example
from checkers.streams.findings import lost, written
from checkers.streams.rule import Cut, Need, OfLog, Rule
from checkers.streams.rules.sessions.holes import resume_holes, snapshot_holes
from checkers.streams.rules.sessions.missing_event import lost_events
from checkers.streams.supersession import Versions, superseded
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, OK, Int64s


def lost_tails(view: StreamView) -> Ruling:
    """S14: expected writes that a live subscriber's session covered at the end, and that never arrived there.

    Judged only if everything had come to rest. Either the contract says so (`tail`), and then every committed write
    counts; or the run waited for it, and then those count that had been answered before it began to wait. Writes that
    an event closed are left to S09. A session is live if it did not end. The event of a violation is the session's last
    row. A witness is a live subscriber whose session covers a certain write that began when no fault was in force
    any more. O(n log n), and for each subscriber the source's writes after its start.
    """
    is_settled, around = view.contract.tail == "settled", view.log.around
    if view.contract.delivery == "at-most-once" or not (is_settled or around.settled_seq != NOT_AT_REST):
        return Ruling.nothing()
    limit = NEVER if is_settled else around.settled_seq
    ends = _ends(view)
    found = [_lost(view, ends, part, limit) for part in _parts(view, _lacking(view, ends))]
    last, place = (np.concatenate([ends[:0], *(part[at] for part in found)]) for at in range(2))
    order = ascending(last, place)
    witnesses = _witnesses(view, ends, limit, around.healed_seq)
    return Ruling.of_writes(
        last[order], view.expected[place[order]], witnesses=len(distinct(np.append(witnesses, last)))
    )


def _ends(view: StreamView) -> Int64s:
    """The last row of each subscriber, by subscriber."""
    who = view.deliveries.subscriber
    ends = np.full(int(who.max(initial=-1)) + 1, -1, np.int64)
    for piece in pieces(len(who)):
        ends[who[piece]] = np.arange(piece.start, piece.stop)
    return ends[ends >= 0]


def _lacking(view: StreamView, ends: Int64s) -> Int64s:
    """The expected writes, as places, that some subscriber never received. They are few, and only they may be lost."""
    who, count = view.deliveries.subscriber, len(view.expected)
    of_who = Places(who[ends])
    came = np.zeros((len(ends), count + 1), np.bool_)  # The last column is for rows that show no write.
    for piece in pieces(len(who)):
        came[of_who.of(who[piece]), view.match[piece]] = True
    return np.flatnonzero(~came[:, :count].all(axis=0))


def _parts(view: StreamView, places: Int64s) -> Iterator[Part]:
    """Those expected writes, a block at a time, beside the rows that show them."""
    is_meant = np.zeros(len(view.expected) + 1, np.bool_)
    is_meant[places] = True
    shown = [piece.start + np.flatnonzero(is_meant[view.match[piece]]) for piece in pieces(len(view.match))]
    rows = np.concatenate([np.zeros(0, np.int64), *shown])
    place = Places(places).of(view.match[rows])
    for piece in pieces(len(places)):
        yield Part(places[piece], rows[(place >= piece.start) & (place < piece.stop)])


def _lost(view: StreamView, ends: Int64s, part: Part, limit: int) -> tuple[Int64s, Int64s]:
    """The lost writes of that part, each with the last row of the subscriber that lost it: (rows, places)."""
    last, place = _owed(view, ends, _counted(view, part.place, limit))
    never = _never_came(view, last, place, part.shown)
    return last[never], place[never]


def _witnesses(view: StreamView, ends: Int64s, limit: int, healed_seq: int) -> Int64s:
    """The last rows of subscribers whose session covers a certain write that began when no fault was in force."""
    w, left = view.writes, ends
    # The last writes began last: usually the first piece is enough.
    for piece in reversed(list(pieces(len(view.expected)))):
        write = view.expected[piece]
        is_late = (w.outcome[write] == OK) & (w.invoke_seq[write] > healed_seq)
        late = _counted(view, piece.start + np.flatnonzero(is_late), limit)
        left = left[~np.isin(left, _owed(view, left, late)[0])]
        if len(left) == 0:
            break
    result: Int64s = ends[~np.isin(ends, left)]
    return result


def _counted(view: StreamView, places: Int64s, limit: int) -> Int64s:
    """Those of the expected writes that had certainly been answered before `limit`; all of them if that is NEVER."""
    if limit == NEVER:
        return places
    w, write = view.writes, view.expected[places]
    result: Int64s = places[(w.outcome[write] == OK) & (w.complete_seq[write] < limit)]
    return result


def _owed(view: StreamView, ends: Int64s, places: Int64s) -> tuple[Int64s, Int64s]:
    """Pairs of a subscriber, as its last row, and one of those expected writes that its session covers."""
    w = view.writes
    owner, place = expand(np.zeros(len(ends), np.int64), np.full(len(ends), len(places)))
    last, place = ends[owner], places[place]
    write = view.expected[place]
    now = np.full(len(owner), len(view.session), np.int64)
    covered = view.coverage.at(view.session[last], w.key[write], w.span[write], now)
    is_owed = covered.reaches(w.position[write])
    return last[is_owed], place[is_owed]


def _never_came(view: StreamView, last: Int64s, place: Int64s, shown: Int64s) -> Int64s:
    """Places of pairs whose write the subscriber never received, nor a newer version, and that no watermark closed.

    `shown` are the rows that show any of the writes.
    """
    who, missing = view.deliveries.subscriber, lost_events(view)
    absent = view.first_times(who, shown).at(view.of_write(who[last], place)) == NEVER
    blamed = view.of_write(who[missing.watermark], np.searchsorted(view.expected, missing.write))
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


def _sentence(example: Example, name: Names) -> str:
    what = written(lost(example), name)
    return f"All had come to rest, and {example.subscriber} was connected, but {what} never reached it."


LOST_TAIL: Final = Rule(
    name="lost-tail",
    id="S14",
    rank=170,
    anomaly=Anomaly(
        meaning="A committed write never reached a live subscriber, although all was healed and quiet.",
        cause=Cause.LATE,
    ),
    witness="a live subscriber for which something was written after the last fault",
    needs=frozenset({Need.SOURCE, Need.POSITIONS, Need.ALL}),
    cut=Cut.STATE,
    scope=OfLog(lost_tails, _sentence, after=(missing_events, resume_holes, snapshot_holes)),
)
