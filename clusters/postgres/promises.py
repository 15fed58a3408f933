"""The guarantees of PostgreSQL 15, from its documentation, as data; and the options under which each holds."""

from typing import Final

from clusters.postgres.service import SYNC
from clusters.servers.promises import Documentation
from harness.core.machine import Settings
from harness.core.promises import Promise, StreamContract

STREAM: Final = StreamContract(
    closed="<=",  # A position is the end of a commit record; commits that end there have been sent.
    cut="position",
    position="lsn",
    order_key="global",
    resume="after",
    delivery="at-least-once",
    replay="resume",
    atomic_unit="transaction",
    unit_rows="each",
    versions="every",
    identity="position+key+ordinal",
    wm_scope="session",
    acknowledged="held",  # A session begins at the position that its subscriber kept.
    wm_idle="rests",  # Without new entries in the log there is nothing to announce.
)
_promise: Final = Documentation("PG", "documentation of PostgreSQL 15, {}").promise

SERIALIZABLE: Final = _promise(
    1,
    "Serializable transactions have the effect of some serial order.",
    'chapter 13.2.3, "Serializable Isolation Level"',
    "serializable",
    is_purpose=True,
)
REPEATABLE_READ: Final = _promise(
    2,
    "Repeatable read is snapshot isolation: all of a transaction sees one snapshot, and no update is lost.",
    'chapter 13.2.2, "Repeatable Read Isolation Level"',
    "snapshot-isolation",
    is_purpose=True,
)
READ_COMMITTED: Final = _promise(
    3,
    "Read committed never shows what is not committed, nor what its transaction overwrote.",
    'chapter 13.2.1, "Read Committed Isolation Level"',
    "read-committed",
    is_purpose=True,
)
FRESH: Final = _promise(
    4,
    "A transaction sees everything that was committed before it began.",
    "chapters 13.2.1 and 13.2.2: a snapshot is taken when a query, or a transaction's first query, begins",
    "stale-acknowledged",
)
DURABLE: Final = _promise(
    5,
    "Acknowledged writes survive crashes of the server, and undone writes do not come back.",
    'chapter 30.1, "Reliability", and 30.3, "Write-Ahead Logging"',
    "lost-acknowledged",
    "phantom-write",
    "duplicate-elements",
    check="survival",
)
SYNCHRONOUS: Final = _promise(
    6,
    "With synchronous replication what was acknowledged is on the standby, and survives the loss of the primary.",
    'chapter 27.2.8, "Synchronous Replication"',
    "lost-acknowledged",
    check="survival",
    is_purpose=True,
)
PROMOTED: Final = _promise(
    7,
    "A promoted standby has committed transactions of the primary, each once, and nothing that was undone.",
    'chapters 27.2.5, "Streaming Replication", and 27.3, "Failover"',
    "phantom-write",
    "duplicate-elements",
    check="survival",
    is_purpose=True,
)
_LEVELS: Final = {
    "PG-1": "serializable",
    "PG-2": "repeatable-read",
    "PG-3": "read-committed",
}
_DECODING: Final = 'chapter 49, "Logical Decoding"'
_SLOTS: Final = 'chapter 49.2.2, "Replication Slots"'
_PROTOCOL: Final = 'chapter 55.5, "Logical Streaming Replication Protocol"'

OF_STREAM: Final = (
    _promise(
        11,
        "Transactions are sent when they are committed, in the order of their commits.",
        f"{_DECODING}: 49.6.4.3 and 49.8; {_PROTOCOL}",
        "order-inversion",
    ),
    _promise(
        12,
        "Nothing that was committed at or below a position comes after the source has named that position.",
        f'chapter 55.4, "Streaming Replication Protocol", keep-alive; {_PROTOCOL}',
        "late-event",
        "late-event-boundary",
        is_purpose=True,
    ),
    _promise(
        13,
        "Each change of a committed transaction is sent: a slot keeps unconfirmed changes through any crash.",
        _SLOTS,
        "missing-event",
        is_purpose=True,
    ),
    _promise(
        14,
        "A transaction is sent whole, between its begin and its commit.",
        _PROTOCOL,
        "torn-unit",
        is_purpose=True,
    ),
    _promise(15, "Only committed changes are sent, unaltered.", _DECODING, "phantom-event", "wrong-value"),
    _promise(
        16,
        "A session that resumes is sent everything behind the position that it names, without a gap.",
        f"{_SLOTS}; chapter 55.4, START_REPLICATION",
        "resume-hole",
    ),
    _promise(17, "A subscriber that is connected is sent everything in the end.", _SLOTS, "lost-tail"),
    _promise(
        18, "In one session each change is sent once; it may come again in a later one.", _SLOTS, "duplicate-event"
    ),
    _promise(
        19, "Slots show the same transactions: each is an independent stream of the same log.", _SLOTS, "split-view"
    ),
    _promise(20, "Changes replayed in order give the state of the source.", _DECODING, "state-mismatch"),
    # The stream has the order of commit records, while transactions see each other in the order in which commits become
    # visible, a little later: of two concurrent ones, the second in the log may be visible first. A reader in between
    # has the second and lacks the first, and a watermark between their records has the first and lacks the second. The
    # cycle has the reader's rw, so no class with an rw is forbidden, at any level. Without an rw, each step goes
    # up in the log: a commit is seen, overwritten or answered only after its record was written, and the transaction
    # that saw, overwrote or followed it writes its own record later. One log has one order for all slots.
    _promise(
        21,
        "The content of a position is a consistent cut, the same for all subscribers.",
        _DECODING,
        "order-watermark",
        "intermediate-watermark",
        "torn-watermark",
        "split-watermark",
        "fork-watermark",
        "G0-watermark",
        "G1c-watermark",
        check="watermark-graph",
    ),
    _promise(
        22,
        "A subscriber holds its flushed changes after a crash: the source need not send them again.",
        'chapter 55.4, "Streaming Replication Protocol", standby status update',
        "lost-acknowledged",
        check="streams",
    ),
)

OF_LEVELS: Final = (SERIALIZABLE, REPEATABLE_READ, READ_COMMITTED)
OF_PRIMARY: Final = (*OF_LEVELS, FRESH, DURABLE, *OF_STREAM)
OF_FAILOVER: Final = (*OF_LEVELS, FRESH, SYNCHRONOUS, PROMOTED)


def holds(promise: Promise, settings: Settings) -> bool:
    """True if the promise holds with those settings: of the isolation promises, only that of the chosen level."""
    return _LEVELS.get(promise.id) in (None, settings.options["isolation"])


def holds_after_failover(promise: Promise, settings: Settings) -> bool:
    """True if the promise holds after a failover. With an asynchronous standby the end of the log may be lost."""
    return holds(promise, settings) and (promise is PROMOTED or settings.options["replication"] == SYNC)
