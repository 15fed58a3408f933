"""Two consumers of a log of two partitions, each behind by an amount of its own; some writes have unclear outcomes.

One in two logs is damaged: a row or a watermark is lost, doubled, moved or changed.
"""

from dataclasses import replace

from harness.core.columns import FAIL, INFO, KINDS, NEVER, OK, OPEN, ROW
from harness.core.draw import Draw, Stream
from harness.core.promises import StreamContract
from tests.worlds.streams.language import Event, Write

KEYS = 4
_WATERMARK = KINDS.index("watermark")


def contract_of(seed: int) -> StreamContract:
    """A contract under which such consumers read."""
    draw = Draw(seed).stream("contract")
    return StreamContract(
        closed=draw.choice(["<", "<="]),
        cut="position",
        position="offset",
        order_key=draw.choice(["partition", "key"]),
        delivery=draw.choice(["exactly-once", "at-least-once"]),
        replay=draw.choice(["resume", "session"]),
        atomic_unit="none",
        unit_rows="final",
        identity="position+key",
        wm_scope=draw.choice(["partition", "session", "subscriber"]),
        is_position_global=False,
    )


def consumed(seed: int) -> tuple[list[Event], list[Write]]:
    """What the consumers received, and the writes, placed as their rows show it."""
    draw = Draw(seed).stream("consumers")
    writes = [_write(draw, op) for op in range(draw.between(3, 10))]
    logs: dict[int, list[Write]] = {span: [] for span in (0, 1)}
    for write in writes:
        if write.outcome == OK or (write.outcome == INFO and draw.chance(1, 2)):
            logs[write.span].append(write)
    closed = contract_of(seed).closed
    queues = [_read(draw, subscriber, span, log, closed) for subscriber in (1, 2) for span, log in logs.items()]
    events = [
        Event(subscriber=each, session=1, kind=OPEN, span=span, position=-1) for each in (1, 2) for span in (0, 1)
    ]
    while queues := [queue for queue in queues if queue]:
        events.append(draw.choice(queues).pop(0))  # Each is behind the others by what is left in its queue.
    events = _damaged(draw, events) if draw.chance(1, 2) else events
    return events, [_placed(write, events) for write in writes]


def _write(draw: Stream, op: int) -> Write:
    key = draw.below(KEYS)
    outcome = draw.choice([OK, OK, OK, INFO, FAIL])
    return Write(op=op, outcome=outcome, key=key, value=100 + op, position=op, ordinal=0, span=key % 2)


def _read(draw: Stream, subscriber: int, span: int, log: list[Write], closed: str) -> list[Event]:
    """One partition's events for one consumer, who may not have come to the end."""
    result = []
    for write in log[: draw.between(len(log) - 1, len(log)) if log else 0]:
        row = Event(subscriber=subscriber, session=1, kind=ROW, span=span, key=write.key, value=write.value)
        result.append(replace(row, position=write.position, ordinal=0))
        if draw.chance(1, 2):
            mark = write.position + (closed == "<")
            result.append(Event(subscriber=subscriber, session=1, kind=_WATERMARK, span=span, position=mark))
    return result


def _damaged(draw: Stream, events: list[Event]) -> list[Event]:
    place = draw.below(len(events))
    event, rest = events[place], events[:place] + events[place + 1 :]
    if event.kind == OPEN:
        return events
    target = draw.between(4, len(rest)) if len(rest) > 4 else len(rest)
    match draw.below(5):
        case 0:
            return rest
        case 1:
            return [*events[: target + 1], event, *events[target + 1 :]]
        case 2:
            return [*rest[:target], event, *rest[target:]]
        case 3 if event.kind == ROW:
            return [*events[:place], replace(event, value=100 + draw.below(12)), *events[place + 1 :]]
        case _:
            return [*events[:place], replace(event, position=event.position + 2), *events[place + 1 :]]


def _placed(write: Write, events: list[Event]) -> Write:
    """The write with what is known of it: an unclear one has the position of its rows, a key the partition of its."""
    rows = [event for event in events if event.kind == ROW and event.key == write.key]
    spans = {row.span for row in rows}
    span = spans.pop() if len(spans) == 1 else -1
    shown = [row.position for row in rows if row.value == write.value]
    position = write.position if write.outcome == OK else min(shown, default=NEVER) if write.outcome == INFO else NEVER
    return replace(write, span=span, position=position)
