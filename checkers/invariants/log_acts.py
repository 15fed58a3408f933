"""Messages sent to logs and polled from them, and the value at each offset.

A log is a Kafka partition: each sent message gets an offset in it, and a consumer polls messages in the order of
offsets. An operation is a list of steps: [send key value], answered as [send key [offset value]], and [poll], answered
as [poll {key: [[offset value] ...]}]. `subscribe` and `assign` set the logs from which a consumer polls from then on.
The value at an offset is known from sends that certainly happened, and from polls of any outcome: whatever became of
the transaction around a poll, the message was there. Only messages whose send certainly failed have no offset: polling
one is wrong, and skipping one is right.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from checkers.invariants.operations import Op, Token, collection, pairs, token
from harness.core.columns import FAIL, INFO, OK
from harness.core.record import Json

SEND, POLL = ("send", ":send"), ("poll", ":poll")
CHOICES = ("assign", "subscribe")


class Message(Struct, frozen=True):
    """A sent or polled message. `offset` is None if it is not known."""

    op: int
    key: str
    value: Token
    offset: int | None


class Act(Struct, frozen=True):
    """One operation: the messages that it sent and polled, in order; or the logs that its consumer chose."""

    op: int
    process: int
    outcome: int
    sent: tuple[Message, ...] = ()
    polled: tuple[Message, ...] = ()
    is_poll: bool = False  # True if it polled, even if it got nothing.
    is_unanswered: bool = False  # True if nobody knows what it polled.
    chosen: frozenset[str] | None = None


class Logs(Struct, frozen=True):
    """All acts, and the contents of the logs that follow from them."""

    acts: tuple[Act, ...]
    committed: tuple[Message, ...]  # Certainly sent. An unclear operation is certain if one of its values was polled.
    failed: Mapping[tuple[str, Token], int]  # The operations that certainly failed to send a value.
    at: Mapping[str, Mapping[int, tuple[Token, ...]]]  # By key and offset, ascending: the values seen there.
    offsets: Mapping[tuple[str, Token], tuple[int, ...]]  # By key and value: the offsets where it was seen, ascending.
    polled: frozenset[tuple[str, Token]]
    ranks: Mapping[str, Mapping[int, int]]  # By key and offset: the offset's rank among the occupied ones.

    def place(self, message: Message) -> int | None:
        """The rank of the message's offset among the occupied offsets of its log; None if the offset is not known."""
        known = self.offsets.get((message.key, message.value), ())
        offset = message.offset if message.offset is not None else known[0] if len(known) == 1 else None
        return None if offset is None else self.ranks.get(message.key, {}).get(offset)

    def between(self, key: str, low: int, high: int) -> list[Token]:
        """The values at the ranks between those two, both excluded."""
        return [values[0] for values in islice(self.at[key].values(), low + 1, high)]


def logs_of(operations: Sequence[Op]) -> Logs:
    """The logs that follow from these operations. O(steps), and for each log a sort of its offsets."""
    acts = tuple(act for op in operations if (act := _act(op)) is not None)
    proof = {(each.key, each.value) for act in acts if act.outcome == OK for each in act.polled}
    committed = tuple(
        each
        for act in acts
        if act.outcome == OK or (act.outcome == INFO and any((m.key, m.value) in proof for m in act.sent))
        for each in act.sent
    )
    happened = {(each.key, each.value) for act in acts if act.outcome != FAIL for each in act.sent}
    failures = [(act.op, each) for act in acts if act.outcome == FAIL for each in act.sent]
    failed = {(m.key, m.value): op for op, m in failures if (m.key, m.value) not in happened}
    seen = (each for act in acts for each in act.polled if (each.key, each.value) not in failed)
    at: dict[str, dict[int, dict[Token, None]]] = {}
    offsets: dict[tuple[str, Token], set[int]] = {}
    for each in (*committed, *seen):
        if each.offset is not None:
            at.setdefault(each.key, {}).setdefault(each.offset, {})[each.value] = None
            offsets.setdefault((each.key, each.value), set()).add(each.offset)
    ordered = {key: {offset: tuple(found[offset]) for offset in sorted(found)} for key, found in at.items()}
    return Logs(
        acts=acts,
        committed=committed,
        failed=failed,
        at=ordered,
        offsets={message: tuple(sorted(found)) for message, found in offsets.items()},
        polled=frozenset((each.key, each.value) for act in acts for each in act.polled),
        ranks={key: {offset: rank for rank, offset in enumerate(found)} for key, found in ordered.items()},
    )


def _act(op: Op) -> Act | None:
    """The sends and polls of an operation, or its choice of logs; None for other operations."""
    if op.f.removeprefix(":") in CHOICES:
        return Act(op.number, op.process, op.outcome, chosen=frozenset(map(_name, collection(op.given) or ())))
    steps = collection(op.argument if op.value is None else op.value)
    if not steps or not is_steps(steps):
        return None
    argument = collection(op.argument) or []
    sent: list[Message] = []
    polled: list[Message] = []
    for place, step in enumerate(steps):
        if not isinstance(step, list):
            continue
        if step[0] in SEND:
            before = argument[place] if place < len(argument) else None
            sent.append(_sent(op.number, step, before))
        elif len(step) > 1:
            polled += _polled(op.number, step[1])
    is_poll = len(sent) < len(steps)
    is_unanswered = any(isinstance(step, list) and step[0] in POLL and len(step) == 1 for step in steps)
    return Act(op.number, op.process, op.outcome, tuple(sent), tuple(polled), is_poll, is_unanswered)


def is_steps(value: Json) -> bool:
    """True if it is a list of sends and polls."""
    steps = collection(value) or []
    heads = [step[0] if isinstance(step, list) and step else None for step in steps]
    is_whole = [
        isinstance(step, list) and (len(step) == 3 or head in POLL) for step, head in zip(steps, heads, strict=True)
    ]
    return bool(steps) and all(is_whole) and all(head in {*SEND, *POLL} for head in heads if isinstance(head, str))


def _sent(op: int, step: Sequence[Json], argument: Json) -> Message:
    """A sent message. Its offset is known if the answer has one before the value."""
    value, offset = step[2], None
    is_same = isinstance(argument, list) and len(argument) == 3 and argument[2] == value
    if isinstance(value, list) and len(value) == 2 and not is_same:
        offset, value = value
    return Message(op, _name(step[1]), token(value), offset if type(offset) is int else None)


def _polled(op: int, answer: Json) -> Iterator[Message]:
    for key, messages in pairs(answer) or ():
        for each in collection(messages) or ():
            if isinstance(each, list) and len(each) == 2:
                offset, value = each
                yield Message(op, _name(key), token(value), offset if type(offset) is int else None)


def _name(key: Json) -> str:
    """The name of a log. JSON makes every name in a poll's answer a text, so names in sends become texts, too."""
    return key.removeprefix(":") if isinstance(key, str) else str(token(key))


def by_key(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """Messages by log, in their order."""
    found: dict[str, list[Message]] = {}
    for each in messages:
        found.setdefault(each.key, []).append(each)
    return found
