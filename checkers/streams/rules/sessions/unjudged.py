"""Committed writes that no rule could judge: they are counted and named, and no promise covers them."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.runs import distinct
from checkers.history.names import Names, listed
from checkers.history.units import last_reached
from checkers.streams.rules.sessions.joins import join_holes
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import NEVER, OK, WATERMARK, Bools, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract
from harness.core.wording import counted

_SHOWN: Final = 3
HOMELESS: Final = "homeless"  # Every partition passed them, and nothing shows on which one they are.
OPEN: Final = "open"  # Nothing came after them that would close them.
APART: Final = "apart"  # They fell between two sessions, which need not join.


class Unjudged(Struct, frozen=True, kw_only=True):
    """Writes of one log for one reason: their number, and their keys, those of most writes first."""

    reason: str
    count: int
    keys: tuple[int, ...]


def with_partitions(deliveries: Deliveries, writes: SourceWrites, contract: StreamContract) -> SourceWrites:
    """The writes, with a partition for keys of which nothing ever came, where the contract says how many there are.

    Such a key is on one of them. It is judged as if on the one whose watermarks pass the write last.
    """
    spans = distinct(deliveries.span[deliveries.span >= 0])
    if contract.wm_scope != "partition" or contract.partitions != len(spans):
        return writes
    is_homeless = _never_came(deliveries, writes)
    span = writes.span.copy()
    span[is_homeless] = last_reached(deliveries, writes.position[is_homeless])
    return replace(writes, span=span)


def _never_came(deliveries: Deliveries, writes: SourceWrites) -> Bools:
    result: Bools = (writes.span < 0) & (writes.position != NEVER) & ~np.isin(writes.key, deliveries.key)
    return result


def unjudged(view: StreamView, rulings: Sequence[Ruling]) -> Iterator[Unjudged]:
    """The committed writes of a log that never came, and that none of these rulings reports.

    Writes that a session did not cover at the end are left out: they were not promised. So are streams that may skip
    versions, or drop events.
    """
    contract, w, e = view.contract, view.writes, view.expected
    if contract.sessions == "apart" and len(between := join_holes(view).write):
        yield _named(view, APART, distinct(between))
    if contract.versions != "every" or contract.delivery == "at-most-once" or not len(view.session):
        return
    came = np.bincount(view.match[view.match >= 0], minlength=len(e)) > 0
    reported = np.concatenate([e[:0], *(ruling.write for ruling in rulings)])
    left = np.flatnonzero(~came & (w.outcome[e] == OK) & ~np.isin(e, reported))
    if not len(left):
        return
    write = e[left]
    is_covered = np.zeros(len(left), np.bool_)
    for row in distinct(_last_rows(view)).tolist():
        session, now = (np.full(len(left), number) for number in (view.session[row], len(view.session)))
        is_covered |= view.coverage.at(session, w.key[write], w.span[write], now).reaches(w.position[write])
    left, write = left[is_covered], write[is_covered]
    d = view.deliveries
    spans = distinct(d.span[d.span >= 0])
    tops = [d.position[(d.kind == WATERMARK) & (d.span == span)].max(initial=-1) for span in spans.tolist()]
    low = min(tops, default=-1) + (contract.closed == "<=")
    is_homeless = (w.position[write] < low) & (w.span[write] < 0) & (contract.wm_scope == "partition")
    for reason, chosen in ((HOMELESS, write[is_homeless]), (OPEN, write[~is_homeless])):
        if len(chosen):
            yield _named(view, reason, chosen)


def _named(view: StreamView, reason: str, write: Int64s) -> Unjudged:
    key, count = np.unique(view.writes.key[write], return_counts=True)
    keys = tuple(key[np.argsort(-count, kind="stable")].tolist())
    return Unjudged(reason=reason, count=len(write), keys=keys)


def _last_rows(view: StreamView) -> Int64s:
    """The last row of each session."""
    result = np.zeros(int(view.session.max()) + 1, np.int64)
    result[view.session] = np.arange(len(view.session))
    return result


def sentence(found: Unjudged, name: Names) -> str:
    """The sentence about those writes, with what would change it."""
    keys = [name.key(key) for key in found.keys[:_SHOWN]]
    more = len(found.keys) - len(keys)
    whose = f"key{'s' if len(found.keys) > 1 else ''} {listed([*keys, f'{more} more'] if more else keys)}"
    if found.reason == APART:
        fell = f"{counted(found.count, 'committed write')} of {whose} fell between two sessions of a subscriber"
        return f'{fell}, which need not join; with sessions = "joined" under [stream] this is a resume-hole'
    what = f"{counted(found.count, 'committed write')} of {whose} could not be judged"
    if found.reason == HOMELESS:
        return (
            f"{what}: every partition's watermark passed {'it' if found.count == 1 else 'them'}, but nothing shows on "
            "which partition the key is; [stream] partitions = N would tell that there is no other one"
        )
    return (
        f"{what}: no watermark, and no later row in the stream's order, closes {'it' if found.count == 1 else 'them'}"
    )
