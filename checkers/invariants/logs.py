"""Logs of messages, as in Kafka: values at offsets, lost messages, and messages that a consumer skips or repeats.

*poll-skip* and *nonmonotonic-poll* compare, between two operations of one process and in each log, the last message of
the one with the first of the other; their internal variants compare each message of an operation with the next. When a
consumer chooses other logs in between, it leaves those that it does not choose again. Only a message that is known to
be in a log can be skipped: offsets have gaps.
A poll of unclear outcome without an answer may have taken any message from its consumer's logs: then nobody knows
whether one was never polled. The order of versions is that of offsets: G0 and G1c are cycles of sends that follow each
other in a log (ww), and of sends and the polls that saw them (wr).

Witnesses: inconsistent-offsets, offsets that were reported again; duplicate-write, values that were reported again;
lost-write, messages that were certainly sent below the highest offset that was polled; G1a, polled messages of logs to
which a send failed; precommitted-read, messages polled by operations that also send; the others, pairs that were
compared; G0 and G1c, dependencies. The fact `unseen` counts messages that were acknowledged and never polled: the tail
of each log. Source: the definitions of the workload kafka in Jepsen's tests.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from checkers.engine.protocol import When
from checkers.graph.edges import OPEN_END, WR, WW, Edges
from checkers.graph.residual import residual, search
from checkers.history.troubles import Trouble, judgement
from checkers.invariants.log_acts import Logs, Message, by_key, logs_of
from checkers.invariants.operations import Op, invariant, listed, shown
from checkers.words.anomalies import Declared
from checkers.words.transactional import TRANSACTIONAL
from harness.core.columns import INFO, OK
from harness.core.verdict import Judgement
from harness.core.wording import counted

CHECKER: Final = "log"
CONFLICT, TWICE, LOST, ABORTED = "inconsistent-offsets", "duplicate-write", "lost-write", "G1a"
OWN, SKIP, BACK = "precommitted-read", "poll-skip", "nonmonotonic-poll"
INNER_SKIP, INNER_BACK = "internal-poll-skip", "internal-nonmonotonic-poll"
SEND_BACK, INNER_SEND_BACK = "nonmonotonic-send", "internal-nonmonotonic-send"
SEND_SKIP, WRITES, READS = "internal-send-skip", "G0", "G1c"
ANOMALIES: Final[Declared] = {
    CONFLICT: "One offset of a log holds two values.",
    TWICE: "One message is at two offsets of a log.",
    LOST: "A message that was certainly sent was never polled, though later ones were.",
    ABORTED: TRANSACTIONAL[ABORTED],
    OWN: "An operation polls a message that it sent itself and has not yet committed.",
    SKIP: "A consumer's next poll leaves out a message that is in the log.",
    BACK: "A consumer's next poll begins at or before the last message that it polled.",
    INNER_SKIP: "Inside one operation, polls leave out a message that is in the log.",
    INNER_BACK: "Inside one operation, a polled message is at or before the previous one.",
    SEND_BACK: "A process's next message is before its last one in the log.",
    INNER_SEND_BACK: "Inside one operation, a message is before the one that was sent first.",
    SEND_SKIP: "Another message is between two messages of one operation.",
    WRITES: TRANSACTIONAL[WRITES],
    READS: TRANSACTIONAL[READS],
}
# Few systems promise more: a log mixes messages of several senders, and two logs have no common order.
PROMISED: Final = (CONFLICT, TWICE, LOST, ABORTED, OWN, INNER_SKIP, INNER_BACK, SEND_BACK, INNER_SEND_BACK)
IN_ORDER: Final = (*PROMISED, SKIP, BACK)  # Promised to consumers that assign their logs: no rebalance takes one away.


def judged(operations: Sequence[Op]) -> Judgement:
    """The judgement of all sends and polls."""
    logs = logs_of(operations)
    witnesses: Counter[str] = Counter(dict.fromkeys(ANOMALIES, 0))
    troubles = [
        *_offsets(logs, witnesses),
        *_lost(logs, witnesses),
        *_strange(logs, witnesses),
        *_inside(logs, witnesses),
        *_across(logs, witnesses),
        *_cycles(logs, witnesses),
    ]
    unseen = sum((each.key, each.value) not in logs.polled for each in logs.committed)
    unclear = sum(act.outcome == INFO and act.is_unanswered for act in logs.acts)
    sure = [trouble for trouble in troubles if not unclear or trouble.anomaly != LOST]
    unknown = {}
    if missed := len(troubles) - len(sure):
        unknown[LOST] = f"{counted(missed, 'message')} nobody polled, unless a poll without an answer did ({unclear})"
    return judgement(CHECKER, ANOMALIES, sure, witnesses, unknown=unknown, facts={"unseen": unseen})


def _offsets(logs: Logs, witnesses: Counter[str]) -> Iterator[Trouble]:
    """Violations of one value at each offset, and one offset for each value."""
    every = [*logs.committed, *(each for act in logs.acts for each in act.polled)]
    placed = [each for each in every if each.offset is not None]
    witnesses[CONFLICT] += len(placed) - len({(each.key, each.offset) for each in placed})
    witnesses[TWICE] += len(placed) - len({(each.key, each.value) for each in placed})
    who: dict[tuple[str, object], Message] = {}
    for each in placed:
        who.setdefault((each.key, each.offset), each)
    for key, found in logs.at.items():
        for offset, values in found.items():
            if len(values) > 1:
                text = f"Offset {offset} of {key} holds {listed(values)}: {len(values)} values."
                yield Trouble(CONFLICT, text, (key, offset), (who[key, offset].op,))
    for (key, value), offsets in logs.offsets.items():
        if len(offsets) > 1:
            text = f"{shown(value)} stands in {key} {len(offsets)} times, at offsets {listed(offsets)}."
            yield Trouble(TWICE, text, (key, str(value)), (who[key, offsets[0]].op,))


def _lost(logs: Logs, witnesses: Counter[str]) -> Iterator[Trouble]:
    """Violations: sent messages that were never polled, though a higher offset was."""
    highest: dict[str, Message] = {}
    for act in logs.acts:
        for each in act.polled:
            top = highest.get(each.key)
            if each.offset is not None and (top is None or top.offset is None or each.offset > top.offset):
                highest[each.key] = each
    for each in logs.committed:
        top = highest.get(each.key)
        if top is None or top.offset is None or each.offset is None or each.offset > top.offset:
            continue
        witnesses[LOST] += 1
        if (each.key, each.value) not in logs.polled:
            text = (
                f"T{each.op} sent {shown(each.value)} to {each.key}, at offset {each.offset}, and nobody ever polled "
                f"it, though T{top.op} polled offset {top.offset}."
            )
            yield Trouble(LOST, text, (each.key, str(each.value)), (each.op, top.op))


def _strange(logs: Logs, witnesses: Counter[str]) -> Iterator[Trouble]:
    """Violations: polled messages whose send failed, or that the polling operation itself had not yet committed."""
    refused = {key for key, _ in logs.failed}
    for act in logs.acts:
        if act.outcome != OK:
            continue
        own = {(each.key, each.value) for each in act.sent}
        for each in act.polled:
            name = (each.key, each.value)
            witnesses[ABORTED] += each.key in refused
            witnesses[OWN] += bool(own)
            what = f"T{act.op} polled {shown(each.value)} from {each.key}"
            if name in logs.failed:
                writer = logs.failed[name]
                text = f"{what}, but T{writer}, which sent it, certainly failed."
                yield Trouble(ABORTED, text, (each.key, str(each.value), act.op), (writer, act.op))
            elif name in own:
                text = f"{what}, which it had sent itself and not yet committed."
                yield Trouble(OWN, text, (each.key, str(each.value), act.op), (act.op,))


def _inside(logs: Logs, witnesses: Counter[str]) -> Iterator[Trouble]:
    """Skips and reversals within one operation: each message that it polls or sends in a log must be the next one."""
    committed = {each.op for each in logs.committed}
    for act in logs.acts:
        if act.outcome == OK:
            for messages in by_key(act.polled).values():
                for one, other in pairwise(messages):
                    yield from _compared(logs, witnesses, one, other, INNER_SKIP, INNER_BACK)
        if act.op in committed:
            for messages in by_key(act.sent).values():
                for one, other in pairwise(messages):
                    yield from _compared(logs, witnesses, one, other, SEND_SKIP, INNER_SEND_BACK)


def _across(logs: Logs, witnesses: Counter[str]) -> Iterator[Trouble]:
    """Skips and reversals between operations of one process: each must continue a log where the one before ended.

    A poll that failed has not advanced the consumer; one of unclear outcome may have. A message sent with an unclear
    outcome may have reached its log at any later time.
    """
    last: dict[tuple[int, bool], dict[str, Message]] = {}
    for act in logs.acts:
        polls, sends = (last.setdefault((act.process, is_send), {}) for is_send in (False, True))
        if act.chosen is not None:
            for left in (polls, sends):
                for key in [key for key in left if key not in act.chosen]:
                    del left[key]
        elif act.outcome == INFO and act.is_poll:
            polls.clear()
        if act.outcome == OK:
            yield from _followed(logs, witnesses, act.polled, polls, (SKIP, BACK))
            yield from _followed(logs, witnesses, act.sent, sends, (None, SEND_BACK))


def _followed(
    logs: Logs,
    witnesses: Counter[str],
    messages: Sequence[Message],
    last: dict[str, Message],
    names: tuple[str | None, str],
) -> Iterator[Trouble]:
    """Violations of an operation's messages against the `last` ones of its process in each log. Updates `last`."""
    for key, found in by_key(messages).items():
        if key in last:
            yield from _compared(logs, witnesses, last[key], found[0], *names)
        last[key] = found[-1]


def _compared(
    logs: Logs, witnesses: Counter[str], one: Message, other: Message, skip: str | None, back: str
) -> Iterator[Trouble]:
    """A violation if `other` is not the next message of the log after `one`, as far as their places are known."""
    low, high = logs.place(one), logs.place(other)
    if low is None or high is None:
        return
    witnesses[back] += 1
    ops = tuple(dict.fromkeys((one.op, other.op)))
    verb = "sent" if back in {SEND_BACK, INNER_SEND_BACK} else "polled"
    then = "and then" if one.op == other.op else f"and then T{other.op}, of the same process,"
    text = f"T{one.op} {verb} {shown(one.value)}, {then} {shown(other.value)} of {one.key}"
    facts = (one.key, str(one.value), str(other.value), *ops)
    if skip is not None:
        witnesses[skip] += 1
    if high <= low:
        yield Trouble(back, f"{text}, which does not stand behind it.", facts, ops)
    elif skip is not None and high > low + 1:
        missed = listed(logs.between(one.key, low, high))
        yield Trouble(skip, f"{text}, but between them stands {missed}.", facts, ops)


def _cycles(logs: Logs, witnesses: Counter[str]) -> Iterator[Trouble]:
    """Cycles of operations whose messages follow each other in a log, or that poll each other's messages."""
    writer = {(each.key, each.value): each.op for each in logs.committed}
    steps: dict[tuple[int, int], int] = {}
    for key, found in logs.at.items():
        order = [writer.get((key, values[0])) for values in found.values() if len(values) == 1]
        for one, other in pairwise(op for op in order if op is not None):
            if one != other:
                steps[one, other] = steps.get((one, other), 0) | WW
    for act in logs.acts:
        for each in act.polled if act.outcome == OK else ():
            source = writer.get((each.key, each.value))
            if source is not None and source != act.op:
                steps[source, act.op] = steps.get((source, act.op), 0) | WR
    witnesses[WRITES] += sum(bool(kinds & WW) for kinds in steps.values())
    witnesses[READS] += len(steps)
    if not steps:
        return
    nobody = np.empty(0, np.int64)
    sources, targets = (np.array(column, np.int32) for column in zip(*steps, strict=True))
    never = np.full(len(sources), OPEN_END, np.int32)  # Cycles that only real time closes do not count.
    edges = Edges(sources, targets, never, never, np.array(list(steps.values()), np.int8))
    for named in search(residual(edges, op=nobody, process=nobody)).named:
        ops = named.example.ops
        ring = ", ".join(
            f"T{op} {'is followed by' if kind == WW else 'is seen by'} T{after}"
            for op, after, kind in zip(ops, (*ops[1:], ops[0]), named.example.kinds, strict=True)
        )
        yield Trouble(named.anomaly, f"Sends and polls form a cycle: {ring}.", (named.anomaly, *ops), ops)


CHECKS: Final = (invariant(CHECKER, ANOMALIES, judged, When.NAMED),)
