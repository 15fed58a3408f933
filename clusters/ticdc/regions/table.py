"""The table by which a node routes requests: the regions that stores have reported to it.

1. For each slot the region with the highest version counts, as the versions of a slot's owners rise. Where nothing
   newer is known an old region stays; a store that gets a request for it answers with the regions that it knows.
"""

from bisect import bisect_right
from collections.abc import Iterable

from clusters.ticdc.regions.messages import FIRST, Region
from clusters.ticdc.shape import Key, slot_of


class RegionTable:
    """The regions that this node knows. `regions` covers all slots, in order."""

    def __init__(self) -> None:
        self.regions: tuple[Region, ...] = FIRST
        self._starts = [region.start for region in FIRST]

    def of(self, key: Key) -> Region:
        """The region of a key."""
        return self.regions[bisect_right(self._starts, slot_of(key)) - 1]

    def parts(self, keys: Iterable[Key]) -> dict[Region, tuple[Key, ...]]:
        """The keys of each region, in order; regions in order of their first key."""
        found: dict[Region, list[Key]] = {}
        for key in keys:
            found.setdefault(self.of(key), []).append(key)
        return {region: tuple(held) for region, held in found.items()}

    def learn(self, regions: Iterable[Region]) -> bool:
        """Add these regions to the table (invariant 1). True if that changed it."""
        before = self.regions
        for region in regions:
            if region not in self.regions:
                self._lay(region)
        return self.regions != before

    def _lay(self, region: Region) -> None:
        pieces: list[Region] = []
        for held in self.regions:
            start, end = max(held.start, region.start), min(held.end, region.end)
            if start >= end or held.version >= region.version:
                pieces.append(held)
                continue
            if held.start < start:
                pieces.append(Region(held.id, held.version, held.start, start))
            pieces.append(Region(region.id, region.version, start, end))
            if end < held.end:
                pieces.append(Region(held.id, held.version, end, held.end))
        joined: list[Region] = []
        for piece in pieces:
            last = joined[-1] if joined else None
            if last is not None and (last.id, last.version) == (piece.id, piece.version) and last.end == piece.start:
                joined[-1] = Region(piece.id, piece.version, last.start, piece.end)
            else:
                joined.append(piece)
        self.regions = tuple(joined)
        self._starts = [piece.start for piece in joined]
