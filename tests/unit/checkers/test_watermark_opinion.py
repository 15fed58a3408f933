"""What the graph of watermarks and the rules of streams do not both say, and whether that was to be expected."""

import pytest

from checkers.watermark_opinion import second_opinion
from harness.core.verdict import Finding, Judgement

KEPT = "expected: the stream keeps its positions, and these contradict what transactions saw"


def judgement(checker: str, *anomalies: str, witnesses: int = 1) -> Judgement:
    findings = tuple(Finding(fingerprint=name, anomaly=name, checker=checker, sentence="") for name in anomalies)
    return Judgement(checker=checker, findings=findings, witnesses={"torn-watermark": witnesses})


@pytest.mark.parametrize(
    ("graph", "rules", "only_graph", "only_rules"),
    [
        ((), (), {}, {}),
        (("torn-watermark",), ("torn-unit", "late-event"), {}, {}),
        ((), ("late-event",), {}, {"late-event": "expected: no dependency contradicts it"}),
        ((), ("torn-unit",), {}, {"torn-unit": "disagreement"}),
        (("torn-watermark",), (), {"torn-watermark": "disagreement"}, {}),
        (("G0-watermark",), (), {"G0-watermark": KEPT}, {}),
        ((), ("phantom-event",), {}, {}),  # Of what the graph does not judge, it has no opinion.
    ],
)
def test_what_only_one_of_them_found_is_told(
    graph: tuple[str, ...], rules: tuple[str, ...], only_graph: dict[str, str], only_rules: dict[str, str]
) -> None:
    told = second_opinion(judgement("watermark-graph", *graph), judgement("streams", *rules))
    assert (told["only_graph"], told["only_rules"]) == (only_graph, only_rules)
    assert told["both"] == bool(graph and rules)


def test_a_graph_without_nodes_is_no_opinion() -> None:
    assert second_opinion(judgement("watermark-graph", witnesses=0), judgement("streams", "torn-unit")) == {}
