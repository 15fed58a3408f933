"""Reasons why one node of a cycle precedes the next, and the findings that are made of them.

A `Witness` knows a part of what a history shows, such as the reads of lists or the order of time, and gives the reason
why one node precedes another by a dependency of some kind. A finding quotes the first witness that has a reason.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Protocol, TypeVar

from checkers.graph.classes import MISSES, WRITES
from checkers.graph.edges import CHAIN, IN, OUT, PROCESS, REALTIME, WR
from harness.core.verdict import Finding, Step, fingerprint

Relation = Literal["ww", "wr", "rw", "process", "realtime", "watermark"]
_RELATIONS: Final[Mapping[int, Relation]] = MappingProxyType(
    {
        WRITES[REALTIME]: "ww",
        WR: "wr",
        MISSES[REALTIME]: "rw",
        PROCESS: "process",
        REALTIME: "realtime",
        IN | OUT | CHAIN: "watermark",
    }
)


class Reason(NamedTuple):
    """A sentence that gives a reason, and further operations that it mentions."""

    sentence: str
    ops: tuple[int, ...] = ()


N = TypeVar("N", contravariant=True)


class Witness(Protocol[N]):
    """Something that a history shows."""

    def why(self, earlier: N, later: N, kind: int) -> Reason | None:
        """The reason why one node precedes the other by a dependency of that kind; None if it shows none."""


def why(witnesses: Iterable[Witness[N]], earlier: N, later: N, kind: int) -> Reason | None:
    """The reason of the first witness that has one; None if none has."""
    reasons = (witness.why(earlier, later, kind) for witness in witnesses)
    return next((reason for reason in reasons if reason is not None), None)


def relation_of(kind: int) -> Relation:
    """The name of a kind of step in findings."""
    return next(relation for kinds, relation in _RELATIONS.items() if kind & kinds)


def shown(source: str, target: str, kind: int, sentence: str) -> Step:
    """The step of a finding between two nodes, by their labels."""
    return Step(source=source, target=target, relation=relation_of(kind), sentence=sentence)


def told(steps: Sequence[Step], conclusion: str) -> str:
    """The reasons of all steps in one sentence, and the conclusion."""
    return f"{'; '.join(step.sentence for step in steps)}. {conclusion}"


def around(ops: Sequence[int]) -> str:
    """The operations of a cycle, each before the next: "T1 before T2 before T1"."""
    return " before ".join(f"T{op}" for op in (*ops, ops[0]))


def cycle_finding(
    anomaly: str,
    checker: str,
    steps: Sequence[Step],
    sentence: str,
    *,
    facts: Iterable[object],
    ops: tuple[int, ...],
    events: tuple[int, ...] = (),
    count: int = 1,
) -> Finding:
    """The finding of a cycle with those steps. Its fingerprint is made of the anomaly and `facts`."""
    is_name = bool(steps) and steps[0].relation == "watermark"  # A subscriber's name keeps its small letter.
    return Finding(
        fingerprint=fingerprint(anomaly, *facts),
        anomaly=anomaly,
        checker=checker,
        sentence=sentence if is_name else f"{sentence[:1].upper()}{sentence[1:]}",
        count=count,
        ops=ops,
        events=events,
        cycle=tuple(steps),
    )
