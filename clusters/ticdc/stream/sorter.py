"""The sorter of one capture: it publishes rows of all regions in the order of their commits, up to one watermark.

1. What is published is the least of the regions' watermarks, and never falls, though a region that begins anew may
   start lower.
2. Rows at or below what is published go out in the order of commit, start and key; each once, however many sessions
   sent it.
3. A region that is new begins at the least watermark of those that had its slots before.
"""

from collections.abc import Sequence

from clusters.ticdc import planted
from clusters.ticdc.regions.messages import Region
from clusters.ticdc.stream.matcher import Row


class Sorter:
    """The rows that a capture has received since its start, above its checkpoint, and not yet published."""

    def __init__(self, checkpoint: int, regions: Sequence[Region], bugs: frozenset[str]) -> None:
        self.published = checkpoint
        self.frontier = dict.fromkeys(regions, checkpoint)
        self._least = max if planted.FRONTIER_ON_MERGE_SPLIT in bugs else min
        self._rows: dict[tuple[int, int, object], Row] = {}

    def add(self, row: Row) -> None:
        """Keep a row, unless it is here already."""
        self._rows.setdefault((row.commit_ts, row.start_ts, row.key), row)

    def cover(self, regions: Sequence[Region]) -> None:
        """Keep the watermarks of these regions, which together hold all slots, from now on (invariant 3)."""
        before = self.frontier
        self.frontier = {
            region: self._least(
                resolved for other, resolved in before.items() if other.start < region.end and region.start < other.end
            )
            for region in regions
        }

    def advance(self, region: Region, resolved: int) -> None:
        """Note a region's watermark."""
        self.frontier[region] = max(self.frontier[region], resolved)

    def publish(self, regions: Sequence[Region]) -> list[Row]:
        """The rows up to the least watermark of these regions, in order; `published` rises to it (invariant 2)."""
        self.published = max(self.published, min(self.frontier[region] for region in regions))
        ready = [place for place in self._rows if place[0] <= self.published]
        ready.sort(key=lambda place: (place[0], place[1], isinstance(place[2], str), place[2]))
        return [self._rows.pop(place) for place in ready]
