"""Phrases that sentences about streams share."""

from checkers.history.names import Name
from checkers.streams.task import Example, Missed, Sight

SECOND = 1_000_000_000


def shown(what: Sight | Missed, name: Name) -> str:
    """A key and its value."""
    return f"{name(what.key)}'s {name(what.value)}"


def both(example: Example) -> tuple[Sight, Sight]:
    """The two events of an example whose anomaly needs two."""
    if example.event is None:
        raise AssertionError(f"{example} shows one event only")
    return example.watermark, example.event


def after(earlier: Sight, later: Sight) -> str:
    """The time between two events, in the unit that fits."""
    between_ns = later.ns - earlier.ns
    for unit, size in (("s", SECOND), ("ms", SECOND // 1_000), ("µs", SECOND // 1_000_000)):
        if between_ns >= size // 10:
            return f"{between_ns / size:.1f} {unit}"
    return f"{between_ns} ns"
