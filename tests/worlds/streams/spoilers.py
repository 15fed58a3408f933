"""What goes wrong in a stream, done to a correct world on purpose; and worlds as the checks take them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from harness.core.columns import FAIL, INFO, KINDS, NEVER, OK, ROW, WATERMARK, Deliveries, SourceWrites
from harness.core.draw import Draw, Stream
from harness.core.record import Complete, Evidence, Invoke, MicroOp, Outcome, StreamEvent
from tests.oracles.watermark_source import Transaction, World
from tests.worlds.streams.language import Event, deliveries_of, source_of

OUTCOMES: dict[int, Outcome] = {OK: "ok", FAIL: "fail", INFO: "info"}
Timed = list[tuple[int, Event]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoiled:
    """A world with one fault in the stream of its first subscriber, and what it is, in words."""

    world: World
    did: str


def torn(world: World, seed: int) -> Spoiled | None:
    """Of a transaction that wrote two keys or more, one row comes only after a watermark; keys keep their order."""
    choices = [each for each in _choices(world, _part_of_unit) if not _is_overtaken(world, *each)]
    return _moved(world, Draw(seed).stream("torn"), choices, "torn")


def late(world: World, seed: int) -> Spoiled | None:
    """One row comes after a watermark that closed it, and perhaps after newer ones of its key."""
    return _moved(world, Draw(seed).stream("late"), _choices(world, _one_row), "late")


def whole_late(world: World, seed: int) -> Spoiled | None:
    """All rows of one transaction come after a watermark that closed it, and perhaps after newer ones."""
    return _moved(world, Draw(seed).stream("whole"), _choices(world, _whole_unit), "whole transaction late")


def missing(world: World, seed: int) -> Spoiled | None:
    """One row never comes, although watermarks that closed it were sent."""
    draw = Draw(seed).stream("missing")
    choices = _choices(world, _one_row)
    if not choices:
        return None
    rows, mark = choices[draw.below(len(choices))]
    kept = [each for t, each in enumerate(zip(world.received, world.log, strict=True)) if t not in rows]
    return Spoiled(world=_with_log(world, kept), did=f"missing: {_words(world, rows)}; watermark {mark} closed it")


def split(world: World, seed: int) -> Spoiled | None:
    """Two subscribers had a watermark of one position: the first before one of its rows came; keys keep their order."""
    theirs = {e.position for e in world.log if e.kind == WATERMARK and e.subscriber == 2}
    choices = [(rows, m) for rows, m in _choices(world, _one_row) if world.log[m].position in theirs]
    choices = [each for each in choices if not _is_overtaken(world, *each)]
    return _moved(world, Draw(seed).stream("split"), choices, "split view")


SPOILERS: dict[str, Callable[[World, int], Spoiled | None]] = {
    "torn": torn,
    "late": late,
    "missing": missing,
    "whole late": whole_late,
    "split": split,
}

Choose = Callable[[World, list[int]], list[list[int]]]


def _part_of_unit(world: World, rows: list[int]) -> list[list[int]]:
    """Each row of a transaction of which some row of another key stays."""
    return [
        [t] for t in rows if any(_op(world, t) == _op(world, o) and world.log[o].key != world.log[t].key for o in rows)
    ]


def _one_row(world: World, rows: list[int]) -> list[list[int]]:
    return [[t] for t in rows]


def _whole_unit(world: World, rows: list[int]) -> list[list[int]]:
    ops = sorted({_op(world, t) for t in rows})
    return [[t for t in rows if _op(world, t) == op] for op in ops]


def _op(world: World, time: int) -> int:
    """The operation whose row that is: the only one at its position, or the one that wrote the value."""
    row = world.log[time]
    fits = [w for w in world.writes if w.key == row.key and w.position == row.position and w.value == row.value]
    return fits[0].op if fits else -1


def _choices(world: World, choose: Choose) -> list[tuple[list[int], int]]:
    """Rows of the first subscriber that a watermark contains newly, with it: those that came once, and before it."""
    result = []
    mine = [t for t, e in enumerate(world.log) if e.subscriber == 1]
    marks = [t for t in mine if world.log[t].kind == WATERMARK]
    came = [(world.log[t].key, world.log[t].position, world.log[t].ordinal) for t in mine]
    before = 0
    for m in marks:
        closed = [
            t
            for t in mine
            if t < m
            and world.log[t].kind == ROW
            and came.count((world.log[t].key, world.log[t].position, world.log[t].ordinal)) == 1
            and world.log[t].session == world.log[m].session
            and world.log[m].span in (-1, world.log[t].span)
            and _closes(world, world.log[m].position, world.log[t].position)
        ]
        new = [t for t in closed if t > before or world.contract.cut == "position"]
        result += [(rows, m) for rows in choose(world, new)]
        before = m
    return result


def _is_overtaken(world: World, rows: list[int], mark: int) -> bool:
    """Would a newer row of one of the keys come before these, if they came behind the watermark?"""
    later = [t for t in range(mark) if t not in rows and world.log[t].kind == ROW and world.log[t].subscriber == 1]
    return any(world.log[t].key == world.log[row].key and t > row for row in rows for t in later)


def _closes(world: World, watermark: int, position: int) -> bool:
    return position < watermark or (position == watermark and world.contract.closed == "<=")


def _moved(world: World, draw: Stream, choices: list[tuple[list[int], int]], name: str) -> Spoiled | None:
    """The world in which some rows come behind a watermark instead of before it."""
    if not choices:
        return None
    rows, mark = choices[draw.below(len(choices))]
    timed = list(zip(world.received, world.log, strict=True))
    time, _ = timed[mark]
    moved = [(time, timed[t][1]) for t in rows]
    rest = [each for t, each in enumerate(timed) if t not in rows and t <= mark]
    changed = [*rest, *moved, *timed[mark + 1 :]]
    return Spoiled(world=_with_log(world, changed), did=f"{name}: {_words(world, rows)} after watermark {mark}")


def _words(world: World, rows: list[int]) -> str:
    return ", ".join(f"row {t} (key {world.log[t].key} at {world.log[t].position})" for t in rows)


def _with_log(world: World, timed: Timed) -> World:
    return replace(world, log=tuple(event for _, event in timed), received=tuple(time for time, _ in timed))


# As the checks take it


def columns_of(world: World) -> tuple[Deliveries, SourceWrites]:
    """The columns of a world; `seq` of events and operations are places in `journal`, times those of the world."""
    places = {(kind, n): place for place, (_, kind, n) in enumerate(_moments(world))}
    events, writes = deliveries_of(list(world.log)), source_of(list(world.writes))
    seq = np.array([places[EVENT, t] for t in range(len(world.log))], np.int64)
    invoked = np.array([places[INVOKE, w.op] for w in world.writes], np.int64)
    completed = np.array([places.get((COMPLETE, w.op), NEVER) for w in world.writes], np.int64)
    return (
        structs.replace(events, seq=seq, ns=np.array(world.received, np.int64)),
        structs.replace(writes, invoke_seq=invoked, complete_seq=completed),
    )


def journal(world: World) -> list[Evidence]:
    """The world as a run would have recorded it: registers are read and written; no answer came of what is unclear."""
    numbers: dict[tuple[int, int], int] = {}
    result: list[Evidence] = []
    for time, kind, n in _moments(world):
        if kind == EVENT:
            event = world.log[n]
            whose = (event.subscriber, event.session)
            numbers[whose] = numbers.get(whose, -1) + 1
            result.append(_event(event, time, numbers[whose]))
        else:
            result.append(_invoke(world, n) if kind == INVOKE else _complete(world, n))
    return result


INVOKE, COMPLETE, EVENT = range(3)  # In this order at one time: so no watermark seems to be before an operation.


def _moments(world: World) -> list[tuple[int, int, int]]:
    invokes = [(t.invoke, INVOKE, t.index) for t in world.transactions]
    completes = [(t.complete, COMPLETE, t.index) for t in world.transactions if t.complete != NEVER]
    return sorted([*invokes, *completes, *((time, EVENT, t) for t, time in enumerate(world.received))])


def _mops(world: World, t: Transaction) -> tuple[MicroOp, ...]:
    reads = [MicroOp("r", r.key, _known(r.value) if t.outcome == OK else None) for r in t.reads]
    writes = sorted((w for w in world.writes if w.op == t.index), key=lambda w: w.ordinal)
    return (*reads, *(MicroOp("w", w.key, _known(w.value)) for w in writes))


def _invoke(world: World, op: int) -> Invoke:
    t = world.transactions[op]
    asked = tuple(MicroOp(mop.f, mop.key, None if mop.f == "r" else mop.value) for mop in _mops(world, t))
    return Invoke(op, t.invoke, t.invoke, t.process, "txn", None, asked)


def _complete(world: World, op: int) -> Complete:
    t = world.transactions[op]
    position = next((w.position for w in world.writes if w.op == op), NEVER)
    epoch = next((w.epoch for w in world.writes if w.op == op), NEVER)
    mops, at = _mops(world, t) if t.outcome == OK else None, _known(position)
    outcome = OUTCOMES[t.outcome]
    read, epoch_number = _known(t.as_of), _known(epoch)
    return Complete(op, t.complete, outcome, None, mops, txn=900 + op, read_ts=read, commit_ts=at, epoch=epoch_number)


def _event(event: Event, time: int, number: int) -> StreamEvent:
    span = None if event.span < 0 else f"p{event.span}"
    numbers = (event.key, event.value, event.position, event.ordinal, event.epoch, event.unit)
    key, value, position, ordinal, epoch, unit = (_known(each) for each in numbers)
    who = f"s{event.subscriber}"
    kind = KINDS[event.kind]
    return StreamEvent(time, who, event.session, number, kind, span, key, value, position, ordinal, epoch, unit)


def _known(number: int) -> int | None:
    return None if number == NEVER else number
