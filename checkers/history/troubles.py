"""Violations as findings: one finding per anomaly, with the first violation as its example and their number."""

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from harness.core.record import Json
from harness.core.verdict import Finding, Judgement, fingerprint


class Trouble(Struct, frozen=True):
    """A violation. The fingerprint is made of `facts`.

    `ops` are the operations to look at, and `events` the journal positions. Violations of one anomaly are reported
    together, unless their groups differ. `count`: the number of violations that this one stands for.
    """

    anomaly: str
    sentence: str
    facts: tuple[object, ...]
    ops: tuple[int, ...] = ()
    events: tuple[int, ...] = ()
    group: object = None
    count: int = 1


def findings(
    checker: str, anomalies: Collection[str], troubles: Iterable[Trouble], *, scope: tuple[object, ...] | None = None
) -> tuple[Finding, ...]:
    """One finding for each anomaly and group, in the order of `anomalies`, then of the first violation.

    `scope` is part of all fingerprints. By default it is the checker, so that two checks do not share a finding.
    """
    scope = (checker,) if scope is None else scope
    order = list(anomalies)
    alike: dict[tuple[str, object], list[Trouble]] = {}
    for trouble in troubles:
        alike.setdefault((trouble.anomaly, trouble.group), []).append(trouble)
    ordered = sorted(alike.values(), key=lambda same: order.index(same[0].anomaly))
    return tuple(_finding(checker, scope, same[0], sum(trouble.count for trouble in same)) for same in ordered)


def judgement(
    checker: str,
    anomalies: Collection[str],
    troubles: Iterable[Trouble],
    witnesses: Mapping[str, int],
    *,
    scope: tuple[object, ...] | None = None,
    unknown: Mapping[str, str] | None = None,
    facts: Mapping[str, Json] | None = None,
) -> Judgement:
    """The judgement of a check, with the findings that `findings` makes.

    An anomaly with a finding is never also unknown.
    """
    found = findings(checker, anomalies, troubles, scope=scope)
    shown = {finding.anomaly for finding in found}
    return Judgement(
        checker=checker,
        findings=found,
        witnesses=dict.fromkeys(anomalies, 0) | dict(witnesses),
        unknown={name: reason for name, reason in (unknown or {}).items() if name not in shown},
        facts=dict(facts or {}),
    )


def _finding(checker: str, scope: tuple[object, ...], example: Trouble, count: int) -> Finding:
    return Finding(
        fingerprint=fingerprint(example.anomaly, *scope, *example.facts),
        anomaly=example.anomaly,
        checker=checker,
        sentence=example.sentence,
        count=count,
        ops=tuple(sorted(set(example.ops))),
        events=example.events,
    )
