"""Findings of the stream check: phrases that their sentences share, and fingerprints from the facts."""

from typing import Final

from checkers.history.names import Names, capital
from checkers.history.units import NO_KEY
from checkers.streams.examples import NO_TIME, Example, Missed, Sight
from checkers.words.checks import STREAMS
from harness.core.columns import BACKFILL, ROW
from harness.core.verdict import Finding, fingerprint

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
    """A finding whose fingerprint depends only on the anomaly and `facts`."""
    return Finding(
        fingerprint=fingerprint(anomaly, *facts),
        anomaly=anomaly,
        checker=STREAMS,
        sentence=sentence,
        count=count,
        ops=ops,
        events=events,
    )


def identity(example: Example, name: Names) -> tuple[object, ...]:
    """The facts of an example that its fingerprint is made of: the subscriber, and the events that are shown."""
    mark, event, missed = example.watermark, example.event, example.missed
    sides = [None if each is None else (each.position, name(each.key), name(each.value)) for each in (event, missed)]
    facts: tuple[object, ...] = (example.subscriber, mark.session, mark.position, *sides)
    if mark.kind in (BACKFILL, ROW):
        facts += (name(mark.key), name(mark.value))
    return facts


def example_finding(example: Example, sentence: str, facts: tuple[object, ...], name: Names) -> Finding:
    """The finding of an example, whose fingerprint is made of the anomaly and `facts`."""
    mark, event, missed = example.watermark, example.event, example.missed
    came = missed.came if missed else None
    is_written = missed is not None and missed.key != NO_KEY
    events = tuple(sorted({sight.seq for sight in (mark, event, came) if sight is not None}))
    lines = name.lines(events)
    return stream_finding(
        example.anomaly,
        f"{sentence.removesuffix('.')} ({lines})." if lines else sentence,
        facts=facts,
        count=example.count,
        ops=(missed.op,) if missed is not None and is_written else (),
        events=events,
    )


def shown(what: Sight | Missed, name: Names) -> str:
    """A value and its key."""
    return name.pair(what.key, what.value)


def first(what: Sight | Missed, name: Names) -> str:
    """A value and its key as the beginning of a sentence."""
    return capital(shown(what, name))


def place(what: Sight | Missed, name: Names, *, beside: Sight | None = None) -> str:
    """The place of an event or a write: " at epoch 10/9"; empty if that is the position of the event beside it."""
    is_known = beside is not None and beside.position == what.position
    return "" if is_known else f" at {name.forms.position(what.position)}"


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


def arrived(example: Example, name: Names) -> str:
    """A phrase with the event that broke a rule, its position, and the subscriber that received it."""
    event = example.watermark
    return f"{first(event, name)}{place(event, name)} reached {example.subscriber}"


def announced(example: Example, name: Names) -> str:
    """A phrase with the watermark that broke a rule, and the subscriber that received it."""
    return name.forms.announced(example.watermark.position, example.subscriber)


def written(write: Missed, name: Names, *, beside: Sight | None = None) -> str:
    """A write as the subject of a clause: value and key, the position unless `beside` has it, and the operation."""
    return f"{shown(write, name)}{place(write, name, beside=beside)} (operation {write.op})"


def later(earlier: Sight, later: Sight) -> str:
    """How long after the first event the second one came, as a phrase."""
    if NO_TIME in (earlier.ns, later.ns):
        return f"{after(earlier, later)} later"
    return f"{after(earlier, later)} later" if later.ns > earlier.ns else "after it, at the same instant"


def after(earlier: Sight, later: Sight) -> str:
    """The time between two events, in a suitable unit."""
    if NO_TIME in (earlier.ns, later.ns):
        return "some time"
    between_ns = later.ns - earlier.ns
    for unit, size in (("s", _SECOND), ("ms", _SECOND // 1_000), ("µs", _SECOND // 1_000_000)):
        if between_ns >= size // 10:
            return f"{between_ns / size:.1f} {unit}"
    return f"{between_ns} ns"
