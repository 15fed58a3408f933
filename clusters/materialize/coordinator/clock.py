"""The wall clock of a node in units of timestamps, tamed.

Theory of operation. Timestamps follow the wall clock, which may step and stand still.
1. A step back shows: writes wait until the clock has caught up with the oracle's last timestamp.
2. A step forward does not: the reading rises at most twice as fast as time passes. So a clock that is an hour ahead
   for a second takes the timestamps a second ahead, and not an hour.
Source: MaterializeInc/materialize, pull request 15809, which caps the rise of one reading.
"""

from clusters.materialize import planted
from clusters.materialize.shape import UNIT_NS
from clusters.materialize.site import Site

FASTEST = 2


class Clock:
    """The clock of one node. `start`: the reading to begin at, in units; None for the wall clock's."""

    def __init__(self, site: Site, start: int | None = None) -> None:
        self._site = site
        self._seen_ns = site.now_ns()
        self._reading_ns = site.context.local_clock_ns() if start is None else start * UNIT_NS
        self._is_raw = planted.FAR_FUTURE_TS in site.bugs

    def now(self) -> int:
        """The time in units."""
        local_ns, now_ns = self._site.context.local_clock_ns(), self._site.now_ns()
        highest_ns = self._reading_ns + FASTEST * (now_ns - self._seen_ns)
        self._seen_ns = now_ns
        self._reading_ns = local_ns if self._is_raw else min(local_ns, highest_ns)
        return self._reading_ns // UNIT_NS
