"""The guarantees of the tutorial, as data."""

from harness.core.promises import Promise, StreamContract

SOURCE = "clusters/tutorial/README.md"

STREAM = StreamContract(
    closed="<=",
    cut="delivery",
    position="offset",
    wm_scope="session",
    delivery="at-least-once",
    replay="resume",
    resume="after",
    identity="position+key+ordinal",
)

PROMISES = (
    Promise(
        id="TUT-1",
        text="Transactions are strictly serializable: each takes effect at one moment between its call and its answer.",
        source=SOURCE,
        forbids=("strict-serializable",),
    ),
    Promise(
        id="TUT-2",
        text="After a watermark no row at or below it arrives for the first time.",
        source=SOURCE,
        forbids=("late-event", "late-event-boundary"),
    ),
    Promise(
        id="TUT-3",
        text="A committed append at or below a watermark has been delivered.",
        source=SOURCE,
        forbids=("missing-event",),
    ),
    Promise(
        id="TUT-4",
        text="At a watermark every transaction has been delivered whole or not at all.",
        source=SOURCE,
        forbids=("torn-unit",),
    ),
    Promise(
        id="TUT-5",
        text="Within a session watermarks do not go back.",
        source=SOURCE,
        forbids=("watermark-regress",),
    ),
    Promise(
        id="TUT-6",
        text="Every watermark is a consistent cut of the transactions, and all subscribers see the same one.",
        source=SOURCE,
        # The log is one order of all commits, and the stream follows it: no dependency can lead back over a
        # watermark, of whatever kind it is. Two rw in a row would need a read at another place in the log than
        # its transaction, about which nothing is promised here; the same holds for real-time order.
        forbids=(
            "order-watermark",
            "intermediate-watermark",
            "torn-watermark",
            "split-watermark",
            "fork-watermark",
            "G0-watermark",
            "G1c-watermark",
            "G-single-watermark",
            "G-nonadjacent-watermark",
        ),
        check="watermark-graph",
    ),
)
