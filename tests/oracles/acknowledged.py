"""The slow, obvious twin of S21: what was acknowledged, and is not held when a later session begins."""

from harness.core.columns import BACKFILL, CHECKPOINT, NEVER, OPEN, ROW
from tests.oracles.stream_logs import count_of
from tests.oracles.streams import Oracle
from tests.worlds.streams.language import Event, Write


def lost(oracle: Oracle) -> dict[tuple[int, Write], int]:
    """(subscriber, write) -> the first opening that no longer holds it."""
    result: dict[tuple[int, Write], int] = {}
    for opened in openings(oracle):
        for ack in acknowledgements(oracle, opened):
            for w in oracle.owed:
                if _is_acknowledged(oracle, ack, opened, w) and not _holds(oracle, oracle.log[opened], w):
                    result.setdefault((oracle.log[opened].subscriber, w), opened)
    return result


def witnesses(oracle: Oracle, crashes: dict[int, list[int]]) -> int:
    """The openings behind a crash behind the acknowledgement of something that had been sent.

    Crashes are places, just before the event that stands there. Of acknowledgements only the highest is looked at.
    """
    count = 0
    for opened in openings(oracle):
        fell = [t for t in crashes.get(oracle.log[opened].subscriber, []) if t <= opened]
        acks = [ack for ack in acknowledgements(oracle, opened) if fell and ack < fell[-1]]
        best = max(acks, key=lambda ack: (oracle.log[ack].position, -ack), default=None)
        sent = [e for t, e in enumerate(oracle.log) if e.kind in (ROW, BACKFILL) and fell and t < fell[-1]]
        count += best is not None and any(
            _is_acknowledged(oracle, best, opened, w)
            for w in (oracle.shown(e) for e in sent if oracle.session(e) == oracle.session(oracle.log[best]))
            if w is not None
        )
    return count


def openings(oracle: Oracle) -> list[int]:
    """The places of the openings that say what a subscriber's durable state holds."""
    result = []
    for t, event in enumerate(oracle.log):
        mine = [e for e in oracle.log if oracle.session(e) == oracle.session(event)]
        is_first = all(oracle.session(e) != oracle.session(event) for e in oracle.log[:t])
        has_snapshot = any(e.kind == BACKFILL for e in mine)
        if is_first and event.kind == OPEN and event.position != NEVER and not has_snapshot:
            result.append(t)
    return result


def acknowledgements(oracle: Oracle, opened: int) -> list[int]:
    """The places of what the subscriber of an opening had acknowledged before it, in other sessions."""
    mine = oracle.log[opened]
    return [
        t
        for t, e in enumerate(oracle.log[:opened])
        if (e.kind, e.key, e.subscriber) == (CHECKPOINT, NEVER, mine.subscriber)
        and e.position != NEVER
        and oracle.session(e) != oracle.session(mine)
    ]


def _is_acknowledged(oracle: Oracle, ack: int, opened: int, w: Write) -> bool:
    """Was the write covered and acknowledged, and is it of what the opening is about?"""
    one, other = oracle.log[ack], oracle.log[opened]
    if not oracle.contract.is_position_global and one.span != other.span:
        return False
    if count_of(oracle, ack) != count_of(oracle, opened):
        return False
    is_meant = other.key in (NEVER, w.key) and other.span in (-1, w.span) and one.span in (-1, w.span)
    return is_meant and _holds(oracle, one, w) and oracle.covers(one, w.key, w.span, ack, w.position)


def _holds(oracle: Oracle, event: Event, w: Write) -> bool:
    """Does the position of that event hold the write?"""
    return w.position < event.position or (w.position == event.position and oracle.contract.resume == "after")
