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
    consumers="group",
    wm_idle="rests",
    events_at_position="one",
)

PROMISES: tuple[Promise, ...] = (
    Promise(
        id="PRV-G1",
        text="An offset of a segment shows the same event whenever it is read.",
        source=SOURCE,
        forbids=("rewritten-offset", "unlike-stream"),
    ),
    Promise(
        id="PRV-G2",
        text="Plain events of one writer and key are in the order in which it wrote them, over scales and rolls.",
        source=SOURCE,
        forbids=("writer-order",),
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
    Promise(
        id="PRV-G6",
        text="The events of a transaction stand together in each segment.",
        source=SOURCE,
        forbids=("split-block",),
        is_purpose=False,
    ),
    Promise(
        id="PRV-G8",
        text="A transaction comes before those that begin after its commit was accepted, but those of older epochs.",
        source=SOURCE,
        forbids=("commit-order",),
        is_purpose=False,
    ),
    Promise(
        id="PRV-RT",
        text="A plain event comes before those of its key that are requested after it was acknowledged.",
        source="clusters/pravega/README.md: old segments are sealed before a new epoch is handed out",
        forbids=("append-order",),
        is_purpose=False,
    ),
    Promise(
        id="PRV-G9",
        text="Readers come to a segment after they have read its predecessors: per key, in the order of the stream.",
        source=SOURCE,
        forbids=("group-order",),
        is_purpose=False,
    ),
    Promise(
        id="PRV-G10",
        text="The segments of every epoch have each key once.",
        source=SOURCE,
        forbids=("key-space-cut",),
        is_purpose=False,
    ),
    Promise(
        id="PRV-G11",
        text="Events are in segments that have their keys, and transactions in epochs with the reference of their own.",
        source=SOURCE,
        forbids=("misplaced-event",),
    ),
    Promise(
        id="PRV-G12",
        text="An epoch that rolls a transaction, or follows it, is a copy of one that a scale made.",
        source=SOURCE,
        forbids=("wrong-reference",),
        is_purpose=False,
    ),
    Promise(
        id="PRV-G13",
        text="A transaction whose writer renews its lease can be committed, however often the stream has scaled.",
        source=SOURCE,
        forbids=("spurious-abort",),
        is_purpose=False,
    ),
    Promise(
        id="PRV-G14",
        text="A commit that another controller goes on with is the same one: no second pair of epochs.",
        source=SOURCE,
        forbids=("empty-roll",),
        is_purpose=False,
    ),
    Promise(
        id="PRV-G18",
        text="A segment that is not active any more is sealed, and readers see its end there and nowhere else.",
        source=SOURCE,
        forbids=("open-past", "wrong-end"),
        is_purpose=False,
    ),
    Promise(
        id="PRV-G20",
        text="The readers of a group deliver every event, and again only what a reader had that died or was removed.",
        source=SOURCE,
        forbids=("group-lost", "group-repeat"),
    ),
    Promise(
        id="PRV-G23",
        text="A transaction is created against the reference of the epoch that is active.",
        source=SOURCE,
        forbids=("foreign-reference",),
        is_purpose=False,
    ),
)
