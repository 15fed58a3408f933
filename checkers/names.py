"""The one list of anomaly names, each with its meaning in a line. Reports, JSON and code write them so.

Transactional names are Adya's and Elle's. A cycle is named by its edges: ww (one transaction's write follows the
other's), wr (one reads what the other wrote), rw (one does not see what the other writes next). The suffix -process or
-realtime says that the cycle is closed only with the order of a process's operations, or of real time.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_CYCLES: Final = {
    "G0": "Writes of transactions overtake each other: a cycle of ww.",
    "G1c": "Information flows in a circle: a cycle of ww and wr.",
    "G-single": "A transaction sees one effect of another and misses a second: a cycle with exactly one rw.",
    "G-nonadjacent": "Two or more transactions miss writes, never one right after the other: impossible in snapshots.",
    "G2-item": "Transactions miss each other's writes: a cycle with two adjacent rw, such as write skew.",
}
_ORDERS: Final = {
    "": "",
    "-process": " Closed by the order of operations in one process.",
    "-realtime": " Closed by real time: one operation ended before the other began.",
}
TRANSACTIONAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "internal": "A transaction contradicts its own earlier reads or writes.",
        "future-read": "A transaction reads what it appends only later.",
        "duplicate-elements": "A read shows the same element twice.",
        "incompatible-order": "Two reads of one key disagree on the order of its elements.",
        "G1a": "A transaction reads what a failed transaction wrote.",
        "G1b": "A transaction reads an intermediate state of another.",
        "dirty-update": "A committed write builds on a write of a failed transaction.",
        "lost-update": "Two transactions read the same version of a key and both overwrite it.",
        **{name + order: meaning + closed for order, closed in _ORDERS.items() for name, meaning in _CYCLES.items()},
    }
)

STREAM: Final[Mapping[str, str]] = MappingProxyType({})

NAMES: Final[Mapping[str, str]] = MappingProxyType({**TRANSACTIONAL, **STREAM})
