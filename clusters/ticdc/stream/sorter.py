"""The sorter of one capture: it publishes rows of all regions in the order of their commits, up to one watermark.

1. That watermark is the least of the regions' watermarks. The published one never falls, though a region that begins
   anew may start lower.
2. Rows at or below the published watermark are delivered in the order of commit, start and key; each once, however many
   sessions sent it.
"""

from clusters.ticdc.shape import REGIONS
from clusters.ticdc.stream.matcher import Row


class Sorter:
    """The rows that a capture has received since its start, above its checkpoint, and not yet published."""

    def __init__(self, checkpoint: int) -> None:
        self.published = checkpoint
        self.frontier = dict.fromkeys(REGIONS, checkpoint)
        self._rows: dict[tuple[int, int, object], Row] = {}

    def add(self, row: Row) -> None:
        """Keep a row, unless it is here already."""
        self._rows.setdefault((row.commit_ts, row.start_ts, row.key), row)

    def advance(self, region: int, resolved: int) -> None:
        """Note a region's watermark."""
        self.frontier[region] = max(self.frontier[region], resolved)

    def publish(self, regions: tuple[int, ...]) -> list[Row]:
        """The rows up to the new watermark of these regions, which is `published`, in order (invariant 2)."""
        self.published = max(self.published, min(self.frontier[region] for region in regions))
        ready = [place for place in self._rows if place[0] <= self.published]
        ready.sort(key=lambda place: (place[0], place[1], isinstance(place[2], str), place[2]))
        return [self._rows.pop(place) for place in ready]
