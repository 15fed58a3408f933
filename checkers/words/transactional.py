"""The records of all anomalies of transactions, and of cycles through watermarks.

Names are Adya's and Elle's. A cycle is named by its edges: ww (one transaction's write follows the other's), wr (one
reads what the other wrote), rw (one does not see what the other writes next). The suffix -process or -realtime says
that the cycle is closed only with the order of a process's operations, or of real time: `timed` makes these records.

The weak models are broken by what their axioms forbid (`checkers/axioms`): a fractured read is a G-single as well.

In the literature the short names G-single and G-nonadjacent mean cycles whose rw may be about predicates. No checker
here derives an edge from a predicate: every rw is about an item, so each short name and its -item name imply each
other. Reports use the short name; G2-item keeps its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from checkers.words.anomalies import Anomaly, Cause, title_of

UPDATE: Final = "G-UA"
OWN: Final = "missed-own-write"
_CLOSED: Final = {
    "": "",
    "-process": " Closed by the order of operations in one process.",
    "-realtime": " Closed by real time: one operation ended before the other began.",
}
_TITLES: Final = {"": "", "-process": " within a session", "-realtime": " in real time"}
_STALE: Final = {  # With one rw and an order of time: the version that was read had been replaced before.
    "G-single-process": "Stale read within a session",
    "G-single-realtime": "Stale read",
}
_MISSED: Final = "A transaction misses a write that came before it: a cycle with exactly one rw."
_MODELS: Final = {"": "", "-process": "strong-session-", "-realtime": "strong-"}  # The prefixes of their names.
_NEXT: Final = {"": "-process", "-process": "-realtime"}
_UNTIMED: Final = frozenset({UPDATE, "GSIb"})  # What no order of time closes.
ORDERS: Final = tuple(_CLOSED)


def timed(bases: Mapping[str, Anomaly]) -> Iterator[tuple[str, Anomaly]]:
    """Each anomaly without an order of time, then each with that of processes, then each with real time.

    An order implies the next one. With an order an anomaly implies the others with the same order, and is forbidden by
    the models with that order, where they exist.
    """
    for order in ORDERS:
        for name, base in bases.items():
            others = [other for other in base.implies.split() if not order or other not in _UNTIMED]
            yield (
                name + order,
                replace(
                    base,
                    meaning=(_MISSED if name + order in _STALE else base.meaning) + _CLOSED[order],
                    title=_STALE.get(name + order, title_of(name, base) + _TITLES[order]),
                    implies=" ".join([other + order for other in others] + [name + each for each in _after(order)]),
                    forbidden_by=" ".join(_MODELS[order] + model for model in base.forbidden_by.split()),
                ),
            )


def _after(order: str) -> Iterable[str]:
    return [_NEXT[order]] if order in _NEXT else []


def _caused(cause: Cause, declared: Mapping[str, Anomaly]) -> dict[str, Anomaly]:
    return {name: replace(record, cause=cause) for name, record in declared.items()}


CYCLES: Final = _caused(
    Cause.TRANSACTION,
    {
        "G0": Anomaly(
            meaning="Writes of transactions overtake each other: a cycle of ww.",
            title="Dirty write",
            implies="G1c",
            forbidden_by="read-uncommitted",
        ),
        "G1c": Anomaly(
            meaning="Each transaction depends on the next, and the last on the first: a cycle of ww and wr.",
            title="Circular information flow",
            implies="G1",
        ),
        "G-single": Anomaly(
            meaning="A transaction sees one effect of another and misses a second: a cycle with exactly one rw.",
            title="Read skew",
            implies="G-nonadjacent GSIb G-single-item",
            forbidden_by="consistent-view parallel-snapshot-isolation",
        ),
        "G-nonadjacent": Anomaly(
            meaning="Two or more transactions miss writes, never one right after the other: impossible in snapshots.",
            title="Long read skew",
            implies="G2 G-nonadjacent-item",
            forbidden_by="snapshot-isolation",
        ),
        "G2-item": Anomaly(
            meaning="Transactions miss each other's writes: a cycle with two adjacent rw, such as write skew.",
            title="Write skew",
            implies="G2",
            forbidden_by="repeatable-read",
        ),
    },
)
AXIOMS: Final = _caused(
    Cause.TRANSACTION,
    {
        "non-monotonic-view": Anomaly(
            meaning="A transaction sees one write of another, and later misses a second.",
            title="Non-monotonic view",
            implies="fractured-read",
            forbidden_by="monotonic-atomic-view",
        ),
        "fractured-read": Anomaly(
            meaning="A transaction sees one write of another, and misses a second.",
            implies="G-UA causal-violation",
            forbidden_by="read-atomic",
        ),
        "causal-violation": Anomaly(
            meaning="A transaction misses a write that came before what it sees.",
            implies="prefix-violation G-single",
            forbidden_by="causal-cerone",
        ),
        "prefix-violation": Anomaly(
            meaning="No order of commits lets each transaction see a prefix of it.",
            implies="G-nonadjacent",
            forbidden_by="prefix",
        ),
    },
)
# Classes of the literature that no check reports by these names; models are defined by them.
_CLASSES: Final = {
    "G1": Anomaly(meaning="", forbidden_by="read-committed"),
    "G2": Anomaly(meaning="", forbidden_by="serializable"),
    "G-single-item": Anomaly(meaning="", implies="G-single G-nonadjacent-item"),
    "G-nonadjacent-item": Anomaly(meaning="", implies="G-nonadjacent G2-item"),
}
LITERATURE: Final[Mapping[str, Anomaly]] = MappingProxyType(
    {
        **dict(timed(_CLASSES)),
        "GSIa": Anomaly(meaning="", implies="GSI"),
        "GSIb": Anomaly(meaning="", implies="GSI"),
        "G-cursor": Anomaly(meaning="", forbidden_by="cursor-stability"),
        "G-monotonic": Anomaly(meaning="", forbidden_by="monotonic-view"),
        "G-MSR": Anomaly(meaning="", forbidden_by="monotonic-snapshot-read"),
        "G-SI": Anomaly(meaning="", forbidden_by="snapshot-isolation"),
        "G-SIb": Anomaly(meaning="", forbidden_by="forward-consistent-view"),
        "G-update": Anomaly(meaning="", forbidden_by="update-serializable"),
        "predicate-read-miss": Anomaly(meaning="", forbidden_by="serializable"),
    }
)
WRITE_SKEW: Final = Anomaly(
    meaning="Two transactions read the same keys, write one each, and neither sees the other's write.", implies="G2"
)
_SIMPLE: Final = _caused(
    Cause.TRANSACTION,
    {
        "internal": Anomaly(
            meaning="A transaction contradicts its own earlier reads or writes.",
            title="Contradiction within a transaction",
            forbidden_by="repeatable-read read-atomic",
        ),
        OWN: Anomaly(
            meaning="A transaction reads a key that it wrote, and does not see its own last write.",
            title="Own write missed",
            implies="internal",
            forbidden_by="read-uncommitted",
        ),
        "future-read": Anomaly(
            meaning="A transaction reads what it writes only later.",
            implies="G1c",
            forbidden_by="read-uncommitted",
        ),
        "duplicate-elements": Anomaly(
            meaning="A read shows the same element twice.",
            forbidden_by="read-uncommitted",
        ),
        "incompatible-order": Anomaly(
            meaning="Reads of a key disagree on the order of its elements, or with who appended them.",
            title="Contradictory orders",
            implies="G1a",
        ),
        "cyclic-versions": Anomaly(
            meaning="The versions of a register come before each other in a cycle.",
            forbidden_by="read-uncommitted",
        ),
        "garbage-read": Anomaly(
            meaning="A transaction reads a value that no operation wrote; it may have been there at first."
        ),
        "unwritten-read": Anomaly(
            meaning="A transaction reads a value that no operation wrote, and that was not declared as initial.",
            implies="garbage-read",
            forbidden_by="read-uncommitted",
        ),
        "G1a": Anomaly(
            meaning="A transaction reads what a failed transaction wrote.",
            title="Aborted read",
            implies="G1",
            forbidden_by="read-atomic",
        ),
        "G1b": Anomaly(
            meaning="A transaction reads an intermediate state of another.",
            title="Intermediate read",
            implies="G1",
        ),
        "dirty-update": Anomaly(
            meaning="A committed write builds on a write of a failed transaction.",
            implies="G1a",
        ),
        "lost-update": Anomaly(
            meaning="Two transactions read the same version of a key and both overwrite it.",
            implies="write-skew G2-item",
            forbidden_by="update-atomic cursor-stability",
        ),
        UPDATE: Anomaly(
            meaning="A transaction writes a key after another one, and misses one of its writes.",
            title="Fractured update",
            implies="G-single",
            forbidden_by="update-atomic",
        ),
    },
)
_AXIOMS: Final = dict(timed(AXIOMS))
_CYCLES: Final = dict(timed(CYCLES))
TIMED_AXIOMS: Final = frozenset(_AXIOMS)  # Their names without an order of time, and with each.
TIMED_CYCLES: Final = frozenset(_CYCLES)
REALTIME: Final = frozenset(name for name in TIMED_AXIOMS | TIMED_CYCLES if name.endswith("-realtime"))
TRANSACTIONAL: Final[Mapping[str, Anomaly]] = MappingProxyType({**_SIMPLE, **_AXIOMS, **_CYCLES})

_CUTS: Final = {
    "G0": Anomaly(
        meaning="A watermark contains a write and lacks one that it overwrote.",
        implies="G1c-watermark",
    ),
    "G1c": Anomaly(
        meaning="A watermark contains a transaction and lacks one that this one had read, or that came before what it "
        "read.",
    ),
    "G-single": Anomaly(
        meaning="The content of a watermark is not a snapshot: a cycle through watermarks with one rw of a "
        "transaction.",
        implies="G-nonadjacent-watermark",
    ),
    "G-nonadjacent": Anomaly(
        meaning="The contents of watermarks are not snapshots: a cycle with several rw, none right after another.",
        implies="G2-item-watermark",
    ),
    "G2-item": Anomaly(
        meaning="A watermark contradicts the order in which transactions missed each other's writes.",
    ),
}
WATERMARK: Final[Mapping[str, Anomaly]] = MappingProxyType(
    _caused(
        Cause.CUT,
        {
            "order-watermark": Anomaly(meaning="Watermarks that are one by position come in two orders."),
            "intermediate-watermark": Anomaly(
                meaning="A watermark contains a transaction's write of a key, and lacks its last one."
            ),
            "torn-watermark": Anomaly(meaning="A watermark contains one write of a transaction, and lacks another."),
            "split-watermark": Anomaly(
                meaning="Watermarks of one position, of two subscribers or sessions, differ in a transaction."
            ),
            "fork-watermark": Anomaly(meaning="Subscribers agree on no common order of transactions."),
            **dict(
                timed(
                    {
                        f"{name}-watermark": replace(cut, title=f"{CYCLES[name].title} through watermarks")
                        for name, cut in _CUTS.items()
                    }
                )
            ),
        },
    )
)
