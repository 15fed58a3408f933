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

BUGS: Mapping[str, str] = MappingProxyType(
    {
        CUT_BEFORE_SORT: "B01: a batch is cut from marked transactions before they are put in order",
        ORDER_PER_SEGMENT: "B02: each segment gets the transactions of a batch in its own order",
        MERGE_NOT_ATOMIC: "B03: a merge copies, and deletes its source in a second step",
        ROLL_NOT_PINNED: "B05: a roll that another controller goes on with takes the epoch that is active now",
        EPOCHS_SWAPPED: "B07: a roll puts the duplicates of the active epoch before the transactions",
        STALE_ETR: "B12: a scale is carried out as planned, though its epoch is no longer active",
        WRONG_TXN_EPOCH_NAME: "B13: a merge names its sources after the active epoch",
        TXN_AGAINST_DUPLICATE: "B14: a transaction is created against the active epoch, not against its reference",
        COMMIT_BEFORE_FLUSH: "B15: a writer requests the commit before its events are acknowledged",
        ABORT_WITHOUT_VERSION: "B16: a lease that ran out aborts its transaction, though another host has renewed it",
        SWEEPER_ABORTS_ALL: "B18: all transactions of a dead controller are aborted",
        WRITER_NO_HOLD: "B20: new events go to the successors of a sealed segment before those to be sent again",
        RESEND_NO_DEDUPE: "B21: an event that is sent again is appended again",
        ACK_OVER_GAP: "B22: an event is taken though an earlier one of its writer is missing",
        ANY_PREDECESSOR: "B23: a segment is read as soon as one of its predecessors is completed",
        SUCCESSOR_AT_TAIL: "B24: a successor is read from its present end on",
        NO_EOS_WHEN_EMPTY: "B25: a sealed segment without events shows no end",
        ANY_EPOCH_FIRST: "B32: a batch is taken from the newest epoch that has marked transactions",
        NO_CONTAINER_FENCE: "B34: a log takes what its former owner appends",
    }
)
