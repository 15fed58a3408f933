"""The check of logs agrees with its definitions on random histories of small logs, right and damaged.

SEAMARK_FUZZ_COUNT says how many histories; the default is what `make test` has time for.
"""

from collections import Counter
from dataclasses import replace
from random import Random

from checkers.invariants import logs
from checkers.invariants.operations import Op
from harness.core.columns import FAIL, INFO, OK
from harness.core.record import Json
from tests.amount import FIRST_SEED, count
from tests.oracles.logs import Message, Step, World

COUNT = count(350)
SEEDS = range(FIRST_SEED, FIRST_SEED + COUNT)
LOGS = ("x", "y")
PROCESSES = 3
CYCLES = ("G0", "G1c")


def history(draw: Random) -> list[Step]:
    """Operations one after the other, all of which do as they should: every consumer polls on where it was."""
    held: dict[str, list[Message]] = {log: [] for log in LOGS}
    at: dict[tuple[int, str], int] = {}
    result: list[Step] = []
    for op in range(draw.randint(3, 9)):
        process, outcome = draw.randrange(PROCESSES), draw.choices((OK, FAIL, INFO), (8, 1, 1))[0]
        if not draw.randrange(8):
            chosen = frozenset(draw.sample(LOGS, draw.randint(1, 2)))
            result.append(Step(op, process, outcome, chosen=chosen))
            continue
        sent, polled = [], []
        for place in range(draw.randint(0, 2)):
            log = draw.choice(LOGS)
            offset = (held[log][-1].offset or 0) + draw.randint(1, 2) if held[log] else 0
            message = Message(log, 10 * op + place, offset)
            held[log] += [message] if outcome != FAIL else []
            is_told = outcome == OK and draw.randrange(6)
            sent.append(message if is_told else replace(message, offset=None))
        own = {m.value for m in sent}
        for log in draw.sample(LOGS, draw.randint(0, 2)):
            ahead = [m for m in held[log][at.get((process, log), 0) :] if m.value not in own]
            found = ahead[: draw.randint(0, 3)]
            polled += found
            at[process, log] = at.get((process, log), 0) + (len(found) if outcome == OK else 0)
        is_poll = bool(polled) or not sent
        result.append(Step(op, process, outcome, tuple(sent), tuple(polled), is_poll))
    return result


def damaged(draw: Random, steps: list[Step]) -> list[Step]:
    """With some messages gone, come twice, in another order, elsewhere, or polled by another; or another outcome."""
    result = list(steps)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(result))
        step, other = result[place], draw.choice(result)
        polled, sent = list(step.polled), list(step.sent)
        match draw.randrange(8):
            case 0 if polled:
                del polled[draw.randrange(len(polled))]
            case 1 if polled:
                draw.shuffle(polled)
            case 2 if polled:
                polled.insert(draw.randrange(len(polled)), draw.choice(polled))
            case 3 if sent:
                sent[-1] = replace(sent[-1], offset=draw.randrange(6))
            case 4 if polled:
                polled[0] = replace(polled[0], offset=draw.choice((None, *range(6))))
            case 5 if step.chosen is None:
                polled += [m for m in (*other.sent, *other.polled) if draw.randrange(2)]
            case 6 if step.chosen is None:
                step = replace(step, outcome=draw.choice((OK, FAIL, INFO)))
            case 7:
                step = replace(step, process=draw.randrange(PROCESSES))
        is_poll = step.chosen is None and (bool(polled) or not sent)
        polled = polled if step.chosen is None else []
        result[place] = replace(step, sent=tuple(sent), polled=tuple(polled), is_poll=is_poll)
    return result


def operation(step: Step) -> Op:
    """The operation as a history tells it."""
    if step.chosen is not None:
        return Op(step.op, step.process, step.outcome, step.op + 1, "assign", None, [*sorted(step.chosen)])
    said: list[Json] = [["send", m.key, m.value if m.offset is None else [m.offset, m.value]] for m in step.sent]
    if step.is_poll:
        # What stands in two answers of one operation is one run of messages to the check.
        said += [["poll", {m.key: [[m.offset, m.value]]}] for m in step.polled] or [["poll", {}]]
    return Op(step.op, step.process, step.outcome, step.op + 1, "txn", None, said)


def counted(steps: list[Step]) -> tuple[dict[str, int], int]:
    judgement = logs.judged([operation(step) for step in steps])
    assert all(judgement.witnesses[finding.anomaly] > 0 for finding in judgement.findings)
    found = {finding.anomaly: finding.count for finding in judgement.findings}
    unseen = judgement.facts["unseen"]
    assert isinstance(unseen, int)
    return found | {name: 1 for name in CYCLES if name in found}, unseen


def test_damaged_logs_are_wrong_as_often_as_their_definition_says() -> None:
    wrong: Counter[str] = Counter()
    for seed in SEEDS:
        draw = Random(seed)
        steps = damaged(draw, history(draw))
        world = World(steps)
        expected = world.judge()
        assert counted(steps) == (expected, world.unseen()), f"seed {seed}"
        wrong.update(expected)
    assert [name for name in logs.ANOMALIES if wrong[name] < COUNT // 200] == []


def test_a_log_that_is_polled_in_its_order_is_not_accused() -> None:
    for seed in SEEDS:
        steps = history(Random(seed))
        found, _ = counted(steps)
        # A consumer that comes back to a log goes on where it was; whoever sends may find another's message between.
        assert not found.keys() & set(logs.PROMISED), f"seed {seed}: {found}"
