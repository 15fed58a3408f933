"""Deliberate bugs, by name: the first dozen of the catalogue (specs: NDB-B01 to B67), each read in one or two places.

The names are those of the catalogue's switches. The descriptions are for people; no checker reads them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NO_COMMIT_BLOCK: Final = "no-commit-block"
NODEFINISH_EARLY: Final = "nodefinish-early"
TAKEOVER_ABORTS_COMMITTED: Final = "takeover-aborts-committed"
ACK_BEFORE_COMMIT: Final = "ack-before-commit"
LIB_ANY_NODE_COMPLETES: Final = "lib-any-node-completes"
BUCKET_COUNT_NOT_SET: Final = "bucket-count-not-set"
FREE_ON_OWN_ACK: Final = "free-on-own-ack"
HANDOVER_DOUBLE: Final = "handover-double"
OOB_SILENT: Final = "oob-silent"
EPOCH_REUSE: Final = "epoch-reuse"
REDO_TAIL_NOT_INVALIDATED: Final = "redo-tail-not-invalidated"
NO_ARBITRATION: Final = "no-arbitration"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        NO_COMMIT_BLOCK: "B01: a prepared epoch does not block commits, so its boundary is no consistent cut",
        NODEFINISH_EARLY: "B05: a node says that an epoch is finished while commits of it are open",
        TAKEOVER_ABORTS_COMMITTED: "B08: the take-over of a dead coordinator aborts what had begun to commit",
        ACK_BEFORE_COMMIT: "B14: a client is answered when its commit is decided, before the primaries have it",
        LIB_ANY_NODE_COMPLETES: "B18: a subscriber takes an epoch as complete on the first node's word",
        BUCKET_COUNT_NOT_SET: "B19: a subscriber adds up numbers of buckets, and counts a resent one twice",
        FREE_ON_OWN_ACK: "B22: a node frees its peer's buffered rows when its own are acknowledged",
        HANDOVER_DOUBLE: "B26: at a hand-over of buckets both nodes publish the epoch of the switch",
        OOB_SILENT: "B29: rows that did not fit the buffer are missing after a take-over, without a marker",
        EPOCH_REUSE: "B37: after a restart of the whole cluster epochs are used that were used before",
        REDO_TAIL_NOT_INVALIDATED: "B39: redo beyond the restored checkpoint stays on disk, for the next restart",
        NO_ARBITRATION: "B43: half of the nodes go on without asking the arbitrator",
    }
)
