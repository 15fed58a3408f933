"""Findings of the stream check: phrases that their sentences share, and fingerprints by the facts."""

from hashlib import blake2b
from typing import Final

from checkers.history.names import Name
from checkers.history.units import NO_KEY
from checkers.streams.examples import Example, Missed, Sight
from harness.core.columns import BACKFILL, ROW
from harness.core.verdict import Finding

CHECKER: Final = "streams"
_SECOND: Final = 1_000_000_000


def stream_finding(
    anomaly: str,
    sentence: str,
    *,
    facts: tuple[object, ...],
    count: int,
    ops: tuple[int, ...] = (),
    events: tuple[int, ...] = (),
) -> Finding:
    """A finding whose fingerprint depends on the anomaly and `facts` alone."""
    return Finding(
        fingerprint=blake2b(repr((anomaly, *facts)).encode(), digest_size=8).hexdigest(),
        anomaly=anomaly,
        checker=CHECKER,
        sentence=sentence,
        count=count,
        ops=ops,
        events=events,
    )


def example_finding(example: Example, sentence: str, name: Name) -> Finding:
    """The finding of an example; its fingerprint depends only on what was promised and what came."""
    mark, event, missed = example.watermark, example.event, example.missed
    sides = [None if each is None else (each.position, name(each.key), name(each.value)) for each in (event, missed)]
    facts: tuple[object, ...] = (example.subscriber, mark.session, mark.position, *sides)
    if mark.kind in (BACKFILL, ROW):
        facts += (name(mark.key), name(mark.value))
    came = missed.came if missed else None
    is_written = missed is not None and missed.key != NO_KEY
    return stream_finding(
        example.anomaly,
        sentence,
        facts=facts,
        count=example.count,
        ops=(missed.op,) if missed is not None and is_written else (),
        events=tuple(sorted({sight.seq for sight in (mark, event, came) if sight is not None})),
    )


def shown(what: Sight | Missed, name: Name) -> str:
    """A key and its value."""
    return f"{name(what.key)}'s {name(what.value)}"


def both(example: Example) -> tuple[Sight, Sight]:
    """The two events of an example whose anomaly needs two."""
    if example.event is None:
        raise AssertionError(f"{example} shows one event only")
    return example.watermark, example.event


def lost(example: Example) -> Missed:
    """The write of an example whose anomaly needs one."""
    if example.missed is None:
        raise AssertionError(f"{example} shows no write")
    return example.missed


def arrived(example: Example, name: Name) -> str:
    """The event that broke a rule, its position, and who received it."""
    event = example.watermark
    return f"{shown(event, name)} at position {event.position} reached {example.subscriber}"


def announced(example: Example) -> str:
    """The watermark that broke a rule, and who received it."""
    return f"Watermark {example.watermark.position} was announced to {example.subscriber}"


def written(write: Missed, name: Name) -> str:
    """A write as the subject of a clause: what it wrote, at which position, and which operation."""
    return f"{shown(write, name)} at position {write.position}, written by operation {write.op},"


def after(earlier: Sight, later: Sight) -> str:
    """The time between two events, in the unit that fits."""
    between_ns = later.ns - earlier.ns
    for unit, size in (("s", _SECOND), ("ms", _SECOND // 1_000), ("µs", _SECOND // 1_000_000)):
        if between_ns >= size // 10:
            return f"{between_ns / size:.1f} {unit}"
    return f"{between_ns} ns"
