"""When faults excuse what a system does, and whom: each from its begin to the end of the grace that follows it."""

from collections.abc import Iterable, Sequence

from checkers.history.intervals import Interval, merged
from checkers.history.tables import Window
from harness.core.columns import NEVER

NODE_FAULTS = ("crash", "lost-writes", "pause", "full-disk", "failover")
LINK_FAULTS = ("partition", "reset", "flaky-link")
SLOW_SUBSCRIBER = "slow-subscriber"


def span(window: Window, grace_ns: int) -> Interval:
    """The time for which that fault excuses what happens."""
    return window.begin_ns, NEVER if window.end_ns == NEVER else window.end_ns + grace_ns


def disturbed(faults: Iterable[Window], grace_ns: int) -> list[Interval]:
    """The time that any of them excuses, as intervals that do not overlap."""
    return merged(span(window, grace_ns) for window in faults)


def is_among(window: Window, nodes: Sequence[str]) -> bool:
    """Are all that it strikes these nodes, or links of these nodes?"""
    return all(any(name in nodes for name in target.split(">")) for target in window.targets)


def overlaps(window: Window, begin_ns: int, end_ns: int, grace_ns: int) -> bool:
    """Was it in force, or its grace not over, at some moment of that time?"""
    start, stop = span(window, grace_ns)
    return start <= end_ns and stop >= begin_ns
