"""The shape of the cluster: its nodes, places, containers, and the space of keys."""

from typing import Final
from zlib import crc32

from harness.core.machine import NodeId
from harness.core.record import Json

MS: Final = 1_000_000
METADATA: Final = NodeId("m1")
LOG: Final = NodeId("l1")
CONTROLLERS: Final = (NodeId("c1"), NodeId("c2"))
STORES: Final = (NodeId("s1"), NodeId("s2"), NodeId("s3"))
WRITERS: Final = (NodeId("w1"), NodeId("w2"))
READERS: Final = (NodeId("r1"), NodeId("r2"))

CONTAINERS: Final = 4
SPACE: Final = 1 << 16  # Keys are hashed into [0, SPACE).
FIRST_SEGMENTS: Final = 3  # Of a new stream.
SEGMENTS: Final = (2, 5)  # The fewest and the most segments that a scale leaves.

STORE_PLACE: Final = "metadata"  # The compare-and-set store.
CONTROLLER_PLACE: Final = "controller"
PINGS_PLACE: Final = "pings"  # Leases are renewed through another controller, so that they move.


def key_hash(key: Json) -> int:
    """The place of a key in the space of keys."""
    return crc32(str(key).encode()) % SPACE


def container_of(number: int) -> str:
    """The place that serves the segments of that number, whatever their epoch or transaction."""
    return str(number % CONTAINERS)


def nodes_of(place: str) -> tuple[NodeId, ...]:
    """The nodes that may serve a place."""
    match place:
        case "metadata":
            return (METADATA,)
        case "controller":
            return CONTROLLERS
        case "pings":
            return CONTROLLERS[::-1]
        case _:
            return STORES
