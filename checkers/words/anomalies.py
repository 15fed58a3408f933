"""Names of anomalies, each with a one-line meaning. Reports, JSON and code spell them the same.

Here are the names that several checks use. A name of one check or stream rule is defined in its file, and
`checkers.catalogue` collects all of them.

Transactional names are Adya's and Elle's. A cycle is named by its edges: ww (one transaction's write follows the
other's), wr (one reads what the other wrote), rw (one does not see what the other writes next). The suffix -process or
-realtime says that the cycle is closed only with the order of a process's operations, or of real time.

The weak models are broken by what their axioms forbid (`checkers/axioms`): a fractured read is a G-single as well.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

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
    "prefix-violation": "No order of commits lets each transaction see a prefix of it.",
}
UPDATE: Final = "G-UA"
OWN: Final = "missed-own-write"
ORDERS: Final = {
    "": "",
    "-process": " Closed by the order of operations in one process.",
    "-realtime": " Closed by real time: one operation ended before the other began.",
}


class Anomaly(NamedTuple):
    """All that is declared of an anomaly. `title` is its name for people, if that is not the name itself.

    `implies` are the anomalies that are present whenever it is, `forbidden_by` the models that prohibit it themselves,
    with no weaker model that does: names, with spaces between them.
    """

    meaning: str
    title: str = ""
    implies: str = ""
    forbidden_by: str = ""


RECORDS: Final[Mapping[str, Anomaly]] = MappingProxyType(
    {
        "internal": Anomaly(
            "A transaction contradicts its own earlier reads or writes.",
            title="Contradiction within a transaction",
            forbidden_by="repeatable-read read-atomic",
        ),
        OWN: Anomaly(
            "A transaction reads a key that it wrote, and does not see its own last write.",
            title="Own write missed",
            implies="internal",
            forbidden_by="read-uncommitted",
        ),
        "future-read": Anomaly(
            "A transaction reads what it writes only later.",
            implies="G1c",
            forbidden_by="read-uncommitted",
        ),
        "duplicate-elements": Anomaly(
            "A read shows the same element twice.",
            forbidden_by="read-uncommitted",
        ),
        "incompatible-order": Anomaly(
            "Reads of a key disagree on the order of its elements, or with who appended them.",
            title="Contradictory orders",
            implies="G1a",
        ),
        "cyclic-versions": Anomaly(
            "The versions of a register come before each other in a cycle.",
            forbidden_by="read-uncommitted",
        ),
        "garbage-read": Anomaly(
            "A transaction reads a value that no operation wrote; it may have been there at first."
        ),
        "unwritten-read": Anomaly(
            "A transaction reads a value that no operation wrote, and that was not declared as initial.",
            implies="garbage-read",
            forbidden_by="read-uncommitted",
        ),
        "G1a": Anomaly(
            "A transaction reads what a failed transaction wrote.",
            title="Aborted read",
            implies="G1",
            forbidden_by="read-atomic",
        ),
        "G1b": Anomaly(
            "A transaction reads an intermediate state of another.",
            title="Intermediate read",
            implies="G1",
        ),
        "dirty-update": Anomaly(
            "A committed write builds on a write of a failed transaction.",
            implies="G1a",
        ),
        "lost-update": Anomaly(
            "Two transactions read the same version of a key and both overwrite it.",
            implies="write-skew G2-item",
            forbidden_by="update-atomic cursor-stability",
        ),
        UPDATE: Anomaly(
            "A transaction writes a key after another one, and misses one of its writes.",
            title="Fractured update",
            implies="G-single",
            forbidden_by="update-atomic",
        ),
    }
)
TRANSACTIONAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{name: record.meaning for name, record in RECORDS.items()},
        **{name + order: meaning + closed for order, closed in ORDERS.items() for name, meaning in AXIOMS.items()},
        **{name + order: meaning + closed for order, closed in ORDERS.items() for name, meaning in CYCLES.items()},
    }
)

SHARED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "lost-acknowledged": "An acknowledged write is gone.",
        "resurrected": "An undone write has come back.",
        "phantom-write": "The state has an element of an operation that certainly failed, or of nobody.",
        "lost-element": "An acknowledged element of a set or a queue is gone.",
        "unexpected-element": "A set or a queue shows what nobody tried to put in.",
        "disputed-cut": "Watermarks and positions, two opinions on one stream, differ on an event that both must see.",
    }
)

CUTS: Final = {
    "G0": "A watermark contains a write and lacks one that it overwrote",
    "G1c": "A watermark contains a transaction and lacks one that this one had read, or that came before what it read",
    "G-single": "The content of a watermark is not a snapshot: a cycle through watermarks with one rw of a transaction",
    "G-nonadjacent": "The contents of watermarks are not snapshots: a cycle with several rw, none right after another",
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
