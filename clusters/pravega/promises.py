"""What the design promises, and how its stream is to be read."""

from harness.core.promises import Promise, StreamContract

SOURCE = "PDP 24: Rolling Transaction, read on 2026-11-27 (clusters/pravega/README.md)"

STREAM = StreamContract(
    closed="<=",
    cut="position",
    position="offset",
    order_key="partition",
    resume="at",
    delivery="at-least-once",
    atomic_unit="none",
    is_position_global=False,
    identity="position+key+value",
    wm_scope="partition",
    wm_idle="rests",
    events_at_position="one",
)

PROMISES: tuple[Promise, ...] = (
    Promise(
        id="PRV-G1",
        text="An offset of a segment shows the same event whenever it is read.",
        source=SOURCE,
        forbids=("rewritten-offset",),
        is_purpose=False,
    ),
    Promise(
        id="PRV-G4",
        text="What was acknowledged, or marked for commit, is in the stream, once the commits before have been done.",
        source=SOURCE,
        forbids=("stale-acknowledged",),
    ),
    Promise(
        id="PRV-G7",
        text="Transactions and plain events are atomic, and have one order in all segments.",
        source=SOURCE,
        forbids=("serializable",),
    ),
    Promise(
        id="PRV-G5",
        text="Nobody reads an event of a transaction that is not committed, or of one that was aborted.",
        source=SOURCE,
        forbids=("phantom-event", "wrong-value"),
        is_purpose=False,
    ),
)
