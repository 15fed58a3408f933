"""The names of deliberate bugs: the implemented part of the catalogue (specs: MZ-B01 to B35).

The code reads each in one or two places. The descriptions are for people: no checker reads them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

READ_NO_CONFIRM: Final = "read-no-confirm"
CONFIRM_CACHED: Final = "confirm-cached"
PERSIST_AFTER_USE: Final = "persist-after-use"
RANGE_BEFORE_EPOCH: Final = "range-before-epoch"
RESTART_BELOW: Final = "restart-below"
RESPOND_BEFORE_APPLY: Final = "respond-before-apply"
RESPOND_BEFORE_DURABLE: Final = "respond-before-durable"
PEEK_IGNORES_UPPER: Final = "peek-ignores-upper"
COMPACT_PAST_HOLD: Final = "compact-past-hold"
RTW_STALE_READ: Final = "rtw-stale-read"
RTW_NOT_LINEARIZED: Final = "rtw-not-linearized"
OCC_RETRY_SAME_DIFFS: Final = "occ-retry-same-diffs"
BATCH_SPLIT: Final = "batch-split"
NO_THROTTLE: Final = "no-throttle"
FAR_FUTURE_TS: Final = "far-future-ts"
ACK_BEFORE_GLOBAL: Final = "ack-before-global"
ACK_ON_AS_OF: Final = "ack-on-as-of"
ACK_BEFORE_DURABLE: Final = "ack-before-durable"
BINDING_NOT_DURABLE: Final = "binding-not-durable"
DDL_UNFENCED: Final = "ddl-unfenced"
UPPER_MISMATCH_AS_OK: Final = "upper-mismatch-as-ok"
TS_FROM_FRONTIERS: Final = "ts-from-frontiers"
PROGRESS_BEFORE_UPDATES: Final = "progress-before-updates"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        READ_NO_CONFIRM: "B01: a read is answered though the coordinator does not know that it still leads",
        CONFIRM_CACHED: "B02: a coordinator confirms that it leads now and then, and not for each read",
        PERSIST_AFTER_USE: "B07: a timestamp is handed out while the bound above it is still being written",
        RANGE_BEFORE_EPOCH: "B08: a new leader reads the bound before it becomes the leader",
        RESTART_BELOW: "B09: a new leader's oracle begins where it last saw the tables, not at the bound",
        RESPOND_BEFORE_APPLY: "B11: a write is answered when it is durable, and shown to reads later",
        RESPOND_BEFORE_DURABLE: "B12: a write is answered before it is durable",
        PEEK_IGNORES_UPPER: "B14: compute answers at once, with the rows that it has by then",
        COMPACT_PAST_HOLD: "B15: collections are compacted up to their uppers, and read below that",
        RTW_STALE_READ: "B16: the read of a read-then-write happens at any timestamp",
        RTW_NOT_LINEARIZED: "B17: the read of a read-then-write is answered without confirmed leadership",
        OCC_RETRY_SAME_DIFFS: "B18: a read-then-write holds no lock, and commits what it has read at a new timestamp",
        BATCH_SPLIT: "B19: the tables of one group commit get successive timestamps",
        NO_THROTTLE: "B20: a group commit does not wait for the clock",
        FAR_FUTURE_TS: "B21: the oracle follows its wall clock wherever that jumps",
        ACK_BEFORE_GLOBAL: "B23: ingestion acknowledges what is durable, though reads are at lower timestamps",
        ACK_ON_AS_OF: "B24: a read at a given timestamp counts as proof that all reads are there",
        ACK_BEFORE_DURABLE: "B25: ingestion acknowledges what it has in memory",
        BINDING_NOT_DURABLE: "B27: ingestion gives records their timestamps anew after a restart",
        DDL_UNFENCED: "B29: the catalog takes what a superseded leader writes",
        UPPER_MISMATCH_AS_OK: "B31: an append that met another upper counts as done",
        TS_FROM_FRONTIERS: "B32: a read takes the newest timestamp at which its collections can be read",
        PROGRESS_BEFORE_UPDATES: "B33: progress messages do not wait for the updates that they cover",
    }
)
