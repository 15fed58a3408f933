"""The guarantees of MySQL Cluster's epochs, as data. The numbers are those of the specification, N2, up to 35.

G32 is wider than there: a transaction of a later epoch that builds on a rejected one is rejected, too.
"""

from typing import Final

from harness.core.promises import Promise, StreamContract

SEED = "F. Clements, Eventual consistency with MySQL Cluster and its comments (clusters/ndb/README.md)"

STREAM = StreamContract(
    closed="<=",
    cut="position",
    position="epoch",
    order_key="key",
    delivery="exactly-once",
    replay="session",
    atomic_unit="transaction",
    unit_rows="final",
    is_position_unique=False,
    identity="position+key+value",
    wm_scope="session",
    has_gap_marker=True,
)


def _promise(number: int, text: str, *forbids: str, check: str | None = None, is_purpose: bool = False) -> Promise:
    return Promise(id=f"NDB-G{number}", text=text, source=SEED, forbids=forbids, check=check, is_purpose=is_purpose)


# A read that keeps its lock until commit delays writers of the rows it saw, so they commit later, and in no
# earlier epoch. One without a lock may see an old version and commit epochs later: nothing is promised for it.
_MISSED_BY_LOCKED: Final = tuple(
    f"{name}-watermark{order}"
    for name in ("G-single", "G-nonadjacent", "G2-item")
    for order in ("", "-process", "-realtime")
)

_MARKED: Final = "A gap in a stream is marked before the next epoch."

PROMISES = (
    _promise(
        1,
        "Transactions with committed reads are PL-2: no dirty write, no aborted, intermediate or circular read.",
        "read-committed",
        check="serializability",
        is_purpose=True,
    ),
    _promise(2, "For one key a read shows all that was acknowledged before it began.", "stale-acknowledged"),
    _promise(
        3,
        "Transactions whose reads are all locked until the commit are strictly serializable among themselves.",
        "strict-serializable",
        check="serializability-locked",
    ),
    _promise(4, "A transaction is in one epoch: in the answer, and in every subscriber's stream.", "double-epoch"),
    _promise(
        5,
        "The boundary of two epochs is a consistent cut: dependencies and real time never lead to an older epoch.",
        "cut-not-closed",
        "G0-watermark",
        "G1c-watermark",
        "G0-watermark-process",
        "G1c-watermark-process",
        "G0-watermark-realtime",
        "G1c-watermark-realtime",
    ),
    _promise(
        6,
        "Once an epoch is complete for a subscriber, no row of it or of an older one comes, and epochs only rise.",
        "late-event",
        "late-event-boundary",
        "watermark-regress",
        is_purpose=True,
    ),
    _promise(7, "Every committed change of a complete epoch has been delivered.", "missing-event", is_purpose=True),
    _promise(
        8,
        "In a complete epoch every transaction was delivered whole, or is in none.",
        "torn-unit",
        "torn-watermark",
        "intermediate-watermark",
        is_purpose=True,
    ),
    _promise(
        9,
        "A delivered row is a committed transaction's final change of its key, in an epoch of the session. A merged "
        "one is the net change of its row in an epoch.",
        "phantom-event",
        "wrong-value",
        "outside-filter",
        "wrong-merge",
    ),
    _promise(10, "The changes of one key are delivered in the order of their commits.", "order-inversion"),
    _promise(11, "In a session no row is delivered twice.", "duplicate-event"),
    _promise(
        12,
        "Two subscribers see the same content of an epoch that both completed.",
        "split-view",
        "split-watermark",
        "fork-watermark",
    ),
    _promise(13, _MARKED, "silent-gap"),
    _promise(14, "A gap is marked only if there was a cause for one.", "false-gap"),
    _promise(15, "Epochs rise without holes while the view is stable, and no epoch is used twice.", "epoch-shape"),
    _promise(16, "At each epoch a subscriber's fold is the state of the committed transactions.", "state-mismatch"),
    _promise(
        21,
        "A restart of the whole cluster restores every transaction up to the saved checkpoint, whole, and no other.",
        "lost-acknowledged",
        "resurrected",
        "fractured-restore",
        "phantom-write",
        "duplicate-elements",
        check="durability",
    ),
    _promise(
        22,
        "A restart of the whole cluster loses only recently acknowledged writes, and never a write reported as saved.",
        "loss-beyond-bound",
    ),
    _promise(
        23,
        "With a live node in each group no acknowledged write is lost, no failed one appears, no transaction is torn.",
        "lost-acknowledged",
        "phantom-write",
        "fractured-transaction",
        "resurrected",
        "double-status",
        "duplicate-elements",
        check="survival",
    ),
    _promise(24, "When all is quiet the replicas of a row are equal, its epoch included.", "diverged-replicas"),
    _promise(25, "After a partition at most one side acknowledges writes.", "split-brain"),
    _promise(26, "A node keeps no more epochs for slow subscribers than its limit.", "memory-growth"),
    _promise(
        27,
        "A slow subscriber delays nobody else, and only one that lags is disconnected.",
        "lag",
        "spurious-disconnect",
    ),
    _promise(
        28, "Outside faults and their grace epochs go on, and commits wait for one shortly.", "stall", check="liveness"
    ),
    _promise(29, "A slow user delays no acknowledgement of its subscriber.", "user-blocks-acknowledgements"),
    _promise(
        36,
        "Locked reads agree with epochs: a write that they missed is in no earlier epoch.",
        *_MISSED_BY_LOCKED,
        check="watermark-graph-locked",
    ),
)


# With binlogs, which are streams, and a replica.
REPLICA_PROMISES = (
    *(promise for promise in PROMISES if promise.id != "NDB-G13"),
    _promise(13, _MARKED, "silent-gap", "binlog-gap"),
    _promise(
        17,
        "A binlog has one transaction for each epoch with changes, in order, with the epoch in its position.",
        "split-epoch",
        "binlog-order",
    ),
    _promise(18, "The index of a binlog names the places of the epochs' transactions.", "false-index"),
    _promise(
        19,
        "A replica shows the state of its source after an epoch, with its position, and never an earlier one again.",
        "torn-prefix",
        "torn-transaction",
        "prefix-regress",
        "false-position",
        "repeated-element",
        "skipped-element",
        "phantom-element",
        is_purpose=True,
    ),
    _promise(
        20,
        "After a restart or a change of binlogs a replica lacks nothing, or it stops.",
        "left-out",
        "behind",
        "lost-schema-change",
        "needless-stop",
    ),
    _promise(
        35,
        "What a backup restores, with the epochs of a binlog after it, is the state of the source after an epoch.",
        "false-restore",
    ),
)

# With two sites that write to each other.
ACTIVE_PROMISES = (
    _promise(
        30,
        "When both sites have all changes they have the same rows, and no change was applied over one that it "
        "conflicts with.",
        "site-divergence",
        "missed-conflict",
        is_purpose=True,
    ),
    _promise(31, "A change is rejected only for a conflict, or within the rounding of epochs.", "false-rejection"),
    _promise(
        32,
        "Each rejected change is in the exceptions table. NDB$EPOCH_TRANS rejects a transaction whole, with all that "
        "build on it.",
        "unrecorded-loss",
        "torn-rejection",
        "surviving-dependant",
    ),
    _promise(33, "Under NDB$MAX no change makes a row's value smaller.", "decreasing-maximum"),
    _promise(34, "A site never applies a change that was born there.", "own-change-applied"),
)
