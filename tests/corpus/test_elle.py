"""Elle's own unit tests for lists and registers, with the verdicts that they state. Absent: skipped, and said so."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from checkers.engine.datasets import LocalEngine
from checkers.graph.edges import all_edges
from checkers.history.registers import ORDER, Order, Trust
from checkers.history.transactions import Append, Load, Mop, Operation, Read, Store, to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from checkers.transactions.partition import infer, shares
from checkers.words import models
from harness.core.columns import FAIL, INFO, NEVER, NOTHING, OK
from harness.core.record import Json
from harness.core.verdict import Finding, Judgement

HISTORIES = Path(__file__).resolve().parents[3] / "shared" / "histories"
UNIT = HISTORIES / "elle-unit"
ENGINE = LocalEngine(1)
OUTCOMES = {"ok": OK, "fail": FAIL, "info": INFO}

# Elle says of these that nothing follows from a graph without edges, and reports it as an anomaly of its own.
CONVENTIONS = {"empty-transaction-graph"}

# Where we find more than Elle's names imply, and why that is right.
MORE = {
    # One transaction writes 4, a later one reads that and writes 3, so both wr and ww lead from the one to the other.
    # Elle names a step between registers by wr if it can, we by ww: that proves more.
    "scc-sort-bug/strong-ser+wfr+lin": {"G0-process"},
    # With sessions parallel snapshot isolation is a model of ours that only this cycle rules out.
    "G-nonadjacent/default-strict": {"G-single-process"},
}
# Nobody wrote what they read. It cannot have been there at first, so that only a writer whom the history does not name
# explains them: Elle passes them, we leave them open.
OPEN = {"read-not-just-written/strict+lin-keys", "wfr/no-wfr"}

pytestmark = pytest.mark.skipif(not UNIT.is_dir(), reason=f"{UNIT} is absent")


class Event(msgspec.Struct):
    """One event of a history. A list without keywords is one micro-operation."""

    index: int
    type: str
    process: int
    value: list[tuple[str, str | int, int | list[int] | None]]


class Asked(msgspec.Struct):
    """Which models (absent: strict-serializable; null: none) and which anomalies count."""

    consistency_models: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    anomalies: list[str] = []
    wfr_keys: bool = False
    sequential_keys: bool = False
    linearizable_keys: bool = False
    transaction_order: dict[str, int] = {}  # For each operation its place among the commits.


class Case(msgspec.Struct):
    name: str
    workload: str
    history: list[Event]
    options: Asked
    valid: bool | str = True
    anomaly_types: list[str] = []
    rules_out: list[str] | None = msgspec.field(name="not", default=None)


def cases() -> Iterator[Case]:
    if UNIT.is_dir():
        for line in (UNIT / "cases.jsonl").read_text(encoding="utf-8").splitlines():
            case = msgspec.json.decode(line, type=Case)
            yield case


def operations(history: list[Event], *, is_of_registers: bool = False) -> list[Operation]:
    """Invocations paired with the completions of their process; without invocations each event is an operation."""
    mops = partial(micro_operations, is_of_registers=is_of_registers)
    invoked = [event for event in history if event.type == "invoke"] or history
    waiting: dict[int, list[int]] = {}
    result: dict[int, Operation] = {}
    started = 0
    for event in history:
        if event.type == "invoke" or invoked is history:
            waiting.setdefault(event.process, []).append(started)
            result[started] = Operation(started, event.process, INFO, NEVER, mops(event))
            started += 1
        if event.type != "invoke":
            index = waiting[event.process].pop(0)
            outcome = OUTCOMES[event.type]
            after = started if outcome == OK else NEVER
            result[index] = Operation(index, event.process, outcome, after, mops(event))
    return [result[index] for index in range(started)]


def micro_operations(event: Event, *, is_of_registers: bool) -> tuple[Mop, ...]:
    return tuple(mop(event, *each, is_of_registers=is_of_registers) for each in event.value)


def mop(event: Event, f: str, key: str | int, value: int | list[int] | None, *, is_of_registers: bool) -> Mop:
    number = key if isinstance(key, int) else ord(key)
    if f != "r":
        assert isinstance(value, int)
        return Append(number, value) if f == "append" else Store(number, value)
    if event.type != "ok":
        return Read(number, None)
    if is_of_registers:
        assert not isinstance(value, list)
        return Load(number, NOTHING if value is None else value)
    assert not isinstance(value, int)
    return Read(number, tuple(value or ()))


def options(case: Case) -> Options:
    """As Elle is told; what it is not told, it takes for nothing."""
    asked = case.options
    wanted = ["strict-serializable"] if asked.consistency_models is msgspec.UNSET else asked.consistency_models
    order = Order(
        writes_follow_reads=asked.wfr_keys,
        commits=bool(asked.transaction_order),
        process=Trust.GIVEN if asked.sequential_keys else Trust.NONE,
        real_time=Trust.GIVEN if asked.linearizable_keys else Trust.NONE,
    )
    prohibited = models.prohibited(wanted or (), asked.anomalies)
    return Options(prohibited=(prohibited,), is_empty_unknown=True, order=order)


def history(case: Case) -> list[Operation]:
    whole = operations(case.history, is_of_registers=case.workload == "rw-register")
    places = case.options.transaction_order
    return [replace(op, commit=places[str(op.index)]) if places else op for op in whole]


def valid(judgement: Judgement) -> bool | str:
    if judgement.findings:
        return False
    return "unknown" if judgement.unknown else True


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_the_verdict_is_elles(case: Case) -> None:
    judgement = check_sources([to_transactions(history(case))], ENGINE, options(case))
    ours = {finding.anomaly for finding in judgement.findings}
    theirs = set(case.anomaly_types) - CONVENTIONS
    assert valid(judgement) == ("unknown" if case.name in OPEN else case.valid), (ours, theirs)
    assert ours - MORE.get(case.name, set()) <= models.implied(theirs)
    assert theirs <= models.implied(ours)
    allowed = judgement.facts["allowed_anomalies"]
    assert isinstance(allowed, dict)
    assert set(case.rules_out or []) <= set(models.ruled_out({*ours, *allowed}))


class Occurrence(msgspec.Struct):
    """An anomaly that a function of Elle's finds: at which event, and whose element."""

    op_index: int
    writer_index: int | None = None


class Graph(msgspec.Struct):
    edges: list[tuple[int, int]]


class Function(msgspec.Struct):
    """A case of one of Elle's functions: a history, and what it returns for that, by anomaly or as edges."""

    name: str
    workload: str
    function: str
    history: list[Event]
    expected: Graph | dict[str, list[Occurrence]] | list[Occurrence] | None


def functions() -> Iterator[Function]:
    if UNIT.is_dir():
        for line in (UNIT / "unit_functions.jsonl").read_text(encoding="utf-8").splitlines():
            yield decoded(json.loads(line))


def decoded(case: dict[str, Json]) -> Function:
    """The case with one shape of `expected` for each function."""
    function, expected = case["function"], case["expected"]
    shape: object = {"graph": Graph}.get(str(function), list[Occurrence] | None)
    if function == "internal-cases" and case["workload"] == "list-append":
        shape = dict[str, list[Occurrence]]
    return Function(
        name=str(case["name"]),
        workload=str(case["workload"]),
        function=str(function),
        history=msgspec.convert(case["history"], list[Event]),
        expected=msgspec.convert(expected, shape),
    )


@pytest.mark.parametrize("case", list(functions()), ids=lambda case: case.name)
def test_the_function_answers_as_elles(case: Function) -> None:
    whole = operations(case.history, is_of_registers=case.workload == "rw-register")
    # Elle counts events, we count operations.
    invocations = [event.index for event in case.history if event.type == "invoke"]
    completions = [event.index for event in case.history if event.type != "invoke"]
    numbers = dict(zip(completions, range(len(completions)), strict=True))
    assert len(invocations) in {0, len(completions)}
    if isinstance(case.expected, Graph):
        assert edges(whole) == {(numbers[source], numbers[target]) for source, target in case.expected.edges}
        return
    name = {"g1a-cases": "G1a", "g1b-cases": "G1b"}.get(case.function, "internal")
    expected = case.expected if isinstance(case.expected, dict) else {name: case.expected or []}
    for anomaly in (name, *(["future-read"] if name == "internal" else [])):
        occurrences = expected.get(anomaly, [])
        found = [one for one in findings(whole) if one.anomaly == anomaly]
        assert sum(one.count for one in found) == len(occurrences)
        if occurrences:
            first = occurrences[0]
            wanted = {first.op_index, first.op_index if first.writer_index is None else first.writer_index}
            assert found[0].ops == tuple(sorted(numbers[index] for index in wanted))


def findings(whole: list[Operation]) -> tuple[Finding, ...]:
    return check_sources([to_transactions(whole)], ENGINE).findings


def edges(whole: list[Operation]) -> set[tuple[int, int]]:
    """All dependencies, those written out and the implicit ones."""
    inference = infer([share for _, share in shares(to_transactions(whole), partitions=1)], order=ORDER)
    first, stop = inference.implicit.writer_spans()
    pairs = inference.implicit.pairs(first=first, count=stop - first)
    every = all_edges([inference.edges, pairs])
    return set(zip(every.source.tolist(), every.target.tolist(), strict=True))
