"""The shape of the cluster: its nodes, its collections, and where each is kept.

A timestamp is an integer: units of 10 ms of a wall clock that begins with the run. A group commit takes one unit.
"""

from typing import Final
from zlib import crc32

from harness.core.machine import NodeId
from harness.core.record import Json

MS: Final = 1_000_000
UNIT_NS: Final = 10 * MS

CATALOG: Final = NodeId("k1")
COORDINATORS: Final = (NodeId("c1"), NodeId("c2"))
DATA: Final = (NodeId("d1"), NodeId("d2"))
COMPUTE: Final = (NodeId("q1"), NodeId("q2"))
INGESTION: Final = NodeId("i1")
UPSTREAM: Final = NodeId("u1")
SUBSCRIBERS: Final = (NodeId("s1"), NodeId("s2"))
SINKS: Final = (NodeId("x1"), NodeId("x2"))
TOPIC: Final = NodeId("b1")
READER: Final = NodeId("s3")
FOLLOWERS: Final = (*SUBSCRIBERS, TOPIC)  # Whichever sink publishes to the topic.

LISTS: Final = ("t0", "t1", "t2")  # Tables whose rows are the elements of lists.
BAGS: Final = ("a0", "a1")  # Tables of which views are made; their rows also go.
SOURCE: Final = "source"
COUNTED: Final = "n0"  # A list in a second timeline, whose timestamps count its writes.
WALL, COUNT = "wall", "count"  # The timelines.
SHARDS: Final = (*LISTS, *BAGS, SOURCE)
FOLLOWED: Final = {SUBSCRIBERS[0]: (LISTS, ()), SUBSCRIBERS[1]: (LISTS, ("sums", "pairs"))}  # Lists and views.

CATALOG_PLACE: Final = "catalog"
COORDINATOR_PLACE: Final = "coordinator"
UPSTREAM_PLACE: Final = "upstream"
TOPIC_PLACE: Final = "topic"
COMPUTE_PLACES: Final = ("compute", "other compute")  # Each leads to both nodes, another one first.


def table_of(key: Json) -> str:
    """The table of a list's key."""
    number = key if isinstance(key, int) else crc32(str(key).encode())
    return LISTS[number % len(LISTS)]


def timeline_of(collection: str) -> str:
    """The timeline of a collection."""
    return COUNT if collection == COUNTED else WALL


def home_of(shard: str) -> NodeId:
    """The data node that keeps a shard. Tables that were created later go where their name leads."""
    number = SHARDS.index(shard) if shard in SHARDS else crc32(shard.encode())
    return DATA[number % len(DATA)]


def nodes_of(place: str) -> tuple[NodeId, ...]:
    """The nodes that may serve a place; any other place is a shard."""
    match place:
        case "catalog":
            return (CATALOG,)
        case "coordinator":
            return COORDINATORS
        case "upstream":
            return (UPSTREAM,)
        case "topic":
            return (TOPIC,)
        case "compute":
            return COMPUTE
        case "other compute":
            return COMPUTE[::-1]
        case _:
            return (home_of(place),)
