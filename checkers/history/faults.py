"""When faults excuse a system, and which nodes: from the start of each fault to the end of its grace."""

from collections.abc import Iterable, Sequence

from checkers.history.intervals import Interval, merged
from checkers.history.tables import Window
from harness.core.columns import NEVER


def span(window: Window, grace_ns: int) -> Interval:
    """The interval during which that fault is an excuse."""
    return window.begin_ns, NEVER if window.end_ns == NEVER else window.end_ns + grace_ns


def disturbed(faults: Iterable[Window], grace_ns: int) -> list[Interval]:
    """Disjoint intervals that cover the time that any of the faults excuses."""
    return merged(span(window, grace_ns) for window in faults)


def is_among(window: Window, nodes: Sequence[str]) -> bool:
    """True if each target of the fault is one of these nodes, or a link with one of them at an end."""
    return all(any(name in nodes for name in target.split(">")) for target in window.targets)


def overlaps(window: Window, begin_ns: int, end_ns: int, grace_ns: int) -> bool:
    """True if the fault was in force, or its grace not over, at some moment between `begin_ns` and `end_ns`."""
    start, stop = span(window, grace_ns)
    return start <= end_ns and stop >= begin_ns
