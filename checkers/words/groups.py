"""Findings grouped by what they have in common: the root cause first, its consequences after it.

A bug that loses one row breaks five promises. Findings share a group if they name an operation or an event in common.
In a group, and among groups, a cause precedes its consequences: a wrong owner or lost data explains a gap in a stream,
a missing row explains a torn unit and two views that differ, and any of them a cycle.
"""

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from checkers.words.anomalies import CYCLES, ORDERS, TRANSACTIONAL, WATERMARK

_CAUSES: Final = (
    # Ownership and epochs.
    *("split-brain", "epoch-fork", "zombie", "epoch-shape", "double-epoch", "double-status"),
    # Durability.
    *("lost-acknowledged", "resurrected", "loss-beyond-bound", "fractured-restore", "fractured-transaction"),
    *("phantom-write", "diverged-replicas", "stale-acknowledged"),
    # Streams, from wrong sessions to missing events.
    *("outside-filter", "resume-hole", "hand-over-hole", "moved-key", "event-after-end", "rewritten-offset"),
    *("phantom-event", "wrong-value", "divergent-duplicate", "false-gap"),
    *("watermark-from-future", "watermark-regress", "watermark-above-partitions"),
    *("late-event", "late-event-boundary", "missing-event", "lost-tail", "torn-unit", "duplicate-event"),
    *("order-inversion", "silent-gap", "split-view", "state-mismatch", "real-time-order", "timestamp-order"),
)
_SIMPLE: Final = tuple(name for name in TRANSACTIONAL if not name.startswith(tuple(CYCLES)))
_WAITS: Final = (
    *("cut-not-closed", "stall", "stale-watermark", "lag", "disputed-cut", "double-timestamp"),
    *("watermark-above-start", "snapshot-mismatch", "stale-mismatch", "backup-mismatch", "flashback-mismatch"),
    *("spurious-abort", "memory-growth", "spurious-disconnect", "user-blocks-acknowledgements"),
)
_CONSEQUENCES: Final = (*_SIMPLE, *(base + order for order in ORDERS for base in CYCLES), *WATERMARK, *_WAITS)
_OTHERS: Final = len(_CAUSES)  # The rank of what is in no list.
_RANKS: Final = MappingProxyType(
    {name: _OTHERS + 1 + place for place, name in enumerate(_CONSEQUENCES)}
    | {name: place for place, name in enumerate(_CAUSES)}
)


class Shown(Protocol):
    """The part of a finding that a group needs."""

    @property
    def anomaly(self) -> str: ...

    @property
    def ops(self) -> tuple[int, ...]: ...

    @property
    def events(self) -> tuple[int, ...]: ...


F = TypeVar("F", bound=Shown)


def rank(anomaly: str) -> int:
    """The rank of an anomaly: lower ones explain higher ones. An anomaly in no list follows the causes."""
    return _RANKS.get(anomaly, _OTHERS)


def is_ranked(anomaly: str) -> bool:
    """True if a list of this module has that anomaly."""
    return anomaly in _RANKS


def groups(findings: Sequence[F]) -> list[list[F]]:
    """The findings, grouped by the operations and events they name. Root causes come first, in and among groups."""
    leaders = list(range(len(findings)))

    def leader(place: int) -> int:
        while leaders[place] != place:
            place = leaders[place]
        return place

    owner: dict[tuple[str, int], int] = {}
    for place, finding in enumerate(findings):
        for evidence in _evidence(finding):
            one, other = sorted((leader(place), leader(owner.setdefault(evidence, place))))
            leaders[other] = one
    members: dict[int, list[F]] = {}
    for place, finding in enumerate(findings):
        members.setdefault(leader(place), []).append(finding)
    ordered = [sorted(group, key=lambda finding: rank(finding.anomaly)) for group in members.values()]
    return sorted(ordered, key=lambda group: rank(group[0].anomaly))


def _evidence(finding: Shown) -> Iterator[tuple[str, int]]:
    yield from (("op", op) for op in finding.ops)
    yield from (("event", seq) for seq in finding.events)
