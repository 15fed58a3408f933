"""The fixed shape of the cluster: its nodes, its regions, the region of each key, and the form of timestamps.

Keys are hashed to slots, and ranges of slots are regions: so a workload that uses ascending keys writes to all regions
at once.
"""

from typing import Final
from zlib import crc32

import msgspec

from harness.core.machine import NodeId
from harness.core.record import Json

ORACLE: Final = NodeId("pd")
STORES: Final = (NodeId("k1"), NodeId("k2"), NodeId("k3"))
COORDINATORS: Final = (NodeId("t1"), NodeId("t2"))
CAPTURES: Final = (NodeId("c1"), NodeId("c2"))
REGIONS: Final = (0, 1, 2)
MS: Final = 1_000_000
LOGICAL_BITS: Final = 18  # A timestamp is milliseconds, shifted, and a counter.
SLOT_BITS: Final = 16
_SPREAD: Final = 40_503  # Odd, and about the golden section of the slots: neighbouring keys get distant slots.

Key = int | str


def key_of(key: Json) -> Key:
    """The key under which rows are found: numbers and text unchanged, anything else as its JSON."""
    return key if isinstance(key, int | str) else msgspec.json.encode(key).decode()


def region_of(key: Key) -> int:
    """The region of a key, the same in every process."""
    number = key if isinstance(key, int) else crc32(key.encode())
    slot = number * _SPREAD & ((1 << SLOT_BITS) - 1)
    return slot * len(REGIONS) >> SLOT_BITS


def by_region(keys: tuple[Key, ...]) -> dict[int, tuple[Key, ...]]:
    """The keys of each region, in order; regions in order of their first key."""
    found: dict[int, list[Key]] = {}
    for key in keys:
        found.setdefault(region_of(key), []).append(key)
    return {region: tuple(held) for region, held in found.items()}


def timestamp(physical_ms: int, logical: int = 0) -> int:
    """The timestamp of a millisecond and a counter."""
    return physical_ms << LOGICAL_BITS | logical


def physical_ms(timestamp: int) -> int:
    """The millisecond of a timestamp."""
    return timestamp >> LOGICAL_BITS
