"""Consistency models in one sentence each, for reports: as the sources of `models.py` define them."""

from types import MappingProxyType
from typing import Final

from checkers.words import models

_SENTENCES: Final = MappingProxyType(
    {
        "strict-serializable": "Transactions take effect one at a time, each between its call and its answer.",
        "serializable": "Transactions have the effect of some serial order.",
        "snapshot-isolation": "A transaction reads one snapshot; of two at a time that write one key, one fails.",
        "parallel-snapshot-isolation": "A transaction reads one snapshot of its site, and no update is lost.",
        "update-serializable": "Transactions that write have the effect of some serial order; any other fits in one.",
        "consistent-view": "A transaction misses nothing of those on which it depends.",
        "cursor-stability": "No transaction sees what was aborted, or what its writer overwrote; no update is lost.",
        "update-atomic": "A transaction sees each one that it reads from, or that wrote a key before it, whole.",
        "repeatable-read": "Transactions have the effect of some serial order, apart from predicate reads.",
        "read-atomic": "A transaction that sees one write of another misses none of its writes.",
        "monotonic-atomic-view": "Once a transaction has seen one write of another, it misses none of its writes.",
        "read-committed": "No transaction sees what was aborted, or what its writer overwrote.",
        "read-uncommitted": "Writes of two transactions never interleave.",
        "prefix": "Each transaction sees a prefix of one order of commits, and nothing else.",
        "causal-cerone": "A transaction that sees a write sees all that led to it.",
    }
)
_ORDERS: Final = MappingProxyType(
    {
        "strong-session-": " All of it agrees with the order of each client.",
        "strong-": " All of it agrees with real time.",
    }
)


def meaning(model: str) -> str:
    """The promise of that model, in one or two sentences; for a rare model only its name."""
    name = models.canonical(model)
    for prefix, order in (("", ""), *_ORDERS.items()):
        base = name.removeprefix(prefix)
        sentence = _SENTENCES.get("causal-cerone" if base == "causal" and prefix else base)
        if name.startswith(prefix) and sentence is not None:
            return sentence + order
    return f"The consistency model {name} holds."
