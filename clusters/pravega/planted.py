"""The names of deliberate bugs: those of the catalogue (specs: PRV-B01 to B37) that are implemented.

The code reads each in one or two places. The descriptions are for people: no checker reads them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CUT_BEFORE_SORT: Final = "cut-before-sort"
ORDER_PER_SEGMENT: Final = "order-per-segment"
MERGE_NOT_ATOMIC: Final = "merge-not-atomic"
ROLL_NOT_PINNED: Final = "roll-not-pinned"
EPOCHS_SWAPPED: Final = "epochs-swapped"
STALE_ETR: Final = "stale-etr"
WRONG_TXN_EPOCH_NAME: Final = "wrong-txn-epoch-name"
TXN_AGAINST_DUPLICATE: Final = "txn-against-duplicate"
COMMIT_BEFORE_FLUSH: Final = "commit-before-flush"
ABORT_WITHOUT_VERSION: Final = "abort-without-version"
SWEEPER_ABORTS_ALL: Final = "sweeper-aborts-all"
WRITER_NO_HOLD: Final = "writer-no-hold"
RESEND_NO_DEDUPE: Final = "resend-no-dedupe"
ACK_OVER_GAP: Final = "ack-over-gap"
ANY_PREDECESSOR: Final = "any-predecessor"
SUCCESSOR_AT_TAIL: Final = "successor-at-tail"
NO_EOS_WHEN_EMPTY: Final = "no-eos-when-empty"
ANY_EPOCH_FIRST: Final = "any-epoch-first"
NO_CONTAINER_FENCE: Final = "no-container-fence"
NO_CTR: Final = "no-ctr"
MERGE_INTO_ACTIVE: Final = "merge-into-active"
TXN_EPOCH_UNLISTED: Final = "txn-epoch-unlisted"
PUBLISH_BEFORE_SEAL: Final = "publish-before-seal"
DUP_SEAL_NOT_AWAITED: Final = "dup-seal-not-awaited"
NO_STATE_CAS: Final = "no-state-cas"
ABORT_RACES_COMMIT: Final = "abort-races-commit"
SEAL_DROPS_COMMITTING: Final = "seal-drops-committing"
POSITION_WITHOUT_COMPLETED: Final = "position-without-completed"
NO_FAIR_QUEUE: Final = "no-fair-queue"
EPOCH_GC: Final = "epoch-gc"
CACHE_AFTER_MERGE: Final = "cache-after-merge"
MERGE_BY_EVENT: Final = "merge-by-event"
EARLY_VISIBILITY: Final = "early-visibility"
EPOCH_RECORD_REWRITTEN: Final = "epoch-record-rewritten"
REPLAYED_EVENT: Final = "replayed-event"
CUT_IGNORES_DUPLICATES: Final = "cut-ignores-duplicates"
BATCH_UNCHAINED: Final = "batch-unchained"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        CUT_BEFORE_SORT: "B01: a batch is cut from marked transactions before they are put in order",
        ORDER_PER_SEGMENT: "B02: each segment gets the transactions of a batch in its own order",
        MERGE_NOT_ATOMIC: "B03: a merge copies, and deletes its source in a second step",
        NO_CTR: "B04: a controller that goes on with a commit collects its transactions anew",
        ROLL_NOT_PINNED: "B05: a roll that another controller goes on with takes the epoch that is active now",
        MERGE_INTO_ACTIVE: "B06: transactions of an epoch that is over are merged into the active segments",
        EPOCHS_SWAPPED: "B07: a roll puts the duplicates of the active epoch before the transactions",
        TXN_EPOCH_UNLISTED: "B08: a roll records the duplicates of the active epoch alone",
        PUBLISH_BEFORE_SEAL: "B09: an epoch is active before the segments of the one before are sealed",
        DUP_SEAL_NOT_AWAITED: "B10: a roll does not wait until the duplicates with the transactions are sealed",
        NO_STATE_CAS: "B11: scales are carried out while transactions are committed",
        STALE_ETR: "B12: a scale is carried out as planned, though its epoch is no longer active",
        WRONG_TXN_EPOCH_NAME: "B13: a merge names its sources after the active epoch",
        TXN_AGAINST_DUPLICATE: "B14: a transaction is created against the active epoch, not against its reference",
        COMMIT_BEFORE_FLUSH: "B15: a writer requests the commit before its events are acknowledged",
        ABORT_WITHOUT_VERSION: "B16: a lease that ran out aborts its transaction, though another host has renewed it",
        ABORT_RACES_COMMIT: "B17: a lease that ran out aborts a transaction that is marked for commit",
        SWEEPER_ABORTS_ALL: "B18: all transactions of a dead controller are aborted",
        SEAL_DROPS_COMMITTING: "B19: the seal of a stream does not wait for transactions that are marked for commit",
        WRITER_NO_HOLD: "B20: new events go to the successors of a sealed segment before those to be sent again",
        RESEND_NO_DEDUPE: "B21: an event that is sent again is appended again",
        ACK_OVER_GAP: "B22: an event is taken though an earlier one of its writer is missing",
        ANY_PREDECESSOR: "B23: a segment is read as soon as one of its predecessors is completed",
        SUCCESSOR_AT_TAIL: "B24: a successor is read from its present end on",
        NO_EOS_WHEN_EMPTY: "B25: a sealed segment without events shows no end",
        POSITION_WITHOUT_COMPLETED: "B26: a reader's stored position lacks the segments that it has completed",
        NO_FAIR_QUEUE: "B27: while transactions are marked for commit no scale has its turn",
        EPOCH_GC: "B28: a transaction whose epoch is over cannot be committed",
        CACHE_AFTER_MERGE: "B29: the cache of a segment's tail lacks what was merged",
        MERGE_BY_EVENT: "B30: a merge appends one event after the other",
        EARLY_VISIBILITY: "B31: events of open transactions are in the stream",
        ANY_EPOCH_FIRST: "B32: a batch is taken from the newest epoch that has marked transactions",
        EPOCH_RECORD_REWRITTEN: "B33: a roll that another controller goes on with records its epochs anew",
        NO_CONTAINER_FENCE: "B34: a log takes what its former owner appends",
        REPLAYED_EVENT: "B35: a scale that another controller goes on with is carried out again",
        CUT_IGNORES_DUPLICATES: "B36: a truncation compares the numbers of segments, which their copies share",
        BATCH_UNCHAINED: "B37: a merge does not wait for the one before, and takes longer for an idle transaction",
    }
)
