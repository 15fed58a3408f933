"""What the graph of watermarks and the rules of streams do not both say, and whether that was to be expected."""

import pytest

from checkers.catalogue import RECORDS
from checkers.watermarks.components import COMPONENTS
from checkers.watermarks.disputes import SEEN
from checkers.watermarks.second_opinion import DISPUTED, second_opinion
from harness.core.record import Json
from harness.core.verdict import Finding, Judgement

KEPT = "expected: the stream keeps its positions, and these contradict what transactions saw"
NO_DEPENDENCY = "expected: no dependency contradicts it"
OTHERWISE = "expected: the rules found something else, which may change whose row it seems to be"
APART = "expected: the graph judges each stretch between restarts separately"
UNTOLD = "expected: the other opinion could not decide"
LOST = "expected: lost"


def judgement(
    checker: str,
    *anomalies: str,
    witnesses: int = 1,
    unknown: str | None = None,
    facts: dict[str, Json] | None = None,
) -> Judgement:
    return Judgement(
        checker=checker,
        findings=tuple(Finding(fingerprint=name, anomaly=name, checker=checker, sentence="It.") for name in anomalies),
        witnesses={"torn-watermark" if checker == "watermark-graph" else "torn-unit": witnesses},
        unknown={} if unknown is None else {unknown: "too large"},
        facts=facts or {},
    )


def opinion(graph: Judgement, rules: Judgement, reason: str) -> Judgement:
    result = second_opinion(graph, rules, lambda _: reason)
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("graph", "rules", "reason", "only_graph", "only_rules"),
    [
        ((), (), SEEN, {}, {}),
        (("torn-watermark",), ("torn-unit", "late-event"), SEEN, {}, {}),
        ((), ("late-event",), SEEN, {}, {"late-event": NO_DEPENDENCY}),
        ((), ("torn-unit",), SEEN, {}, {"torn-unit": "disagreement"}),
        ((), ("torn-unit", "late-event"), LOST, {}, {"torn-unit": LOST, "late-event": NO_DEPENDENCY}),
        ((), ("split-view",), SEEN, {}, {"split-view": "disagreement"}),
        (("torn-watermark",), (), SEEN, {"torn-watermark": "disagreement"}, {}),
        (("torn-watermark",), (), LOST, {"torn-watermark": LOST}, {}),
        (("torn-watermark",), ("wrong-value",), SEEN, {"torn-watermark": OTHERWISE}, {}),
        (("G0-watermark",), (), SEEN, {"G0-watermark": KEPT}, {}),
        (("G0-watermark",), ("torn-unit",), SEEN, {}, {}),
        ((), ("phantom-event",), SEEN, {}, {}),  # Of what the graph does not judge, it has no opinion.
    ],
)
def test_what_only_one_of_them_found_is_told(
    graph: tuple[str, ...], rules: tuple[str, ...], reason: str, only_graph: dict[str, str], only_rules: dict[str, str]
) -> None:
    result = opinion(judgement("watermark-graph", *graph), judgement("streams", *rules), reason)
    assert (result.facts["only_graph"], result.facts["only_rules"]) == (only_graph, only_rules)
    assert result.facts["both"] == bool(graph and rules)
    reasons = [*only_graph.values(), *only_rules.values()]
    assert [finding.anomaly for finding in result.findings] == [DISPUTED] * reasons.count("disagreement")


def test_a_dispute_says_who_found_what_and_who_did_not() -> None:
    result = opinion(judgement("watermark-graph"), judgement("streams", "torn-unit"), SEEN)
    assert [finding.sentence for finding in result.findings] == [
        "Only the rules of streams found torn-unit, and the graph of watermarks had to see it, too: either opinion is "
        "wrong, or the positions of the stream are. It."
    ]
    result = opinion(judgement("watermark-graph", "split-watermark"), judgement("streams"), SEEN)
    assert result.findings[0].sentence.startswith(
        "Only the graph of watermarks found split-watermark, and the rules of"
    )
    assert result.witnesses == {DISPUTED: 1}
    assert DISPUTED in RECORDS


def test_what_the_graph_found_and_called_legal_it_has_seen() -> None:
    graph = judgement("watermark-graph", facts={"observations": {"torn-watermark": "It."}})
    result = opinion(graph, judgement("streams", "torn-unit"), SEEN)
    assert (result.facts["only_rules"], result.findings) == ({}, ())
    skew = judgement("watermark-graph", facts={"observations": {"G2-item-watermark": "It."}})
    assert len(opinion(skew, judgement("streams", "torn-unit"), SEEN).findings) == 1
    most = judgement("watermark-graph", facts={"components": COMPONENTS})
    assert len(opinion(most, judgement("streams", "torn-unit"), SEEN).findings) == 1


@pytest.mark.parametrize(
    ("graph", "rules", "message"),
    [
        (judgement("watermark-graph", unknown="torn-watermark"), judgement("streams", "torn-unit"), UNTOLD),
        (judgement("watermark-graph", facts={"components": COMPONENTS + 1}), judgement("streams", "torn-unit"), UNTOLD),
        (judgement("watermark-graph", facts={"generations": 2}), judgement("streams", "torn-unit"), APART),
        (judgement("watermark-graph", "torn-watermark"), judgement("streams", unknown="missing-event"), UNTOLD),
    ],
)
def test_who_could_not_tell_disputes_nothing(graph: Judgement, rules: Judgement, message: str) -> None:
    found = opinion(graph, rules, SEEN)
    facts = found.facts["only_graph"], found.facts["only_rules"]
    assert [list(each.values()) for each in facts if isinstance(each, dict) and each] == [[message]]
    assert not found.findings


def test_of_several_examples_a_dispute_is_told() -> None:
    findings = [Finding(fingerprint=str(n), anomaly="torn-unit", checker="", sentence="") for n in range(3)]
    rules = Judgement(checker="streams", findings=tuple(findings), witnesses={})
    result = second_opinion(judgement("watermark-graph"), rules, lambda one: SEEN if one.fingerprint == "1" else LOST)
    assert result is not None
    assert result.facts["only_rules"] == {"torn-unit": "disagreement"}
    assert len(result.findings) == 1


def test_a_graph_without_nodes_is_no_opinion() -> None:
    graph, rules = judgement("watermark-graph", witnesses=0), judgement("streams", "torn-unit")
    assert second_opinion(graph, rules, lambda _: SEEN) is None
