"""The guarantees of resolved timestamps with large transactions, as data. The numbers are those of the specification.

Those that no check of the house decides yet are listed in README.md, and are not here.
"""

from typing import Final

from harness.core.promises import Promise, StreamContract

SEED = "Large Transactions Don't Block Watermark, 2024-01-22 (clusters/ticdc/README.md)"

STREAM = StreamContract(
    closed="<=",
    cut="position",
    position="commit-timestamp",
    order_key="global",
    delivery="exactly-once",
    replay="resume",
    resume="after",
    atomic_unit="transaction",
    unit_rows="final",
    follows_clock=True,
    identity="position+key",
    wm_scope="session",
    realtime="reads",
    acknowledged="held",
)


def _promise(number: int, text: str, *forbids: str, check: str | None = None, is_purpose: bool = False) -> Promise:
    return Promise(id=f"TIK-G{number}", text=text, source=SEED, forbids=forbids, check=check, is_purpose=is_purpose)


# A snapshot is fresh, and the stream follows the order of commits: only write skew may cross a watermark.
_CUTS: Final = tuple(
    f"{name}-watermark{order}"
    for name in ("G0", "G1c", "G-single", "G-nonadjacent")
    for order in ("", "-process", "-realtime")
)

PROMISES = (
    _promise(
        1,
        "Transactions are snapshot isolated, in the order of real time, and read the state at their start timestamp.",
        "strong-snapshot-isolation",
        "snapshot-mismatch",
        is_purpose=True,
    ),
    _promise(
        2,
        "A transaction that begins after another has ended sees it, and commits at a higher timestamp.",
        "real-time-order",
        "timestamp-order",
        "stale-acknowledged",
    ),
    _promise(
        3,
        "A transaction commits above its start, at or above each bound that others hold, at a unique timestamp.",
        "double-timestamp",
        "commit-below-bound",
    ),
    _promise(
        4,
        "After a resolved timestamp no row at or below it comes.",
        "late-event",
        "late-event-boundary",
        is_purpose=True,
    ),
    _promise(
        5,
        "At a resolved timestamp everything committed at or below it has been delivered, with its value.",
        "missing-event",
        "wrong-value",
        "state-mismatch",
        "resume-hole",
        is_purpose=True,
    ),
    _promise(
        6,
        "At a resolved timestamp every transaction was delivered whole, or not at all.",
        "torn-unit",
        is_purpose=True,
    ),
    _promise(7, "A delivered row is of a committed transaction.", "phantom-event"),
    _promise(
        8, "No resolved timestamp falls in its session: neither a region's, nor the published one.", "watermark-regress"
    ),
    _promise(9, "No resolved timestamp is above what the oracle has given by then.", "watermark-above-start"),
    _promise(
        10,
        "Resolved timestamps follow commits closely, also while large transactions run.",
        "stale-watermark",
    ),
    _promise(11, "A stale read shows the state at its timestamp, whichever replica serves it.", "stale-mismatch"),
    _promise(
        12,
        "All subscribers see the same state at one timestamp, and transactions' reads agree with it.",
        "split-view",
        "torn-watermark",
        "intermediate-watermark",
        "split-watermark",
        "fork-watermark",
        "order-watermark",
        *_CUTS,
    ),
    _promise(13, "A large transaction whose heartbeats are answered is never rolled back.", "spurious-abort"),
    _promise(
        14,
        "Outside faults and their grace resolved timestamps advance, even if a client died with locks held.",
        "stall",
        check="liveness",
    ),
    _promise(
        15,
        "A transaction ends in one of two states, everywhere: nothing of one that failed is read or sent.",
        "G1a",
        "phantom-event",
        "phantom-write",
        "double-timestamp",
    ),
    _promise(
        16,
        "Rows go out in commit order, and no row comes twice in a session.",
        "order-inversion",
        "duplicate-event",
    ),
    _promise(
        17,
        "Rows below a capture's checkpoint survive its crash.",
        "lost-acknowledged",
        check="streams",
    ),
    _promise(18, "A restore from the log backup shows the state at its timestamp.", "backup-mismatch"),
    _promise(
        19,
        "A flashback leaves the state at its timestamp, and nothing that began before it commits after it.",
        "flashback-mismatch",
        "flashback-overtaken",
    ),
    _promise(
        20,
        "While nodes are upgraded one after the other, captures first, streams and stale reads keep what they promise.",
        "late-event",
        "missing-event",
        "torn-unit",
        "stale-mismatch",
    ),
    _promise(
        21,
        "To advance a watermark takes memory for each large transaction, not for each of its rows.",
        "tracked-rows",
    ),
    _promise(22, "A slow subscriber delays nobody else.", "lag"),
)
