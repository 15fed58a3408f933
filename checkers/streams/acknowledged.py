"""S21: after a crash a subscriber still holds what it acknowledged upstream, because the source need not send it again.

Two events show this, if the contract gives them this meaning (`acknowledged: held`): a `checkpoint`, recorded when its
position is acknowledged upstream; and the `open` with which a later session begins, whose position is that of the
subscriber's durable state. A position includes what is at it with `resume: after`, and not with `at`.

A violation is a committed write that the acknowledging session covered, and that the acknowledged position includes and
the later opening does not. Each is reported once per subscriber. Not judged: sessions that begin with a snapshot, which
gives them everything anew; reopenings inside a session; positions of different partitions, or on two sides of a log's
end. A witness is an opening with a position, before which the subscriber crashed after it had acknowledged a write that
it had been sent.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from checkers.columns.facts import Facts
from checkers.columns.index import GroupIndex, codes, earliest_of_each, expand, first_rows, max_so_far
from checkers.engine.protocol import Check, Context, When
from checkers.history.names import Names
from checkers.history.streams import (
    Placement,
    StreamLog,
    merged,
    placed,
    placement_by,
    read_deliveries,
    read_writes,
    stream_logs,
)
from checkers.history.tables import windows
from checkers.history.troubles import Trouble, judgement
from checkers.streams.examples import Example, examples_of
from checkers.streams.findings import both, lost, written
from checkers.streams.rules.events.duplicate_event import acknowledgements
from checkers.streams.view import Ruling, StreamView, stream_view
from checkers.words.anomalies import SHARED
from harness.core.columns import BACKFILL, NEVER, OPEN, Bools, Int64s
from harness.core.promises import Excuse, Excuses, StreamContract
from harness.core.verdict import Judgement

CHECKER: Final = "acknowledgements"
LOST: Final = "lost-acknowledged"
ANOMALIES: Final = {LOST: SHARED[LOST]}


def check(history: Path, context: Context) -> Judgement:
    """The judgement of what subscribers kept of what they acknowledged. Raises HistoryError if damaged."""
    contract, engine, name = context.contract, context.engine, context.name
    if contract is None or contract.acknowledged == "unknown":
        return Judgement(checker=CHECKER, findings=(), witnesses={})
    logs = engine.over(stream_logs(history, contract))
    found: list[tuple[list[Example], int]] = []
    if placements := logs.map(partial(placement_by, shared=Facts())).collect():
        known = merged(placements)
        judge = partial(_judged, contract=contract, excuses=context.excuses, known=known, shared=Facts())
        found = logs.map(judge).collect()
    troubles = (_trouble(example, name) for examples, _ in found for example in examples)
    return judgement(CHECKER, ANOMALIES, troubles, {LOST: sum(count for _, count in found)}, scope=())


def lost_acknowledged(view: StreamView, crashes: dict[int, list[int]]) -> Ruling:
    """The ruling of S21 over one log: a violation's event is the opening, its row the acknowledgement.

    `crashes` are journal positions by subscriber. O(n log n), and for each opening below an acknowledgement the writes
    in between.
    """
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
        witnesses=_witnesses(view, openings, every, crashes),
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


def _witnesses(view: StreamView, opens: Int64s, acks: Int64s, crashes: dict[int, list[int]]) -> int:
    """The openings before which their subscriber acknowledged a write that it had been sent, and then crashed."""
    d = view.deliveries
    crashed = _last_crashes(view, opens, crashes)
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


def _last_crashes(view: StreamView, opens: Int64s, crashes: dict[int, list[int]]) -> Int64s:
    """For each opening the journal position of its subscriber's last crash up to there; -1 without one."""
    who = np.array([who for who, every in crashes.items() for _ in every], np.int64)
    crash = np.array([seq for every in crashes.values() for seq in every], np.int64)
    return GroupIndex(who, crash, crash).last_before(
        view.deliveries.subscriber[opens], view.deliveries.seq[opens], or_equal=True
    )


def _judged(
    log: StreamLog, contract: StreamContract, excuses: Excuses, known: Placement, shared: Facts
) -> tuple[list[Example], int]:
    """The first loss of each subscriber of a log, and the witnesses."""
    folder = Path(log.directory)
    writes = shared.of((folder, "writes"), partial(read_writes, folder))
    view = stream_view(read_deliveries(log, shared=shared), placed(writes, known), contract)
    ruling = lost_acknowledged(view, _crashes(folder, excuses, log.subscribers))
    return examples_of(LOST, log, view, ruling), ruling.witnesses


def _crashes(history: Path, excuses: Excuses, subscribers: Sequence[str]) -> dict[int, list[int]]:
    """For each subscriber its crashes that had an effect and spared its disk, as journal positions."""
    crashes = [
        window
        for window in windows(history, excuses)
        if Excuse.MEMORY in window.excuse and Excuse.WRITES not in window.excuse and window.effect
    ]
    return {
        place: [window.begin_seq for window in crashes if name in window.targets]
        for place, name in enumerate(subscribers)
    }


def _trouble(example: Example, name: Names) -> Trouble:
    (opened, acked), write = both(example), lost(example)
    at, who = name.forms.position, example.subscriber
    return Trouble(
        LOST,
        f"{who} acknowledged {at(acked.position)}, and began session {opened.session} with what it holds up to "
        f"{at(opened.position)}: {written(write, name)} is gone, and the source need not send it again.",
        (who, opened.session, acked.position, opened.position, name(write.key), name(write.value)),
        ops=(write.op,),
        events=(acked.seq, opened.seq),
        group=who,
        count=example.count,
    )


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check, when=When.NAMED, has_kernels=True),)
