"""Two opinions on one stream: which anomalies the graph of watermarks found and the rules did not, and the reverse.

The graph needs a dependency to contradict a stream, the rules need positions. So a row behind its watermark may be seen
by the rules alone: no dependency forbids its place. And a stream that keeps its positions, which contradict what
transactions saw, is seen by the graph alone. Of a transaction that is torn or split both should have seen something;
else they disagree: one of the two is wrong about the stream, or its positions are.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from checkers.watermark_steps import INTERMEDIATE, NAMES, SPLIT, TORN
from harness.core.record import Json
from harness.core.verdict import Judgement

_ROWS: Final = ("late-event", "late-event-boundary", "missing-event", "silent-gap", "torn-unit", "order-inversion")
_STATES: Final = ("split-view", "state-mismatch", "watermark-regress", "hand-over-hole", "resume-hole", "lost-tail")
_SEEN_BY_RULES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    dict.fromkeys(NAMES, (*_ROWS, *_STATES, "real-time-order", "timestamp-order", "cut-not-closed"))
)
_SEEN_BY_GRAPH: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"torn-unit": NAMES, "split-view": tuple(f"{name}-watermark" for name in (SPLIT, TORN, INTERMEDIATE))}
)
_EXPECTED: Final = "expected: no dependency contradicts it"
_BY_POSITION: Final = "expected: the stream keeps its positions, and these contradict what transactions saw"
_DISAGREED: Final = "disagreement"


def second_opinion(graph: Judgement, rules: Judgement) -> dict[str, Json]:
    """What only one of the two found, by anomaly, and whether that was to be expected.

    Nothing is told where the graph has no nodes: then there is one opinion only.
    """
    if not any(graph.witnesses.values()):
        return {}
    found = {finding.anomaly for finding in graph.findings}
    ruled = {finding.anomaly for finding in rules.findings}
    is_ruled = bool(ruled & {*_ROWS, *_STATES})
    by_graph = {name: "" if is_ruled else _DISAGREED if _is_of_rows(name) else _BY_POSITION for name in sorted(found)}
    by_rules = {
        name: _told(found, _SEEN_BY_GRAPH[name]) if name in _SEEN_BY_GRAPH else _EXPECTED
        for name in sorted(ruled)
        if name in _ROWS or name in _STATES
    }
    only_graph: dict[str, Json] = {name: told for name, told in by_graph.items() if told}
    only_rules: dict[str, Json] = {name: told for name, told in by_rules.items() if told and not found}
    return {"only_graph": only_graph, "only_rules": only_rules, "both": bool(found and ruled)}


def _is_of_rows(name: str) -> bool:
    """Is the class about the rows of one transaction? Then rows stand where their positions do not belong."""
    return name.partition("-watermark")[0] in (INTERMEDIATE, TORN, SPLIT)


def _told(others: set[str], equal: tuple[str, ...]) -> str:
    return "" if others & set(equal) else _DISAGREED
