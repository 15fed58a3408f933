"""Models of one's own: the seven examples against every order, on random histories, right and spoiled."""

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, Final

import pytest

import seamark
from checkers.linearizability.check import LIMITS, Limits
from checkers.own.history import History, Operation
from checkers.own.model import judged
from harness.core.record import Outcome
from tests.amount import FIRST_SEED, count

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples" / "models.py"


def loaded() -> ModuleType:
    spec = spec_from_file_location("example_models", EXAMPLES)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


MODELS = loaded()
Ask = tuple[str, Any]
PATHS = ("a", "b", "a/c")
ASKED: Mapping[str, Callable[[Random], Ask]] = {
    "Register": lambda draw: draw.choice(
        [
            ("read", ["x", None]),
            ("write", ["x", draw.randrange(3)]),
            ("cas", ["x", [draw.randrange(3), draw.randrange(3)]]),
        ]
    ),
    "Lock": lambda draw: (draw.choice(["acquire", "release"]), None),
    "Queue": lambda draw: draw.choice([("enqueue", draw.randrange(3)), ("dequeue", None)]),
    "Stack": lambda draw: draw.choice([("push", draw.randrange(3)), ("pop", None)]),
    "Set": lambda draw: (draw.choice(["add", "remove", "has"]), draw.randrange(2)),
    "Counter": lambda draw: draw.choice([("add", draw.randrange(1, 3)), ("read", None)]),
    "FileSystem": lambda draw: draw.choice(
        [
            ("mkdir", draw.choice(PATHS)),
            ("write", [draw.choice(PATHS), draw.choice("st")]),
            ("read", draw.choice(PATHS)),
            ("remove", draw.choice(PATHS)),
        ]
    ),
}
ANSWERS: Mapping[str, Sequence[Any]] = {
    "Register": (None, 0, 1, 2),
    "Queue": (None, 0, 1, 2),
    "Stack": (None, 0, 1, 2),
    "Set": (True, False),
    "Counter": (0, 1, 2, 3),
    "FileSystem": ("ok", "missing", "exists", "no folder", "not empty", "s", "t", None),
}


def answers(name: str, model: Any, op: seamark.Op, state: Hashable) -> list[tuple[Any, Hashable]]:
    """Each answer that the operation can have in that state, and the state after it."""
    has_one = name in {"Lock", "Queue", "Stack", "Counter"} and op.f not in {"dequeue", "pop", "read"}
    candidates: Sequence[Any] = (None,) if has_one else ANSWERS[name]
    if name == "Register":
        candidates = [["x", each] for each in ANSWERS[name]] if op.f == "read" else [op.asked]
    found = []
    for value in candidates:
        answered = seamark.Op(op.f, op.asked, value, (), True, op.process)
        found += [(value, after) for after in model.step(state, answered)]
    return found


def drawn(name: str, draw: Random) -> list[dict[str, Any]]:
    """A history of up to six operations of three processes: right, or with answers that were drawn."""
    model, lives = getattr(MODELS, name)(), list[dict[str, Any]]()
    state, is_right = model.initial(), draw.random() < 0.5
    open_ops: dict[int, seamark.Op] = {}
    process_of = {thread: thread for thread in range(3)}
    left = draw.randrange(3, 7)
    while left or open_ops:
        thread = draw.randrange(3)
        process = process_of[thread]
        if process not in open_ops:
            if left:
                left -= 1
                f, asked = ASKED[name](draw)
                sees = getattr(model, "sees_process", False)
                open_ops[process] = seamark.Op(f, asked, None, (), False, process if sees else None)
                lives.append({"type": "invoke", "process": process, "f": f, "value": asked})
            continue
        op = open_ops.pop(process)
        possible = answers(name, model, op, state)
        if not possible:
            kind, value = "ok" if name == "Lock" and not is_right else "fail", op.asked
        elif draw.random() < 0.15:
            kind, value = "info", op.asked
            if draw.random() < 0.5:
                state = draw.choice(possible)[1]
            process_of[thread] += 3
        else:
            kind = "ok"
            value, after = draw.choice(possible)
            if is_right or name not in ANSWERS or op.f in {"write", "cas", "enqueue", "push"}:
                state = after
            else:
                value = draw.choice(ANSWERS[name])
                value = (["x", value] if op.f == "read" else op.asked) if name == "Register" else value
                value = None if name == "Counter" and op.f == "add" else value
        lives.append({"type": kind, "process": process, "f": op.f, "value": value})
    return lives


def explained(history: Sequence[Mapping[str, Any]], model: Any) -> bool:
    """True if some order of the operations, with any of the unclear ones, explains all answers."""
    begun: dict[int, int] = {}
    ops: list[tuple[int, int | None, seamark.Op]] = []
    for place, record in enumerate(history):
        process = record["process"]
        sees = process if getattr(model, "sees_process", False) else None
        if record["type"] == "invoke":
            begun[process] = place
            continue
        start = begun.pop(process)
        asked = history[start]["value"]
        if record["type"] == "ok":
            ops.append((start, place, seamark.Op(record["f"], asked, record["value"], (), True, sees)))
        elif record["type"] == "info":
            ops.append((start, None, seamark.Op(record["f"], asked, None, (), False, sees)))
    return any(True for _ in orders(ops, {model.initial()}, model))


def orders(left: list[tuple[int, int | None, seamark.Op]], states: set[Any], model: Any) -> Iterator[bool]:
    if all(end is None for _, end, _ in left):
        yield True
    for one in left:
        if any(end is not None and end < one[0] for _, end, _ in left):
            continue
        after = {each for state in states for each in model.step(state, one[2])}
        if after:
            yield from orders([each for each in left if each is not one], after, model)


class Told(History):
    """A history in memory."""

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._records = records

    def operations(self, *f: str, outcome: Outcome | None = None) -> Iterator[Operation]:
        begun: dict[int, int] = {}
        for seq, record in enumerate(self._records):
            if record["type"] == "invoke":
                begun[record["process"]] = seq
                continue
            start = begun.pop(record["process"])
            yield Operation(
                index=start,
                process=record["process"],
                node=None,
                f=record["f"],
                outcome=record["type"],
                asked=self._records[start]["value"],
                value=record["value"],
                mops=(),
                invoke_ns=start,
                complete_ns=seq,
                invoke_seq=start,
                complete_seq=seq,
                error=None,
                txn=None,
                start_ts=None,
                read_ts=None,
                commit_ts=None,
                epoch=None,
            )


@pytest.mark.parametrize("name", ASKED)
def test_each_example_agrees_with_every_order(name: str) -> None:
    verdicts = Counter[bool]()
    for seed in range(FIRST_SEED, FIRST_SEED + count(40)):
        history = drawn(name, Random(f"{name} {seed}"))
        model = getattr(MODELS, name)()
        expected = explained(history, model)
        judgement = judged(Told(history), model=model, of=(), limits=LIMITS)
        assert (judgement.findings == [], judgement.unknown) == (expected, {}), (seed, history)
        verdicts[expected] += 1
    print(name, dict(verdicts))
    assert verdicts[True]
    assert verdicts[False]


@pytest.mark.parametrize("name", ASKED)
def test_each_example_judges_a_history_from_python(name: str) -> None:
    for seed in range(3):
        history = drawn(name, Random(f"{name} {seed}"))
        expected = explained(history, getattr(MODELS, name)())
        report = seamark.check(history, model=getattr(MODELS, name)())
        assert {finding.anomaly for finding in report.findings} == (set() if expected else {"non-linearizable"})
        assert [row.id for row in report.promises] == ["model"]


def test_a_queue_that_hands_out_one_value_twice_is_explained() -> None:
    ops = [
        ("invoke", 0, "enqueue", 1),
        ("ok", 0, "enqueue", 1),
        ("invoke", 0, "dequeue", None),
        ("ok", 0, "dequeue", 1),
    ]
    ops += [("invoke", 1, "dequeue", None), ("ok", 1, "dequeue", 1)]
    history = [{"type": kind, "process": process, "f": f, "value": value} for kind, process, f, value in ops]
    report = seamark.check(history, model=MODELS.Queue())
    assert (report.verdict, report.exit_code) == ("invalid", 1)
    [finding] = report.findings
    assert finding.sentence.startswith("T2 dequeue: 1 (process 1, ")
    assert "the state can only be ()" in finding.sentence
    assert seamark.check(history[:4], model=MODELS.Queue()).is_pass


def test_a_lock_is_released_by_its_holder_only() -> None:
    ops = [("invoke", 0, "acquire"), ("ok", 0, "acquire"), ("invoke", 1, "release"), ("ok", 1, "release")]
    history = [{"type": kind, "process": process, "f": f, "value": None} for kind, process, f in ops]
    assert [each.anomaly for each in seamark.check(history, model=MODELS.Lock()).findings] == ["non-linearizable"]


def test_an_object_that_needs_too_long_a_search_is_unknown() -> None:
    history = drawn("Queue", Random("Queue 3"))
    judgement = judged(Told(history), model=MODELS.Queue(), of=(), limits=Limits(first=1, shared=1))
    assert judgement.unknown["non-linearizable"].startswith("search-too-long: ")
