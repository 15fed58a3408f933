"""The names of deliberate bugs: those of the catalogue (specs: TIK-B01 to B39) that are implemented.

They are those of the catalogue's switches. The code reads each in one or two places. The descriptions are for people:
no checker reads them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

WM_IGNORES_LARGE: Final = "wm-ignores-large"
WM_EQ_MIN_COMMIT: Final = "wm-eq-min-commit"
COMMIT_NO_MIN_CHECK: Final = "commit-no-min-check"
ROW_MATCHER: Final = "row-matcher-new-wm"
UNBLOCK_ON_STATUS: Final = "unblock-on-status"
RESCAN_FORGETS_DETERMINED: Final = "rescan-forgets-determined"
NO_LEADER_QUORUM: Final = "no-leader-quorum"
TSO_AFTER_LOCKS: Final = "tso-after-locks"
WM_OVERTAKES_ROWS: Final = "wm-overtakes-rows"
PENDING_LOST_IN_SCAN: Final = "pending-lost-in-scan"
SCAN_WITHOUT_READ_INDEX: Final = "scan-without-read-index"
ABA_OBSERVE: Final = "aba-observe"
MERGE_MAX_SAFE_TS: Final = "merge-max-safe-ts"
TTL_NOT_EXTENDED: Final = "ttl-not-extended"
NO_APPLIED_CHECK: Final = "no-applied-check"
STALE_SKIP_LOCKS: Final = "stale-skip-locks"
HINT_IS_ONGOING: Final = "hint-is-ongoing"
NO_ROLLBACK_RECORD: Final = "no-rollback-record"
NO_GENERATION: Final = "no-generation"
HEARTBEAT_CLOBBERS_ROW: Final = "heartbeat-clobbers-row"
MATCH_BEFORE_INIT: Final = "match-before-init"
FRONTIER_ON_MERGE_SPLIT: Final = "frontier-on-merge-split"
CKPT_BEFORE_FLUSH: Final = "ckpt-before-flush"
WM_NOT_MAX: Final = "wm-not-max"
PD_NO_RANGE: Final = "pd-no-range"
ORPHAN_NEVER_RESOLVED: Final = "orphan-never-resolved"
START_TS_RULE: Final = "start-ts-rule"
IGNORE_SET_SURVIVES: Final = "ignore-set-survives"
SLOW_SUB_DROPS_ROWS: Final = "slow-sub-drops-rows"
SLOW_SUB_BLOCKS_ALL: Final = "slow-sub-blocks-all"
CACHE_DEADLOCK: Final = "cache-deadlock"
MISS_MEANS_DONE: Final = "miss-means-done"
MIN_SKIPS_UNINIT: Final = "min-skips-uninit"
HB_BEFORE_REPLICATE: Final = "hb-before-replicate"
FUTURE_STALE_READ: Final = "future-stale-read-max-ts"
SCAN_VS_OBSERVE: Final = "follower-hole-scan-vs-observe"
FLASHBACK_BLIND_ROLLBACK: Final = "flashback-blind-rollback"
PITR_STATUS_BASED: Final = "pitr-status-based"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        WM_IGNORES_LARGE: "B01: locks of large transactions hold no watermark back",
        WM_EQ_MIN_COMMIT: "B02: a watermark may equal the bound of a large transaction, which may commit just there",
        COMMIT_NO_MIN_CHECK: "B03: a primary key is committed below its lock's bound",
        ROW_MATCHER: "B04: a capture releases row by row, while watermarks count on whole transactions",
        UNBLOCK_ON_STATUS: "B05: a large transaction known as committed elsewhere no longer holds the watermark back",
        RESCAN_FORGETS_DETERMINED: "B06: a new session does not learn whose leftover locks are committed already",
        NO_LEADER_QUORUM: "B07: a leader advances its watermark without a quorum that follows it",
        TSO_AFTER_LOCKS: "B08: a round reads what locks allow before it fetches its timestamp",
        WM_OVERTAKES_ROWS: "B09: rows go by another queue than watermarks, which overtake them",
        PENDING_LOST_IN_SCAN: "B10: entries applied while a new leader scans its locks are not tracked",
        SCAN_WITHOUT_READ_INDEX: "B11: a new leader looks for locks before it has applied what older leaders decided",
        ABA_OBSERVE: "B12: a returning leader continues with its state from before it was deposed",
        NO_APPLIED_CHECK: "B13: a replica can be read at a timestamp before it has applied what that takes",
        STALE_SKIP_LOCKS: "B14: stale reads look at no locks, as they did before",
        HINT_IS_ONGOING: "B15: a stale read takes any hint for a transaction that is still open",
        MERGE_MAX_SAFE_TS: "B16: merged regions can be read up to the higher one of their safe timestamps",
        TTL_NOT_EXTENDED: "B17: heartbeats do not extend the lifetime of a large transaction",
        NO_ROLLBACK_RECORD: "B18: rolling back a transaction without a primary lock leaves no record",
        NO_GENERATION: "B19: a late flush replaces a newer one of the same key",
        HEARTBEAT_CLOBBERS_ROW: "B20: a heartbeat's empty prewrite replaces the row that a capture keeps",
        MATCH_BEFORE_INIT: "B21: commits are matched before the scan has brought their rows",
        FRONTIER_ON_MERGE_SPLIT: "B22: of merged regions a capture takes the higher watermark for the whole",
        CKPT_BEFORE_FLUSH: "B23: a checkpoint moves before the downstream has the rows",
        WM_NOT_MAX: "B24: a region's watermark follows its bound down",
        PD_NO_RANGE: "B25: a restarted oracle begins at its clock, not at the bound that it had saved",
        ORPHAN_NEVER_RESOLVED: "B26: locks that hold a watermark back are never resolved",
        START_TS_RULE: "B27: large transactions hold watermarks back from their start, as they did before",
        FLASHBACK_BLIND_ROLLBACK: "B28: a flashback takes away the locks of a large transaction that has committed",
        PITR_STATUS_BASED: "B29: a log backup's checkpoint follows the watermark, past rows that are still locked",
        IGNORE_SET_SURVIVES: "B30: later snapshots ignore the locks that one snapshot may ignore",
        HB_BEFORE_REPLICATE: "B31: a raised bound is answered before it is replicated",
        SLOW_SUB_DROPS_ROWS: "B32: rows for a full queue are dropped, and watermarks go on",
        SLOW_SUB_BLOCKS_ALL: "B33: while one capture's queue is full, no watermark goes to anybody",
        CACHE_DEADLOCK: "B34: stores that query each other for large transactions at one time wait for ever",
        MISS_MEANS_DONE: "B35: a large transaction of unknown state counts as finished",
        MIN_SKIPS_UNINIT: "B36: the least watermark of all regions leaves out regions with an unfinished scan",
        FUTURE_STALE_READ: "B37: a stale read of the future is refused only after it has pushed whom it met",
        SCAN_VS_OBSERVE: "B38: entries applied between a scan's snapshot and its end do not reach that session",
    }
)
