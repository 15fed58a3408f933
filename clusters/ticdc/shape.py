"""The fixed shape of the cluster: its nodes, the slots of keys, and how timestamps are made.

Keys are spread over slots before ranges of slots become regions: so a workload that counts its keys up writes to all
regions at once.
"""

import re
from typing import Final
from zlib import crc32

import msgspec

from harness.core.machine import NodeId
from harness.core.record import Json

ORACLE: Final = NodeId("pd")
STORES: Final = (NodeId("k1"), NodeId("k2"), NodeId("k3"))
COORDINATORS: Final = (NodeId("t1"), NodeId("t2"))
CAPTURES: Final = (NodeId("c1"), NodeId("c2"))
REGIONS: Final = 3  # At the beginning: ranges of slots of equal length.
MS: Final = 1_000_000
LOGICAL_BITS: Final = 18  # A timestamp is milliseconds, shifted, and a counter.
SLOTS: Final = 1 << 16
_SPREAD: Final = 40_503  # Odd, and about the golden section of the slots: neighbours come far apart.

INCARNATION: Final = re.compile(r"(-?\d+)@(\d+)")  # The name of a row after flashbacks (rows/incarnations.py).

Key = int | str


def key_of(key: Json) -> Key:
    """The key under which rows are found: numbers and text unchanged, anything else as its JSON.

    A row keeps its key through flashbacks, which give it other names.
    """
    found = INCARNATION.fullmatch(key) if isinstance(key, str) else None
    if found is not None:
        return int(found[1])
    return key if isinstance(key, int | str) else msgspec.json.encode(key).decode()


def slot_of(key: Key) -> int:
    """The slot of a key, the same in every process."""
    number = key if isinstance(key, int) else crc32(key.encode())
    return number * _SPREAD & (SLOTS - 1)


def timestamp(physical_ms: int, logical: int = 0) -> int:
    """The timestamp of a millisecond and a counter."""
    return physical_ms << LOGICAL_BITS | logical


def physical_ms(timestamp: int) -> int:
    """The millisecond of a timestamp."""
    return timestamp >> LOGICAL_BITS
