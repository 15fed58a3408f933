"""The guarantees of etcd, from its documentation, as data; and the options under which each holds."""

from typing import Final

from clusters.servers.promises import Documentation
from harness.core.machine import Settings
from harness.core.promises import Promise, StreamContract

STREAM: Final = StreamContract(
    closed="<=",  # A progress notification of a revision covers the events of that revision.
    cut="position",
    position="revision",
    order_key="global",
    resume="after",
    delivery="at-least-once",
    replay="resume",
    atomic_unit="transaction",  # One request makes one revision.
    unit_rows="final",  # A request puts each key once at most.
    versions="every",
    identity="position+key+ordinal",
    wm_scope="session",  # The next session may be at a member that is behind.
    wm_idle="rests",
    has_gap_marker=True,  # compact_revision
    realtime="follows",
)
_promise: Final = Documentation(
    "ETCD", 'https://etcd.io/docs/v3.5/learning/api_guarantees/, "{}", read on 2026-11-27'
).promise

STRICT: Final = _promise(
    1,
    "Operations on keys are atomic and have one total order, which agrees with real time and with revisions.",
    "Strict serializability",
    "strict-serializable",
    "real-time-order",
    is_purpose=True,
)
FRESH: Final = _promise(
    2,
    "A read that is not declared serializable sees every operation that completed before it.",
    "Strict serializability",
    "stale-acknowledged",
)
SERIALIZABLE: Final = _promise(
    3,
    "A serializable read may be old, but shows one revision.",
    "Serializable reads",
    "serializable",
    is_purpose=True,
)
DURABLE: Final = _promise(
    4,
    "A completed operation is durable, and what a read returned is durable.",
    "Durability",
    "lost-acknowledged",
    "phantom-write",
    "duplicate-elements",
    check="survival",
)
LEASES: Final = Promise(
    id="ETCD-5",
    text="A lease lasts for its time to live at least: so do the locks that are made with it.",
    source='https://etcd.io/docs/v3.5/learning/api/, "Lease API", read on 2026-11-28',
    forbids=("early-lease",),
    check="leases",
)
_CUTS: Final = tuple(
    f"{name}-watermark{order}"
    for name in ("G0", "G1c", "G-single", "G-nonadjacent")
    for order in ("", "-process", "-realtime")
)
OF_WATCH: Final = (
    _promise(11, "Events come in the order of their revisions.", "Ordered", "order-inversion"),
    _promise(12, "An event never comes twice on one watch.", "Unique", "duplicate-event", "divergent-duplicate"),
    _promise(
        13,
        "No event inside of the window of history is dropped.",
        "Reliable",
        "missing-event",
        "lost-tail",
        is_purpose=True,
    ),
    _promise(14, "The events of one revision come together.", "Atomic", "torn-unit"),
    _promise(
        15,
        "A watch that is created behind the last revision received goes on without a hole.",
        "Resumable",
        "resume-hole",
    ),
    _promise(
        16,
        "A progress notification guarantees that all events up to its revision have been delivered.",
        "Bookmarkable",
        "late-event",
        "late-event-boundary",
        is_purpose=True,
    ),
    _promise(
        17,
        "A watch of revisions that were compacted is refused, with the compacted revision.",
        "Reliable",
        "silent-gap",
    ),
    _promise(18, "Events show what was written, and only that.", "Watch APIs", "phantom-event", "wrong-value"),
    _promise(
        19,
        "All watches show one history: the state at a revision is the same for all.",
        "Ordered",
        "split-view",
        "state-mismatch",
        "torn-watermark",
        "intermediate-watermark",
        "split-watermark",
        "fork-watermark",
        "order-watermark",
        *_CUTS,
    ),
)
ALL: Final = (STRICT, FRESH, SERIALIZABLE, DURABLE, LEASES, *OF_WATCH)
# A bare lock keeps nobody from writing late: lists may then lose what was appended.
_OF_SAFE_WRITES: Final = (STRICT.id, FRESH.id, DURABLE.id)
_OF_LINEARIZABLE: Final = (STRICT.id, FRESH.id)


def holds(promise: Promise, settings: Settings) -> bool:
    """True if the promise holds with those settings: serializable reads may show an old state."""
    is_linearizable = settings.options["reads"] == "linearizable"
    if promise is LEASES:
        return settings.options["locks"] != "off"
    if settings.options["locks"] == "bare" and promise.id in _OF_SAFE_WRITES:
        return False
    if promise.id == SERIALIZABLE.id:
        return not is_linearizable
    return is_linearizable or promise.id not in _OF_LINEARIZABLE
