"""Queues: each value comes out at most as often as it was put in, and in the end all values have come out.

*queue* checks for each value that came out whether it had been put in that often by then. An enqueue counts from its
invocation on, unless it failed. *total-queue* judges the whole: a value that came out without any enqueue is
unexpected, and one that was acknowledged and never came out is lost. A value that came out twice is reported, but is no
loss. A drain is a dequeue of all that it returned.

A dequeue of unclear outcome may have taken a value. So as many values may be missing as there are such dequeues, and
none of them is certainly lost. After a drain of unclear outcome any number may be missing.

Witnesses: unexpected-element and dequeued-twice, values that came out; lost-element, acknowledged enqueues.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from checkers.engine.protocol import When
from checkers.history.troubles import Trouble, judgement
from checkers.invariants.operations import Op, Token, collection, invariant, listed, shown, token
from checkers.words.anomalies import SHARED, Declared
from harness.core.columns import FAIL, INFO
from harness.core.verdict import Judgement

QUEUE: Final = "queue"
TOTAL: Final = "total-queue"
UNEXPECTED, TWICE, LOST = "unexpected-element", "dequeued-twice", "lost-element"
QUEUE_ANOMALIES: Final[Declared] = {
    UNEXPECTED: SHARED[UNEXPECTED],
    TWICE: "A value came out of a queue more often than it was put in.",
}
TOTAL_ANOMALIES: Final[Declared] = {
    UNEXPECTED: SHARED[UNEXPECTED],
    LOST: SHARED[LOST],
    TWICE: QUEUE_ANOMALIES[TWICE],
}
TAKES: Final = ("dequeue", "drain")


class Taken(NamedTuple):
    """A value that came out. Its operation ended before the operation with index `after` began."""

    value: Token
    number: int
    after: int


def judged_queue(operations: Sequence[Op]) -> Judgement:
    """The judgement of each value that came out: it must have been put in by then."""
    came_out = sorted(taken(operations), key=lambda each: (each.after, each.number))
    put_in: dict[Token, list[int]] = {}
    for op in operations:
        if op.f == "enqueue" and op.outcome != FAIL:
            put_in.setdefault(token(op.given), []).append(op.number)
    used: Counter[Token] = Counter()
    troubles = []
    for each in came_out:
        begun = put_in.get(each.value, [])
        place = used[each.value]
        used[each.value] += 1
        if place < len(begun) and begun[place] < each.after:
            continue
        troubles.append(_not_there(each, begun, place))
    witnesses = dict.fromkeys(QUEUE_ANOMALIES, len(came_out))
    return judgement(QUEUE, QUEUE_ANOMALIES, troubles, witnesses)


def _not_there(each: Taken, begun: Sequence[int], place: int) -> Trouble:
    facts, ops = (str(each.value), each.number), (each.number,)
    if not begun:
        text = f"T{each.number} took {shown(each.value)} out, which no operation had put in."
        return Trouble(UNEXPECTED, text, facts, ops)
    if place >= len(begun):
        text = f"T{each.number} took {shown(each.value)} out once more than it was put in ({len(begun)} times)."
        return Trouble(TWICE, text, facts, (begun[-1], each.number))
    text = f"T{each.number} had taken {shown(each.value)} out before T{begun[place]} began to put it in."
    return Trouble(UNEXPECTED, text, facts, (begun[place], each.number))


def judged_total_queue(operations: Sequence[Op]) -> Judgement:
    """The judgement of the whole queue: every value that was put in must come out, and no other."""
    attempts = Counter(token(op.given) for op in operations if op.f == "enqueue")
    acknowledged = [(token(op.given), op.number) for op in operations if op.f == "enqueue" and op.is_ok]
    came_out = list(taken(operations))
    counts = Counter(each.value for each in came_out)
    troubles = [*_surplus(came_out, attempts)]
    missing = _missing(acknowledged, counts)
    unclear = sum(op.f == "dequeue" and op.outcome == INFO for op in operations)
    is_open = any(op.f == "drain" and op.outcome == INFO for op in operations)
    unknown: dict[str, str] = {}
    if missing and (is_open or len(missing) <= unclear):
        who = "a drain" if is_open else f"{unclear} dequeues" if unclear > 1 else "a dequeue"
        what = f"{len(missing)} values" if len(missing) > 1 else "a value"
        unknown[LOST] = f"{what} never came out, but {who} of unclear outcome may have taken so much"
    else:
        # Each of them may have taken a value: the number of certain losses is that much smaller.
        troubles += [_lost(value, index, unclear) for value, index in missing[unclear:]]
    return judgement(
        TOTAL,
        TOTAL_ANOMALIES,
        troubles,
        {UNEXPECTED: len(came_out), TWICE: len(came_out), LOST: len(acknowledged)},
        unknown=unknown,
        facts={"missing": listed(value for value, _ in missing)} if missing else {},
    )


def taken(operations: Sequence[Op]) -> Iterator[Taken]:
    """All values that certainly came out."""
    for op in operations:
        if op.f in TAKES and op.is_ok:
            values = collection(op.value) if op.f == "drain" else [op.value]
            for value in values or ():
                if value is not None:  # Nothing came out of an empty queue.
                    yield Taken(token(value), op.number, op.after)


def _surplus(came_out: Sequence[Taken], attempts: Counter[Token]) -> Iterator[Trouble]:
    """Violations: values that came out more often than there were attempts to put them in."""
    used: Counter[Token] = Counter()
    for each in came_out:
        used[each.value] += 1
        if used[each.value] <= attempts[each.value]:
            continue
        facts, ops = (str(each.value), each.number), (each.number,)
        if attempts[each.value] == 0:
            text = f"T{each.number} took {shown(each.value)} out, which nobody tried to put in."
            yield Trouble(UNEXPECTED, text, facts, ops)
        else:
            text = f"T{each.number} took {shown(each.value)} out, the {used[each.value]}th time of "
            yield Trouble(TWICE, f"{text}{attempts[each.value]} that it was put in.", facts, ops)


def _missing(acknowledged: Sequence[tuple[Token, int]], counts: Counter[Token]) -> list[tuple[Token, int]]:
    """The acknowledged enqueues that no dequeue matches. Each dequeue matches the earliest enqueue of its value."""
    left = Counter(counts)
    missing = []
    for value, index in acknowledged:
        if left[value]:
            left[value] -= 1
        else:
            missing.append((value, index))
    return missing


def _lost(value: Token, index: int, unclear: int) -> Trouble:
    rest = f"; more is missing than the {unclear} dequeues of unclear outcome can have taken" if unclear else ""
    text = f"T{index} put {shown(value)} in with success, and it never came out{rest}."
    return Trouble(LOST, text, (str(value), index), (index,))


CHECKS: Final = (
    invariant(QUEUE, QUEUE_ANOMALIES, judged_queue),
    invariant(TOTAL, TOTAL_ANOMALIES, judged_total_queue, When.NAMED),
)
