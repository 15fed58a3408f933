"""The promises of the design, and the contract of its stream. The numbers come from the specification (part C2)."""

from typing import Final

from harness.core.promises import Promise, StreamContract

SEED: Final = "Materialize, Transactional Consistency, 2022-05-16 (clusters/materialize/README.md)"

STREAM = StreamContract(
    closed="<",
    cut="position",
    position="commit-timestamp",
    order_key="global",
    resume="at",
    delivery="exactly-once",
    replay="resume",
    atomic_unit="none",
    is_position_unique=False,
    follows_clock=True,
    identity="position+key+value",
    wm_scope="session",
)


def _promise(number: int, text: str, *forbids: str, is_purpose: bool = False) -> Promise:
    return Promise(id=f"MZ-G{number}", text=text, source=SEED, forbids=forbids, is_purpose=is_purpose)


STRICT: Final = frozenset(f"MZ-G{number}" for number in (1, 2, 7, 9, 13, 15, 18))  # Reads at any timestamp break these.
FREE: Final = "MZ-G1S"

PROMISES: tuple[Promise, ...] = (
    _promise(1, "Reads and writes of one timeline are strictly serializable.", "strict-serializable", is_purpose=True),
    Promise(
        id=FREE,
        text="At serializable isolation reads and writes are serializable, in the order of their timestamps.",
        source=SEED,
        forbids=("serializable",),
    ),
    _promise(
        2,
        "Timestamps never fall in real time, and a write is above all that ended before it began.",
        "timestamp-regress",
        "write-not-above",
        "timestamp-order",
        "stale-acknowledged",
        is_purpose=True,
    ),
    _promise(
        3,
        "A read shows exactly the writes at or below its timestamp, whoever serves it, and whenever.",
        "snapshot-mismatch",
        "stale-mismatch",
        is_purpose=True,
    ),
    _promise(
        4,
        "A view, at the timestamp of an answer, is what its query gives of its inputs at that timestamp.",
        "wrong-view-row",
    ),
    _promise(5, "A read below the since of a collection is refused; at or above it, it is right.", "stale-mismatch"),
    _promise(6, "The upper of a shard rises only by appends, each from the upper before.", "upper-gap"),
    _promise(
        7,
        "A write that was acknowledged is there after every crash, and so is a table.",
        "stale-acknowledged",
        "lost-table",
    ),
    _promise(8, "No timestamp at or above the durable bound is handed out.", "beyond-bound"),
    _promise(9, "Every timestamp of an epoch is above all timestamps of earlier epochs.", "epoch-overlap"),
    _promise(10, "Once a leader serves clients, no leader before it writes to a table.", "late-append"),
    _promise(11, "All writes of one group commit become visible together.", "snapshot-mismatch"),
    _promise(12, "Timestamps stay close to the clock, but for a while after a take-over.", "ahead-of-clock"),
    _promise(13, "The writes of a session have rising timestamps.", "write-not-above"),
    _promise(14, "Nothing that a superseded leader does to the catalog has an effect.", "superseded-record"),
    _promise(15, "A superseded leader answers no read that was invoked after its end.", "superseded-answer"),
    _promise(16, "Each epoch has one leader.", "shared-epoch"),
    _promise(
        17,
        "Timelines are independent: no query reads two, and none waits for the other.",
        "mixed-timelines",
        "timeline-order",
    ),
    _promise(
        18,
        "A record whose acknowledgement was seen upstream is in every strict read that is invoked later.",
        "unseen-acknowledged",
    ),
    _promise(
        19,
        "Each upstream record is there once, at one timestamp, in its order, whatever restarts.",
        "source-gap",
        "source-rewritten",
    ),
    _promise(20, "A read-then-write is atomic: no row is taken away twice.", "negative-row", "lost-update"),
    _promise(21, "A transaction that would write two tables is refused.", "two-tables"),
    _promise(
        22,
        "After a progress message nothing below it comes, and everything below it has come.",
        "late-event",
        "late-event-boundary",
        "missing-event",
        "phantom-event",
        "wrong-value",
        "duplicate-event",
        "resume-hole",
        is_purpose=True,
    ),
    _promise(
        23,
        "Without faults leaders stay, and a write waits for its own table alone.",
        "needless-wait",
        "restless-leaders",
    ),
)
