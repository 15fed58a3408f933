"""The names of deliberate bugs: the implemented part of the catalogue (specs: MZ-B01 to B35).

The code reads each in one or two places. The descriptions are for people: no checker reads them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

READ_NO_CONFIRM: Final = "read-no-confirm"
CONFIRM_CACHED: Final = "confirm-cached"
NO_TABLE_ADVANCE: Final = "no-table-advance"
STALE_TABLE_LIST: Final = "stale-table-list"
SERVE_BEFORE_ADVANCE: Final = "serve-before-advance"
CLOCK_RESTART: Final = "clock-restart"
PERSIST_AFTER_USE: Final = "persist-after-use"
RANGE_BEFORE_EPOCH: Final = "range-before-epoch"
RESTART_BELOW: Final = "restart-below"
RESPOND_BEFORE_APPLY: Final = "respond-before-apply"
RESPOND_BEFORE_DURABLE: Final = "respond-before-durable"
WRITE_REUSES_READ_TS: Final = "write-reuses-read-ts"
PEEK_IGNORES_UPPER: Final = "peek-ignores-upper"
COMPACT_PAST_HOLD: Final = "compact-past-hold"
RTW_STALE_READ: Final = "rtw-stale-read"
RTW_NOT_LINEARIZED: Final = "rtw-not-linearized"
OCC_RETRY_SAME_DIFFS: Final = "occ-retry-same-diffs"
BATCH_SPLIT: Final = "batch-split"
NO_THROTTLE: Final = "no-throttle"
FAR_FUTURE_TS: Final = "far-future-ts"
COMMIT_LIVELOCK: Final = "commit-livelock"
ACK_BEFORE_GLOBAL: Final = "ack-before-global"
ACK_ON_AS_OF: Final = "ack-on-as-of"
ACK_BEFORE_DURABLE: Final = "ack-before-durable"
RESUME_PAST_GAP: Final = "resume-past-gap"
BINDING_NOT_DURABLE: Final = "binding-not-durable"
EPOCH_BACKWARDS: Final = "epoch-backwards"
DDL_UNFENCED: Final = "ddl-unfenced"
TIMELINE_MIXING: Final = "timeline-mixing"
UPPER_MISMATCH_AS_OK: Final = "upper-mismatch-as-ok"
TS_FROM_FRONTIERS: Final = "ts-from-frontiers"
PROGRESS_BEFORE_UPDATES: Final = "progress-before-updates"
NONMONOTONE_CLOCK: Final = "nonmonotone-clock"
ONE_SHARD_BLOCKS_ALL: Final = "one-shard-blocks-all"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        READ_NO_CONFIRM: "B01: a read is answered though the coordinator does not know that it still leads",
        CONFIRM_CACHED: "B02: a coordinator confirms that it leads now and then, and not for each read",
        NO_TABLE_ADVANCE: "B03: a new leader leaves the uppers of tables where they are",
        STALE_TABLE_LIST: "B04: a new leader lists the tables before it becomes the leader",
        SERVE_BEFORE_ADVANCE: "B05: a new leader serves clients before it has raised the uppers of tables",
        CLOCK_RESTART: "B06: a new leader's oracle begins at the time of its clock",
        PERSIST_AFTER_USE: "B07: a timestamp is handed out while the bound above it is still being written",
        RANGE_BEFORE_EPOCH: "B08: a new leader reads the bound before it becomes the leader",
        RESTART_BELOW: "B09: a new leader's oracle begins where it last saw the tables, not at the bound",
        RESPOND_BEFORE_APPLY: "B11: a write is answered when it is durable, and shown to reads later",
        RESPOND_BEFORE_DURABLE: "B12: a write is answered before it is durable",
        WRITE_REUSES_READ_TS: "B13: a write may get the timestamp of a read, and not only one above",
        PEEK_IGNORES_UPPER: "B14: compute answers at once, with the rows that it has by then",
        COMPACT_PAST_HOLD: "B15: collections are compacted up to their uppers, and read below that",
        RTW_STALE_READ: "B16: the read of a read-then-write happens at any timestamp",
        RTW_NOT_LINEARIZED: "B17: the read of a read-then-write is answered without confirmed leadership",
        OCC_RETRY_SAME_DIFFS: "B18: a read-then-write holds no lock, and commits what it has read at a new timestamp",
        BATCH_SPLIT: "B19: the tables of one group commit get successive timestamps",
        NO_THROTTLE: "B20: a group commit does not wait for the clock",
        FAR_FUTURE_TS: "B21: the oracle follows its wall clock wherever that jumps",
        COMMIT_LIVELOCK: "B22: while a group commit waits for the clock, its leader does not show that it lives",
        ACK_BEFORE_GLOBAL: "B23: ingestion acknowledges what is durable, though reads are at lower timestamps",
        ACK_ON_AS_OF: "B24: a read at a given timestamp counts as proof that all reads are there",
        ACK_BEFORE_DURABLE: "B25: ingestion acknowledges what it has in memory",
        RESUME_PAST_GAP: "B26: ingestion goes on with the oldest record that upstream still has",
        BINDING_NOT_DURABLE: "B27: ingestion gives records their timestamps anew after a restart",
        EPOCH_BACKWARDS: "B28: the catalog takes whatever epoch a new leader has chosen for itself",
        DDL_UNFENCED: "B29: the catalog takes what a superseded leader writes",
        TIMELINE_MIXING: "B30: the oracle of one timeline gives the timestamps for reads of another",
        UPPER_MISMATCH_AS_OK: "B31: an append that met another upper counts as done",
        TS_FROM_FRONTIERS: "B32: a read takes the newest timestamp at which its collections can be read",
        PROGRESS_BEFORE_UPDATES: "B33: progress messages do not wait for the updates that they cover",
        NONMONOTONE_CLOCK: "B34: a write gets the time of the clock, whatever was handed out before",
        ONE_SHARD_BLOCKS_ALL: "B35: a group commit waits until all tables have the one before",
    }
)
