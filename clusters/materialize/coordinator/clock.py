"""The wall clock of a node in units of timestamps, tamed.

Theory of operation. Timestamps follow the wall clock, which may step and stand still.
1. The reading never falls: after a step back it stands still until the clock has caught up, and so do writes. The first
   version followed the step, and then needed as long as the step to return.
2. After a step forward the reading rises at most twice as fast as time passes. So a clock that is an hour ahead
   for a second takes the timestamps a second ahead, and not an hour.
Source: MaterializeInc/materialize, pull request 15809, which caps the rise of one reading.
"""

from clusters.materialize import planted
from clusters.materialize.shape import UNIT_NS
from clusters.materialize.site import Site

FASTEST = 2


class Clock:
    """The clock of one node. Timestamps up to `start` are in use already, in units: the reading may rise there at once.

    None: up to the time of the wall clock.
    """

    def __init__(self, site: Site, start: int | None = None) -> None:
        self._site = site
        self._seen_ns = site.now_ns()
        local_ns = site.clock_ns()
        self._start_ns = local_ns if start is None else start * UNIT_NS
        self._reading_ns = min(local_ns, self._start_ns)
        self._is_raw = planted.FAR_FUTURE_TS in site.bugs

    def now(self) -> int:
        """The time in units."""
        local_ns, now_ns = self._site.clock_ns(), self._site.now_ns()
        highest_ns = max(self._start_ns, self._reading_ns + FASTEST * (now_ns - self._seen_ns))
        self._seen_ns = now_ns
        self._reading_ns = local_ns if self._is_raw else max(self._reading_ns, min(local_ns, highest_ns))
        return self._reading_ns // UNIT_NS
