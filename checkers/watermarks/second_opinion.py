"""Disputes: anomalies of one stream that only the graph of watermarks, or only the stream rules, found.

The two are independent on purpose. The graph finds a contradiction between the stream and dependencies, the rules one
between the stream and positions. So either may rightly be alone: no dependency forbids the place of a row after its
watermark, and a stream may keep its positions although these contradict what transactions saw. But both should usually
find a transaction that is torn or split. For the example found, `checkers/watermarks/disputes.py` decides by definition
whether both had to. If so and only one did, that is a finding of its own: one of the two is wrong about the stream, or
its positions are. It breaks no promise, so it makes no run red. If neither has a finding, there is no dispute.
"""

from typing import Final

from checkers.streams.catalogue import RULES
from checkers.streams.rule import Cut
from checkers.streams.rules.watermarks.torn_unit import TORN_UNIT
from checkers.watermarks.components import COMPONENTS
from checkers.watermarks.cycles.steps import INTERMEDIATE, SPLIT, TORN
from checkers.watermarks.disputes import Why
from checkers.words.anomalies import Anomaly, Cause
from harness.core.record import Json
from harness.core.verdict import Finding, Judgement, fingerprint

CHECKER: Final = "second-opinion"
DISPUTED: Final = "disputed-cut"
ANOMALIES: Final = {
    DISPUTED: Anomaly(
        meaning="Watermarks and positions, two opinions on one stream, differ on an event that both must see.",
        cause=Cause.WAIT,
    )
}
_OF_GRAPH: Final = tuple(f"{name}-watermark" for name in (INTERMEDIATE, TORN, SPLIT))
_OF_RULES: Final = tuple(name for name, rule in RULES.items() if rule.cut is Cut.UNIT)
_ROWS: Final = tuple(name for name, rule in RULES.items() if rule.cut in (Cut.ROW, Cut.UNIT))
_SEEN: Final = tuple(name for name, rule in RULES.items() if rule.cut is not None)
_DISPUTED: Final = "disagreement"
_EXPECTED: Final = "expected: no dependency contradicts it"
_BY_POSITION: Final = "expected: the stream keeps its positions, and these contradict what transactions saw"
_OTHERWISE: Final = "expected: the rules found something else, which may change whose row it seems to be"
_APART: Final = "expected: the graph judges each stretch between restarts separately"
_UNDECIDED: Final = "expected: the other opinion could not decide"


def second_opinion(graph: Judgement, rules: Judgement, why: Why) -> Judgement | None:
    """The anomalies that only one of the two found, with the reason if that was expected; disputes as findings.

    `why` gives the reason for one finding about a torn or split transaction. None if the graph has no nodes: then there
    is only one opinion.
    """
    if not any(graph.witnesses.values()):
        return None
    found = {finding.anomaly for finding in graph.findings} | _observed(graph)
    seen = [one for one in rules.findings if one.anomaly in _SEEN]
    by_graph = {} if seen else {one.fingerprint: _reason_of_graph(one, rules, why) for one in graph.findings}
    by_rules = {} if found else {one.fingerprint: _reason_of_rules(one, graph, why) for one in seen}
    reasons = by_graph | by_rules
    disputed = [one for one in (*graph.findings, *rules.findings) if reasons.get(one.fingerprint) == _DISPUTED]
    return Judgement(
        checker=CHECKER,
        findings=tuple(_finding(one) for one in disputed),
        witnesses={DISPUTED: min(graph.witnesses.get(f"{TORN}-watermark", 0), rules.witnesses.get(TORN_UNIT.name, 0))},
        facts={
            "only_graph": _by_name(graph.findings, by_graph),
            "only_rules": _by_name(seen, by_rules),
            "both": bool(found and rules.findings),
        },
    )


def _observed(graph: Judgement) -> set[str]:
    """The classes about one transaction that the graph found and did not forbid.

    The graph names the least class of a component: other legal classes may have nothing to do with a torn unit.
    """
    observed = graph.facts.get("observations")
    return set(_OF_GRAPH).intersection(observed if isinstance(observed, dict) else ())


def _reason_of_graph(finding: Finding, rules: Judgement, why: Why) -> str:
    if finding.anomaly not in _OF_GRAPH:
        return _BY_POSITION
    if rules.findings:
        return _OTHERWISE
    if any(name in rules.unknown for name in _ROWS):
        return _UNDECIDED
    return why(finding) or _DISPUTED


def _reason_of_rules(finding: Finding, graph: Judgement, why: Why) -> str:
    if finding.anomaly not in _OF_RULES:
        return _EXPECTED
    components = graph.facts.get("components", 0)
    if graph.unknown or not isinstance(components, int) or components > COMPONENTS:  # Others are not named.
        return _UNDECIDED
    if "generations" in graph.facts:
        return _APART
    return why(finding) or _DISPUTED


def _by_name(findings: tuple[Finding, ...] | list[Finding], reasons: dict[str, str]) -> dict[str, Json]:
    """The reason for each anomaly. If an anomaly has several examples, a dispute takes precedence."""
    result: dict[str, Json] = {}
    for one in sorted(findings, key=lambda one: one.anomaly):
        if one.fingerprint in reasons and result.get(one.anomaly) != _DISPUTED:
            result[one.anomaly] = reasons[one.fingerprint]
    return result


def _finding(finding: Finding) -> Finding:
    """The finding of a dispute: one opinion reports `finding`, and the other, which must see the same, does not."""
    one, other = "the graph of watermarks", "the rules of streams"
    if finding.anomaly in _OF_RULES:
        one, other = other, one
    return Finding(
        fingerprint=fingerprint(DISPUTED, finding.fingerprint),
        anomaly=DISPUTED,
        checker=CHECKER,
        sentence=f"Only {one} found {finding.anomaly}, and {other} had to see it, too: either opinion is wrong, or the "
        f"positions of the stream are. {finding.sentence}",
        ops=finding.ops,
        events=finding.events,
    )
