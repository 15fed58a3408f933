"""Timelines: each has a timestamp oracle, with one register for writes and one for reads.

Theory of operation. `write_ts` is the last timestamp that was handed out, `read_ts` the last one whose writes are
durable; `bound` is on disk, in the catalog.
1. read_ts <= write_ts < bound: a timestamp is handed out only below a durable bound. So a new leader, which begins at
   the bound, is above every timestamp of those before it.
2. A write gets a timestamp above all that were handed out, and above every read.
3. A read gets `read_ts`: it never waits for a commit that is still in flight.
4. Timelines are independent: no timestamp of one limits another, and no query reads two.
Source: the published text, sections "Global Timestamp" and "Global Timestamp Recovery".
"""

from collections.abc import Callable


class Oracle:
    """The oracle of one leader, which begins at the bound that it found."""

    def __init__(self, bottom: int, bound: int) -> None:
        self.read_ts = self.write_ts = self.bottom = bottom
        self.bound = bound

    def next_write(self, now: int) -> int:
        """The timestamp of the next write, which is not handed out yet: see `take`."""
        return max(self.write_ts + 1, now)

    def take(self, ts: int) -> None:
        """Hand out a timestamp that `next_write` gave."""
        self.write_ts = max(self.write_ts, ts)

    def apply_write(self, ts: int) -> None:
        """Show the writes at `ts`, which are durable, to reads."""
        self.read_ts = max(self.read_ts, ts)
        self.write_ts = max(self.write_ts, ts)


class Timeline:
    """A timeline under one leader. `now`: the time that its timestamps follow."""

    def __init__(self, name: str, oracle: Oracle, now: Callable[[], int]) -> None:
        self.name = name
        self.oracle = oracle
        self.now = now
        self.holds: dict[int, int] = {}  # The number of reads in progress, by timestamp.

    def hold(self, ts: int) -> None:
        """Keep what can be read at `ts` until `release`."""
        self.holds[ts] = self.holds.get(ts, 0) + 1

    def release(self, ts: int) -> None:
        """End a hold."""
        self.holds[ts] -= 1
        if not self.holds[ts]:
            del self.holds[ts]
