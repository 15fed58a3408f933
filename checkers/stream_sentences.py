"""Findings about streams as sentences with the facts, for a tired engineer."""

from hashlib import blake2b

from checkers.explain import Name
from checkers.stream_kernel import Example, Missed, Sight
from checkers.stream_units import NO_KEY
from harness.core.columns import COMMIT, WATERMARK
from harness.core.verdict import Finding

CHECKER = "streams"
SECOND = 1_000_000_000


def finding(example: Example, name: Name) -> Finding:
    """The finding that an example stands for; its fingerprint depends on what was promised and what came, only."""
    event, missed = example.event, example.missed
    shown = [None if each is None else (each.position, name(each.key), name(each.value)) for each in (event, missed)]
    facts = (example.anomaly, example.subscriber, example.watermark.session, example.watermark.position, *shown)
    came = missed.came if missed else None
    seen = {sight.seq for sight in (example.watermark, event, came) if sight is not None}
    is_written = missed is not None and missed.key != NO_KEY
    return Finding(
        fingerprint=blake2b(repr(facts).encode(), digest_size=8).hexdigest(),
        anomaly=example.anomaly,
        checker=CHECKER,
        sentence=_sentence(example, name),
        count=example.count,
        ops=(missed.op,) if missed is not None and is_written else (),
        events=tuple(sorted(seen)),
    )


def _sentence(example: Example, name: Name) -> str:
    mark, event, missed = example.watermark, example.event, example.missed
    announced = f"Watermark {mark.position} was announced to {example.subscriber}"
    if event is not None and missed is not None:
        return _torn_sentence(example, event, missed, name)
    if missed is not None:
        what = f"{_shown(missed, name)} at position {missed.position}, written by operation {missed.op},"
        return f"{announced}, but {what} never arrived."
    if event is None:
        raise AssertionError(f"{example} shows nothing")
    if event.kind == WATERMARK:
        return f"{announced} {_after(event, mark)} after watermark {event.position}: it went back."
    where = (
        "that very position, which it includes," if event.position == mark.position else f"position {event.position}"
    )
    return f"{announced}, but {_shown(event, name)} at {where} first arrived {_after(mark, event)} later."


def _torn_sentence(example: Example, event: Sight, missed: Missed, name: Name) -> str:
    mark = example.watermark
    if missed.key == NO_KEY:
        rest = f"but not every row that unit {missed.op} has"
    else:
        end = "never came" if missed.came is None else f"came {_after(mark, missed.came)} later"
        rest = f"but {_shown(missed, name)} of the same unit had not: it {end} (operation {missed.op})"
    what = "A batch ended at" if mark.kind == COMMIT else f"Watermark {mark.position} was announced to"
    return f"{what} {example.subscriber} when {_shown(event, name)} at position {event.position} had arrived, {rest}."


def _shown(what: Sight | Missed, name: Name) -> str:
    return f"{name(what.key)}'s {name(what.value)}"


def _after(earlier: Sight, later: Sight) -> str:
    """The time between two events, in the unit that fits."""
    between_ns = later.ns - earlier.ns
    for unit, size in (("s", SECOND), ("ms", SECOND // 1_000), ("µs", SECOND // 1_000_000)):
        if between_ns >= size // 10:
            return f"{between_ns / size:.1f} {unit}"
    return f"{between_ns} ns"
