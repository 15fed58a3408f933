"""Names of anomalies, each with a one-line meaning. Reports, JSON and code spell them the same.

The anomalies of stream rules are defined with the rules; `checkers.catalogue` has all names.

Transactional names are Adya's and Elle's. A cycle is named by its edges: ww (one transaction's write follows the
other's), wr (one reads what the other wrote), rw (one does not see what the other writes next). The suffix -process or
-realtime says that the cycle is closed only with the order of a process's operations, or of real time.

The weak models are broken by what their axioms forbid (`checkers/axioms`): a fractured read is a G-single as well.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CYCLES: Final = {
    "G0": "Writes of transactions overtake each other: a cycle of ww.",
    "G1c": "Each transaction depends on the next, and the last on the first: a cycle of ww and wr.",
    "G-single": "A transaction sees one effect of another and misses a second: a cycle with exactly one rw.",
    "G-nonadjacent": "Two or more transactions miss writes, never one right after the other: impossible in snapshots.",
    "G2-item": "Transactions miss each other's writes: a cycle with two adjacent rw, such as write skew.",
}
AXIOMS: Final = {
    "non-monotonic-view": "A transaction sees one write of another, and later misses a second.",
    "fractured-read": "A transaction sees one write of another, and misses a second.",
    "causal-violation": "A transaction misses a write that came before what it sees.",
    "prefix-violation": "No order of commits is such that each transaction sees the first so many of them.",
}
ORDERS: Final = {
    "": "",
    "-process": " Closed by the order of operations in one process.",
    "-realtime": " Closed by real time: one operation ended before the other began.",
}
TRANSACTIONAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "internal": "A transaction contradicts its own earlier reads or writes.",
        "future-read": "A transaction reads what it writes only later.",
        "duplicate-elements": "A read shows the same element twice.",
        "incompatible-order": "Reads of a key disagree on the order of its elements, or with who appended them.",
        "cyclic-versions": "The versions of a register come before each other in a cycle.",
        "garbage-read": "A transaction reads what nobody wrote.",
        "G1a": "A transaction reads what a failed transaction wrote.",
        "G1b": "A transaction reads an intermediate state of another.",
        "dirty-update": "A committed write builds on a write of a failed transaction.",
        "lost-update": "Two transactions read the same version of a key and both overwrite it.",
        **{name + order: meaning + closed for order, closed in ORDERS.items() for name, meaning in AXIOMS.items()},
        **{name + order: meaning + closed for order, closed in ORDERS.items() for name, meaning in CYCLES.items()},
    }
)

SYSTEM: Final[Mapping[str, str]] = MappingProxyType(
    {
        "false-gap": "A gap marker, though nothing was lost.",
        "cut-not-closed": "What a watermark contains depends on something that it does not contain.",
        "stall": "Nothing went on for longer than the system's declared bound.",
        "stale-watermark": "The watermark stayed below an answered write for longer than the declared bound.",
        "lag": "The stream was further behind than is promised.",
        "disputed-cut": "Watermarks and positions, two opinions on one stream, differ on what both had to see.",
        "lost-acknowledged": "What was acknowledged is gone.",
        "resurrected": "What was certainly undone has come back.",
        "double-status": "One transaction is both committed and aborted.",
        "diverged-replicas": "Two replicas of one object differ at rest.",
        "split-brain": "Two nodes act as the only one at once.",
        "epoch-shape": "An epoch does not consist of what its declaration says.",
        "double-epoch": "One transaction appears in two epochs.",
        "epoch-fork": "Two owners act in one epoch.",
        "timestamp-order": "Dependent transactions have timestamps in the wrong order.",
        "double-timestamp": "A transaction has two commit timestamps, or another one's, or one not above its start.",
        "watermark-above-start": "A transaction started at or below a watermark that had been announced before.",
        "snapshot-mismatch": "A transaction read something else than the state at its timestamp.",
        "stale-mismatch": "A read of the past shows something else than the state at its timestamp.",
        "backup-mismatch": "A restore from a backup shows something else than the state at its timestamp.",
        "flashback-mismatch": "A flashback shows something else than the state at its timestamp.",
        "stale-acknowledged": "A read misses a write that was acknowledged before it began.",
        "spurious-abort": "An operation was refused without any of the reasons that are declared.",
        "memory-growth": "Buffers grew without the bound that is declared.",
        "fractured-restore": "A restart of the whole cluster brought back a part of a transaction.",
        "loss-beyond-bound": "A restart of the whole cluster lost more than the declared bound allows.",
        "fractured-transaction": "At rest a part of a transaction is there, and another part is not.",
        "phantom-write": "The state has an element of an operation that certainly failed, or of nobody.",
        "spurious-disconnect": "A subscriber was disconnected for no reason that is declared.",
        "user-blocks-acknowledgements": "A subscriber was disconnected as lagging because its user was slow.",
    }
)

INVARIANT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "wrong-total": "A read of all accounts of a bank does not come to what they hold together.",
        "unexpected-key": "A read of a bank shows an account that does not exist.",
        "nil-balance": "A read of a bank shows an account without a balance.",
        "negative-balance": "An account of a bank is below zero.",
        "counter-out-of-bounds": "A counter shows less than was certainly added, or more than could have been.",
        "lost-element": "What was certainly put into a set or a queue is gone.",
        "stale-element": "A read of a set misses an element that was known when it began; a later one shows it.",
        "unexpected-element": "A set or a queue shows what nobody tried to put in.",
        "failed-element": "A set shows an element whose add had certainly failed.",
        "dequeued-twice": "A value came out of a queue more often than it was put in.",
        "duplicate-id": "Two operations got the same id, which should be unique.",
        "long-fork": "Of two reads of the same keys each sees more of one key than the other.",
        "write-skew": "Two transactions read the same keys, write one each, and neither sees the other's write.",
        "non-monotonic-read": "A process no longer sees what it saw before.",
        "causal-reverse": "A read shows a write, and misses one that had ended before that began.",
        "non-linearizable": "No order of a register's operations, each between its call and its answer, explains all.",
        "inconsistent-offsets": "One offset of a log holds two values.",
        "duplicate-write": "One message is at two offsets of a log.",
        "lost-write": "A message that was certainly sent was never polled, though later ones were.",
        "precommitted-read": "An operation polls a message that it sent itself and has not yet committed.",
        "poll-skip": "A consumer's next poll leaves out a message that is in the log.",
        "nonmonotonic-poll": "A consumer's next poll begins at or before the last message that it polled.",
        "internal-poll-skip": "Inside one operation, polls leave out a message that is in the log.",
        "internal-nonmonotonic-poll": "Inside one operation, a polled message is at or before the previous one.",
        "nonmonotonic-send": "A process's next message is before its last one in the log.",
        "internal-nonmonotonic-send": "Inside one operation, a message is before the one that was sent first.",
        "internal-send-skip": "Another message is between two messages of one operation.",
        "sequence-hole": "A client's later write is seen, and an earlier one is not.",
    }
)

CUTS: Final = {
    "G0": "A watermark contains a write and lacks one that it overwrote",
    "G1c": "A watermark contains a transaction and lacks one that this one had read, or that came before what it read",
    "G-single": "No snapshot is what a watermark contains: a cycle through watermarks with one rw of a transaction",
    "G-nonadjacent": "No snapshots are what watermarks contain: a cycle with several rw, none right after another",
    "G2-item": "A watermark contradicts the order in which transactions missed each other's writes",
}
WATERMARK: Final[Mapping[str, str]] = MappingProxyType(
    {
        "order-watermark": "Watermarks that are one by position come in two orders.",
        "intermediate-watermark": "A watermark contains a transaction's write of a key, and lacks its last one.",
        "torn-watermark": "A watermark contains one write of a transaction, and lacks another.",
        "split-watermark": "Two subscribers' watermarks of one position differ in a transaction.",
        "fork-watermark": "Subscribers agree on no common order of transactions.",
        **{
            f"{name}-watermark{order}": f"{text}.{closed}"
            for order, closed in ORDERS.items()
            for name, text in CUTS.items()
        },
    }
)
