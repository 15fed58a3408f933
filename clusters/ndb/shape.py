"""The fixed shape of the cluster: node groups, fragments and buckets, and the place of each key.

Two groups of two is the smallest shape in which take-over, hand-over of buckets, the survival of a whole group and
arbitration all differ.
"""

from typing import Final
from zlib import crc32

import msgspec

from harness.core.machine import NodeId
from harness.core.record import Json

ARBITRATOR: Final = NodeId("m1")
GROUPS: Final = ((NodeId("d1"), NodeId("d2")), (NodeId("d3"), NodeId("d4")))
DATA_NODES: Final = tuple(node for group in GROUPS for node in group)
SUBSCRIBERS: Final = (NodeId("s1"), NodeId("s2"))
INJECTORS: Final = (NodeId("b1"), NodeId("b2"))  # They take the place of the subscribers where there is a replica.
REPLICA: Final = NodeId("r1")
SITES: Final = (NodeId("a"), NodeId("b"))  # Each is a whole cluster, where two write to each other.
FRAGMENTS: Final = 4
BUCKETS_OF_GROUP: Final = 4
BUCKETS: Final = BUCKETS_OF_GROUP * len(GROUPS)
MS: Final = 1_000_000
GCI_BITS: Final = 32

IMAGED: Final = "row"  # The first letters of the keys whose rows can be deleted, and whose events have before-images.

Key = int | str


def gci_of(epoch: int) -> int:
    """The global checkpoint to which an epoch belongs; the low bits count its micro epochs."""
    return epoch >> GCI_BITS


def first_epoch(gci: int) -> int:
    """The first epoch of a global checkpoint."""
    return gci << GCI_BITS


def key_of(key: Json) -> Key:
    """The key under which rows are found: numbers and text unchanged, anything else as its JSON."""
    return key if isinstance(key, int | str) else msgspec.json.encode(key).decode()


def is_imaged(key: object) -> bool:
    """True for the keys of the table whose rows can be deleted."""
    return isinstance(key, str) and key.startswith(IMAGED)


def image(element: Json) -> Json:
    """The row of an imaged key after that element: None if there is no row, as a number below zero deletes it."""
    return None if isinstance(element, int) and element < 0 else element


def number_of(key: Key) -> int:
    """The number by which a key is distributed, the same in every process."""
    return key if isinstance(key, int) else crc32(key.encode())


def fragment_of(key: Key) -> int:
    """The fragment of a key, from 0."""
    return number_of(key) % FRAGMENTS


def bucket_of(key: Key) -> int:
    """The bucket of a key.

    Buckets count from 0 over all groups; group g has BUCKETS_OF_GROUP, from BUCKETS_OF_GROUP * g on.
    """
    return group_of_fragment(fragment_of(key)) * BUCKETS_OF_GROUP + number_of(key) // FRAGMENTS % BUCKETS_OF_GROUP


def group_of_fragment(fragment: int) -> int:
    """The number of the node group that holds a fragment."""
    return fragment % len(GROUPS)


def group_of(node: NodeId) -> int:
    """The number of the node group of a data node."""
    return next(number for number, group in enumerate(GROUPS) if node in group)


def buckets_of(group: int) -> range:
    """The buckets of a node group."""
    return range(group * BUCKETS_OF_GROUP, (group + 1) * BUCKETS_OF_GROUP)


def preferred_owner(bucket: int) -> NodeId:
    """The node of its group that publishes a bucket while both are alive."""
    group = GROUPS[bucket // BUCKETS_OF_GROUP]
    return group[bucket % len(group)]
