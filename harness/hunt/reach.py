"""The features of a run: the states and events that it reached, under names that are the same in other runs.

Each feature is a short text. Novelty is measured by them alone; none says that anything is wrong. They are

- a goal or failpoint, how often (by powers of two), under which faults, at a node that was struck or at another one;
- two of them shortly after each other, on one node or on two;
- a probe's largest value and a state's shape, numbers by powers of two;
- how long a subscriber waited for a watermark, and other events of a stream;
- an operation's error, kinds of edges in the graph, anomalies that are allowed.
"""

import re
from collections import deque
from collections.abc import Iterator

from harness.core.machine import NodeId
from harness.core.record import Complete, Evidence, Fault, Json, Mark, Probe, State, StreamEvent
from harness.report.model import Report
from nemesis.topology import ends

SECOND = 1_000_000_000
SOON_NS = 50_000_000  # Two goals within this time are paired.
LONG_NS = SECOND  # The shortest wait for a watermark that is a feature.
LATEST = 6  # The number of earlier goals that are paired with each.
ROWS = ("row", "begin", "commit")  # Ordinary events of a stream, which are no features.
LONG = 6  # The most elements of a state's value that are named; a longer value is only counted.
_DIGITS = re.compile(r"\d+")


class Reach:
    """The features of one run so far, each with its first time in nanoseconds since the start of the load."""

    def __init__(self) -> None:
        self.features: dict[str, int] = {}
        self._start_ns = 0
        self._in_force: dict[int, tuple[str, frozenset[str]]] = {}  # Package and struck nodes, by step.
        self._latest: deque[tuple[int, str, str]] = deque(maxlen=LATEST)
        self._counts: dict[str, int] = {}
        self._promised: dict[str, int] = {}  # The time of the last watermark of each open session, or of its opening.

    def observe(self, evidence: Evidence) -> None:
        """Add the features of a record."""
        at_ns = evidence.time_ns
        match evidence:
            case Mark(phase="load"):
                self._start_ns = at_ns
            case Fault(step=number, phase="begin", kind=kind):
                self._in_force[number] = kind, _struck(evidence.targets)
            case Fault(step=number, phase="effect", kind=kind, effect=effect):
                self._add(f"effect {kind} {_power(effect or 0)}", at_ns)
            case Fault(step=number, phase="end"):
                self._in_force.pop(number, None)
            case Probe(name=name, value=value):
                self._add(f"probe {name} {_power(value)}", at_ns)
            case State(object=name, value=value) if name != "row":
                self._add(f"state {name} {_shape(value)}", at_ns)
                self._under(f"state {name}", evidence.node, at_ns)
            case StreamEvent(kind="watermark"):
                self._waited(evidence.subscriber, at_ns)
            case StreamEvent(kind=kind, value=value) if kind not in ROWS:
                self._waited(evidence.subscriber, at_ns)
                self._promised.pop(evidence.subscriber, None)
                if kind == "open":
                    self._promised[evidence.subscriber] = at_ns
                self._happened(evidence.subscriber, f"{kind} {value}" if isinstance(value, str) else kind, at_ns)
            case Complete(outcome=outcome, error=error) if outcome != "ok":
                self._add(f"{outcome} {_DIGITS.sub('#', error or '')}", at_ns)
            case _:
                pass

    def reached(self, time_ns: int, node: NodeId, goal: str) -> None:
        """Add the features of a goal or failpoint that a node reached."""
        self._happened(node, goal, time_ns)

    def conclude(self, report: Report) -> None:
        """Add the features of the judgement of the whole run."""
        for name, count in self._counts.items():
            self._add(f"{name} x{_power(count)}", self._start_ns)
        facts = report.facts.get("serializability")
        edges = facts.get("edges") if isinstance(facts, dict) else None
        for name, number in edges.items() if isinstance(edges, dict) else ():
            self._add(f"edges {name} {_power(number if isinstance(number, int) else 0)}", self._start_ns)
        allowed = facts.get("allowed_anomalies") if isinstance(facts, dict) else None
        for name in allowed if isinstance(allowed, dict) else ():
            self._add(f"allowed {name}", self._start_ns)

    def _waited(self, subscriber: str, at_ns: int) -> None:
        """Add the time since the session's last watermark as a feature, dated at the beginning of the wait."""
        since_ns = self._promised.get(subscriber)
        if since_ns is not None:
            self._promised[subscriber] = at_ns
            if at_ns - since_ns >= LONG_NS:
                self._add(f"no watermark for {_power((at_ns - since_ns) // SECOND)} s", since_ns)

    def _happened(self, node: str, name: str, at_ns: int) -> None:
        self._add(name, at_ns)
        self._counts[name] = self._counts.get(name, 0) + 1
        self._under(name, node, at_ns)
        for then_ns, before, where in self._latest:
            if at_ns - then_ns <= SOON_NS and before != name:
                self._add(f"{before} > {name} {'same' if where == node else 'other'}", at_ns)
        self._latest.append((at_ns, name, node))

    def _under(self, name: str, node: str, at_ns: int) -> None:
        """Add features for the faults in force: each one, and whether it strikes this node; and all together."""
        if self._in_force:
            for package, struck in self._in_force.values():
                self._add(f"{name} in {package} {'here' if node in struck else 'elsewhere'}", at_ns)
            if len(self._in_force) > 1:
                together = "+".join(sorted({package for package, _ in self._in_force.values()}))
                self._add(f"{name} in {together}", at_ns)

    def _add(self, feature: str, at_ns: int) -> None:
        if feature not in self.features:
            self.features[feature] = max(0, at_ns - self._start_ns)


def _struck(targets: tuple[str, ...]) -> frozenset[str]:
    """The nodes that a step strikes, directly or through a link."""
    return frozenset(name for target in targets for name in (ends(target) if ">" in target else (target,)))


def _power(number: int) -> int:
    """The power of two at or above the number's absolute value, with the number's sign; 0 for 0."""
    return 0 if number == 0 else (1 << (abs(number) - 1).bit_length()) * (1 if number > 0 else -1)


def _shape(value: Json) -> str:
    """The value as text with numbers by powers of two; of a long or deep value only its kind."""
    return "-".join(_parts(value, depth=2))


def _parts(value: Json, *, depth: int) -> Iterator[str]:
    if isinstance(value, bool) or value is None:
        yield str(value)
    elif isinstance(value, int | float):
        yield str(_power(int(value)))
    elif isinstance(value, str):
        yield _DIGITS.sub("#", value) if len(value) > LONG * LONG else value
    elif isinstance(value, list) and depth and len(value) <= LONG and any(isinstance(each, str) for each in value):
        for each in value:
            yield from _parts(each, depth=depth - 1)
    else:  # For a list of numbers only their count matters.
        yield f"{type(value).__name__} of {_power(len(value))}"
