"""The timestamp oracle of a timeline: one register for writes, one for reads.

Theory of operation. `write_ts` is the last timestamp that was handed out, `read_ts` the last one whose writes are
durable; `bound` is on disk, in the catalog.
1. read_ts <= write_ts < bound: a timestamp is handed out only below a durable bound. So a new leader, which begins at
   the bound, is above every timestamp of those before it.
2. A write gets a timestamp above all that were handed out, and above every read.
3. A read gets `read_ts`: it never waits for a commit that is still in flight.
Source: the published text, sections "Global Timestamp" and "Global Timestamp Recovery".
"""


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
