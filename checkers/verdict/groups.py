"""Findings grouped by what they have in common: the root cause first, its consequences after it.

A bug that loses one row breaks five promises. Findings share a group if they name an operation or an event in common.
In a group, and among groups, a cause precedes its consequences: a wrong owner or lost data explains a gap in a stream,
a missing row explains a torn unit and two views that differ, and any of them a cycle.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from checkers.verdict.titles import NONE, known, record_of
from checkers.words.anomalies import Anomaly, Cause

_CAUSES: Final = MappingProxyType({cause: place for place, cause in enumerate(Cause)})


class Shown(Protocol):
    """The part of a finding that a group needs."""

    @property
    def anomaly(self) -> str: ...

    @property
    def ops(self) -> tuple[int, ...]: ...

    @property
    def events(self) -> tuple[int, ...]: ...


F = TypeVar("F", bound=Shown)


def rank(anomaly: str, own: Mapping[str, Anomaly] = NONE) -> tuple[int, int]:
    """The rank of an anomaly: lower ones explain higher ones. By its cause, then by the order of the catalogue.

    `own` are the records of anomalies that a system's own checks declare; they come last among those of their cause.
    """
    record, places = record_of(anomaly, own), _places()
    return _CAUSES[record.cause if record else Cause.OTHER], places.get(anomaly, len(places))


@cache
def _places() -> Mapping[str, int]:
    return {name: place for place, name in enumerate(known())}


def has_cause(anomaly: str, own: Mapping[str, Anomaly] = NONE) -> bool:
    """True if the record of that anomaly declares a cause."""
    record = record_of(anomaly, own)
    return record is not None and record.cause is not Cause.OTHER


def groups(findings: Sequence[F], own: Mapping[str, Anomaly] = NONE) -> list[list[F]]:
    """The findings, grouped by the operations and events they name. Root causes come first, in and among groups.

    `own` is as for `rank`.
    """
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
    ordered = [sorted(group, key=lambda finding: rank(finding.anomaly, own)) for group in members.values()]
    return sorted(ordered, key=lambda group: rank(group[0].anomaly, own))


def _evidence(finding: Shown) -> Iterator[tuple[str, int]]:
    yield from (("op", op) for op in finding.ops)
    yield from (("event", seq) for seq in finding.events)
