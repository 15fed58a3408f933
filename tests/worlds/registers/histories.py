"""Small random histories of one register: operations that take effect at a moment of theirs, then what may go wrong."""

import json
from random import Random

from checkers.linearizability.deeds import RegisterOp
from harness.core.columns import FAIL, INFO, NEVER, OK
from harness.core.record import Complete, Evidence, Invoke, Json
from tests.oracles.linearizability import IMPOSSIBLE, apply

KINDS = {
    "register": ("read", "read", "write"),
    "cas-register": ("read", "read", "write", "cas", "cas"),
    "mutex": ("acquire", "release"),
    "key-value": ("get", "get", "put", "append"),
}
INITIAL: dict[str, object] = {"register": 0, "cas-register": 0, "mutex": "free", "key-value": ""}


def correct(
    draw: Random, model: str, *, count: int = 7, processes: int = 4, is_unique: bool = False
) -> list[RegisterOp]:
    """A linearizable history. What is unclear takes effect somewhere behind its invocation, or never."""
    state = INITIAL[model]
    deeds = []
    for number, (call, end, moment) in enumerate(sorted(_intervals(draw, count, processes), key=lambda each: each[2])):
        f = draw.choice(KINDS[model])
        asked = _asked(draw, f, number + 1 if is_unique else draw.randrange(3))
        deed = RegisterOp(call, end, call, 0, OK, f, json.dumps(asked), "null", call, end)
        outcome = draw.choices((OK, FAIL, INFO), (7, 1, 2))[0]
        after = apply(state, deed._replace(result=json.dumps(state)))
        if outcome == OK and after is IMPOSSIBLE:
            outcome = FAIL
        if outcome == OK:
            deed = deed._replace(result=json.dumps(state) if f in {"read", "get"} else "null")
        if outcome != FAIL and after is not IMPOSSIBLE and (outcome == OK or draw.random() < 0.5):
            state = after
        is_open = outcome != OK
        deeds.append(deed._replace(outcome=outcome, end=NEVER if is_open else end, end_ns=NEVER if is_open else end))
        assert call < moment
    return sorted(deeds)


def spoiled(draw: Random, deeds: list[RegisterOp]) -> list[RegisterOp]:
    """The same history with some answers changed: another value, a failure where something happened, or the reverse."""
    result = []
    for deed in deeds:
        if draw.random() < 0.5:
            if deed.f in {"read", "get"} and deed.outcome == OK:
                values = [other.result for other in deeds if other.f == deed.f and other.outcome == OK]
                values += [json.dumps(number) for number in range(4)] if deed.f == "read" else []
                deed = deed._replace(result=draw.choice(values))  # noqa: PLW2901
            elif deed.f not in {"read", "get"}:
                end = deed.call + 1 if deed.end == NEVER else deed.end
                deed = draw.choice(  # noqa: PLW2901
                    (deed._replace(outcome=FAIL, end=NEVER), deed._replace(outcome=OK, end=end, end_ns=end))
                )
        result.append(deed)
    return result


def records(lives: dict[Json, list[RegisterOp]]) -> list[Evidence]:
    """The same operations as a run records them, in order; those of one key follow those of another."""
    evidence: list[Evidence] = []
    index = 0
    for key, deeds in lives.items():
        events = sorted(
            [(deed.call, "call", deed) for deed in deeds]
            + [(deed.end, "end", deed) for deed in deeds if deed.end != NEVER]
        )
        numbers: dict[int, int] = {}
        for _, what, deed in events:
            if what == "call":
                numbers[deed.op] = index
                evidence.append(Invoke(index, 0, 0, index, deed.f, [key, json.loads(deed.argument)]))
                index += 1
            else:
                value = deed.result if deed.f in {"read", "get"} else deed.argument
                evidence.append(Complete(numbers[deed.op], 0, "ok", [key, json.loads(value)]))
        failed = [deed for deed in deeds if deed.outcome == FAIL]
        evidence += [Complete(numbers[deed.op], 0, "fail", [key, json.loads(deed.argument)]) for deed in failed]
    return evidence


def _asked(draw: Random, f: str, value: int) -> Json:
    match f:
        case "write":
            return value
        case "cas":
            return [draw.randrange(3), draw.randrange(3)]
        case "put" | "append":
            return f"{value}."
        case _:
            return None


def _intervals(draw: Random, count: int, processes: int) -> list[tuple[int, int, int]]:
    """For each operation: its call, its end, and the moment between at which it takes effect. All places differ."""
    free = [0.0] * processes
    marks: list[tuple[float, int, int]] = []
    for number in range(count):
        process = draw.randrange(processes)
        call = free[process] + draw.random()
        end = call + draw.expovariate(0.5) + 0.01
        free[process] = end
        marks += [(call, number, 0), (draw.uniform(call, end), number, 1), (end, number, 2)]
    places: dict[tuple[int, int], int] = {}
    for place, (_, number, which) in enumerate(sorted(marks)):
        places[number, which] = 2 * place
    return [(places[number, 0], places[number, 2], places[number, 1]) for number in range(count)]
