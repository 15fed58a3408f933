"""Deliberate bugs, by name: those of the catalogue (specs: NDB-B01 to B67), each read in one or two places.

The names are those of the catalogue's switches. The descriptions are for people; no checker reads them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NO_COMMIT_BLOCK: Final = "no-commit-block"
UNBLOCK_BEFORE_ALL: Final = "unblock-before-all"
EPOCH_AT_PREPARE: Final = "epoch-at-prepare"
EPOCH_PER_PARTICIPANT: Final = "epoch-per-participant"
NODEFINISH_EARLY: Final = "nodefinish-early"
NODEFINISH_IGNORES_ADOPTED: Final = "nodefinish-ignores-adopted"
ADOPT_WITH_CURRENT_EPOCH: Final = "adopt-with-current-epoch"
TAKEOVER_ABORTS_COMMITTED: Final = "takeover-aborts-committed"
TAKEOVER_COMMITS_PREPARED: Final = "takeover-commits-prepared"
TAKEOVER_PARTIAL_QUERY: Final = "takeover-partial-query"
MASTER_CRASH_FORGETS_COMMIT: Final = "master-crash-forgets-commit"
MASTER_CRASH_LEAVES_BLOCK: Final = "master-crash-leaves-block"
STALE_FAILURE_NO: Final = "stale-failure-no"
ACK_BEFORE_COMMIT: Final = "ack-before-commit"
ROW_UNLOCKED_AT_PREPARE: Final = "locks-released-at-prepare"
COMPLETE_BEFORE_ROWS: Final = "complete-before-rows"
LIB_ANY_NODE_COMPLETES: Final = "lib-any-node-completes"
BUCKET_COUNT_NOT_SET: Final = "bucket-count-not-set"
FAILED_NODE_COUNTS_DONE: Final = "failed-node-counts-done"
NO_RESEND: Final = "no-resend"
FREE_ON_OWN_ACK: Final = "free-on-own-ack"
ACK_ONE_SUBSCRIBER: Final = "ack-one-subscriber"
SWITCH_EPOCH_TOO_LOW: Final = "switch-epoch-too-low"
RESEND_RANGE_SHORT: Final = "resend-range-short"
HANDOVER_DOUBLE: Final = "handover-double"
HANDOVER_HOLE: Final = "handover-hole"
HANDOVER_BEFORE_CONNECT: Final = "handover-before-connect"
OOB_SILENT: Final = "oob-silent"
OOB_FLAG_ALWAYS: Final = "oob-flag-always"
LIB_OVERFLOW_DROPS_ROWS: Final = "lib-overflow-drops-rows"
LIB_RESUME_MID_EPOCH: Final = "lib-resume-mid-epoch"
SLOW_USER_NO_ACK: Final = "slow-user-no-ack"
DISCONNECT_WRONG: Final = "disconnect-wrong"
CLUSTER_FAILURE_KEEPS_PARTIAL: Final = "cluster-failure-keeps-partial"
EPOCH_REUSE: Final = "epoch-reuse"
GCI_SAVED_EARLY: Final = "gci-saved-early"
REDO_TAIL_NOT_INVALIDATED: Final = "redo-tail-not-invalidated"
RESTART_MAX_OF_NODES: Final = "restart-max-of-nodes"
OLD_MASTER_NO_COPY: Final = "old-master-no-copy"
COPY_MISSES_RUNNING: Final = "copy-misses-running"
NO_ARBITRATION: Final = "no-arbitration"
ARBITRATOR_TWO_GRANTS: Final = "arbitrator-two-grants"
MAJORITY_NOT_VIABILITY: Final = "majority-not-viability"
ROW_ORDER_IN_EPOCH: Final = "row-order-in-epoch"
MERGE_LOSES_DELETE_INSERT: Final = "merge-loses-delete-insert"
GCP_BLOCKS_ON_SUBSCRIBER: Final = "gcp-blocks-on-subscriber"
NO_LAG_CHECK: Final = "no-lag-check"
COMMIT_PRIMARY_FIRST: Final = "commit-primary-first"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        NO_COMMIT_BLOCK: "B01: a prepared epoch does not block commits, so its boundary is no consistent cut",
        UNBLOCK_BEFORE_ALL: "B02: the master ends the block of commits when most nodes have confirmed it, not all",
        EPOCH_AT_PREPARE: "B03: a transaction that waits for the block keeps the epoch in which it was prepared",
        EPOCH_PER_PARTICIPANT: "B04: each node puts a transaction's rows into the node's own current epoch",
        NODEFINISH_EARLY: "B05: a node says that an epoch is finished while commits of it are open",
        NODEFINISH_IGNORES_ADOPTED: "B06: an epoch is finished while adopted transactions of it are being committed",
        ADOPT_WITH_CURRENT_EPOCH: "B07: the take-over commits transactions in the current epoch, not in their own",
        TAKEOVER_ABORTS_COMMITTED: "B08: the take-over of a dead coordinator aborts what had begun to commit",
        TAKEOVER_COMMITS_PREPARED: "B09: the take-over of a dead coordinator commits what was only prepared",
        TAKEOVER_PARTIAL_QUERY: "B10: the take-over decides when most nodes have reported, not all",
        MASTER_CRASH_FORGETS_COMMIT: "B11: a new master takes up its own epoch, though others had begun the next one",
        MASTER_CRASH_LEAVES_BLOCK: "B12: the block of commits by a master that died is never ended",
        STALE_FAILURE_NO: "B13: messages of a master that was voted out count on, when they arrive at last",
        ACK_BEFORE_COMMIT: "B14: a client is answered when its commit is decided, before the primaries have it",
        ROW_UNLOCKED_AT_PREPARE: "B16: the lock of a row is released when its change is prepared",
        COMPLETE_BEFORE_ROWS: "B17: an epoch is announced while rows of it wait to be sent together with later ones",
        LIB_ANY_NODE_COMPLETES: "B18: a subscriber takes an epoch as complete on the first node's word",
        BUCKET_COUNT_NOT_SET: "B19: a subscriber adds up numbers of buckets, and counts a resent one twice",
        FAILED_NODE_COUNTS_DONE: "B20: a subscriber takes the buckets of a lost node as complete",
        NO_RESEND: "B21: a node that takes over buckets does not resend unacknowledged epochs",
        FREE_ON_OWN_ACK: "B22: a node frees its peer's buffered rows when its own are acknowledged",
        ACK_ONE_SUBSCRIBER: "B23: a node frees its peer's rows when the first subscriber has stored them, not all",
        SWITCH_EPOCH_TOO_LOW: "B24: a node takes over from the open epoch on, and never sends what it kept of it",
        RESEND_RANGE_SHORT: "B25: a node that takes over resends complete epochs only, and no rows of the open one",
        HANDOVER_DOUBLE: "B26: at a hand-over of buckets both nodes publish the epoch of the switch",
        HANDOVER_HOLE: "B27: at a hand-over of buckets no node publishes the rows of the epoch of the switch",
        HANDOVER_BEFORE_CONNECT: "B28: a restarted node gets its buckets before subscribers have connected to it",
        OOB_SILENT: "B29: rows that did not fit the buffer are missing after a take-over, without a marker",
        OOB_FLAG_ALWAYS: "B30: rows that did not fit the buffer are marked as missing though their publisher lives",
        LIB_OVERFLOW_DROPS_ROWS: "B32: a full buffer of a subscriber drops rows, and their epoch counts as complete",
        LIB_RESUME_MID_EPOCH: "B33: a subscriber that discards epochs goes on in the middle of one",
        SLOW_USER_NO_ACK: "B34: acknowledgements wait while the subscriber's user sleeps",
        DISCONNECT_WRONG: "B35: when one subscriber lags all are disconnected",
        CLUSTER_FAILURE_KEEPS_PARTIAL: "B36: epochs that a failure of the cluster left incomplete are released later",
        EPOCH_REUSE: "B37: after a restart of the whole cluster epochs are used that were used before",
        GCI_SAVED_EARLY: "B38: a checkpoint counts as saved when the redo of the first node is durable, not of all",
        REDO_TAIL_NOT_INVALIDATED: "B39: redo beyond the restored checkpoint stays on disk, for the next restart",
        RESTART_MAX_OF_NODES: "B40: nodes that lack the newest checkpoint take part when the whole cluster restores it",
        OLD_MASTER_NO_COPY: "B41: the node that leads a restart takes its own disk for the newest",
        COPY_MISSES_RUNNING: "B42: rows are copied to a restarted node without locks, so it lacks commits in progress",
        NO_ARBITRATION: "B43: half of the nodes go on without asking the arbitrator",
        ARBITRATOR_TWO_GRANTS: "B44: the arbitrator lets both halves of a partition go on",
        MAJORITY_NOT_VIABILITY: "B45: most of the nodes go on though none of them has the data of a group",
        ROW_ORDER_IN_EPOCH: "B52: the rows of an epoch are delivered by key and hash, not in the order of arrival",
        MERGE_LOSES_DELETE_INSERT: "B53: merged, a row deleted and inserted again in one epoch is a row newly inserted",
        GCP_BLOCKS_ON_SUBSCRIBER: "B63: a node finishes no epoch while a subscriber's acknowledgement is missing",
        NO_LAG_CHECK: "B65: the number of epochs that are kept for slow subscribers has no limit",
        COMMIT_PRIMARY_FIRST: "B67: the primary commits before its backup, so readers see what may yet be aborted",
    }
)
