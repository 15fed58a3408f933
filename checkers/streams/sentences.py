"""Findings about streams as sentences, with the facts that an engineer needs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Final

from checkers.history.names import Name
from checkers.history.units import NO_KEY
from checkers.streams.rules.logs.real_time_order import Reversal
from checkers.streams.rules.logs.split_view import Split
from checkers.streams.session_sentences import SENTENCES
from checkers.streams.task import (
    DIVERGENT,
    DUPLICATE,
    INVERTED,
    MISMATCH,
    MOVED,
    OUTSIDE,
    PHANTOM,
    REAL_TIME,
    SILENT,
    SPLIT,
    WRONG,
    Example,
    Missed,
    Seen,
    Sight,
)
from checkers.streams.words import after, both, shown
from harness.core.columns import BACKFILL, COMMIT, ROW, WATERMARK
from harness.core.verdict import Finding

CHECKER = "streams"
EVENTS_SHOWN = 8  # Of a position where two sessions differ: it may have very many.

Shown = tuple[int, int]  # Key and value.


def finding(example: Example, name: Name) -> Finding:
    """The finding of an example; its fingerprint depends only on what was promised and what came."""
    mark, event, missed = example.watermark, example.event, example.missed
    sides = [None if each is None else (each.position, name(each.key), name(each.value)) for each in (event, missed)]
    facts: tuple[object, ...] = (example.anomaly, example.subscriber, mark.session, mark.position, *sides)
    if mark.kind in (BACKFILL, ROW):
        facts += (name(mark.key), name(mark.value))
    came = missed.came if missed else None
    seen = {sight.seq for sight in (mark, event, came) if sight is not None}
    is_written = missed is not None and missed.key != NO_KEY
    return Finding(
        fingerprint=_fingerprint(facts),
        anomaly=example.anomaly,
        checker=CHECKER,
        sentence=_SENTENCES.get(example.anomaly, _watermark_sentence)(example, name),
        count=example.count,
        ops=(missed.op,) if missed is not None and is_written else (),
        events=tuple(sorted(seen)),
    )


def split_finding(split: Split, seen: Seen, subscribers: Sequence[str], name: Name) -> Finding:
    """The finding that two subscribers differ, with an event that shows it."""
    one, other = split.one, split.other
    whose = [f"{subscribers[each.subscriber]} (session {each.number})" for each in (one, other)]
    sides = [[(event.key, event.value) for event in seen[each]] for each in (one, other)]
    for side, who in ((0, whose[0]), (1, whose[1])):
        if only := Counter(sides[side]) - Counter(sides[1 - side]):
            what = f"only {who} received {_pair(next(iter(only)), name)} there"
            break
    else:
        turn = next(turn for key in sides[0] if (turn := _swapped(sides, key[0])))
        what = f"{whose[0]} received {_pair(turn[0], name)} there before {_pair(turn[1], name)}, the other behind it"
    facts = (SPLIT, *whose, one.position, what)
    return Finding(
        fingerprint=_fingerprint(facts),
        anomaly=SPLIT,
        checker=CHECKER,
        sentence=f"{whose[0]} and {whose[1]} completed position {one.position}, but {what}.",
        count=split.count,
        events=tuple(sorted(event.seq for each in (one, other) for event in seen[each]))[:EVENTS_SHOWN],
    )


def reversal_finding(reversal: Reversal) -> Finding:
    """The finding that positions do not obey real time, by its first example."""
    one = f"Operation {reversal.op} was invoked after operation {reversal.before} had ended"
    sentence = f"{one}, but its position {reversal.position} is not above {reversal.before_position}."
    facts = (REAL_TIME, reversal.op, reversal.position, reversal.before, reversal.before_position)
    return Finding(
        fingerprint=_fingerprint(facts),
        anomaly=REAL_TIME,
        checker=CHECKER,
        sentence=sentence,
        count=reversal.count,
        ops=tuple(sorted((reversal.before, reversal.op))),
    )


def _swapped(sides: list[list[Shown]], key: int) -> tuple[Shown, Shown] | None:
    """The first two events of that key that are in different orders on the two sides; None if there are none."""
    one, other = ([event for event in side if event[0] == key] for side in sides)
    return next(((mine, theirs) for mine, theirs in zip(one, other, strict=True) if mine != theirs), None)


def _pair(event: Shown, name: Name) -> str:
    return f"{name(event[0])}'s {name(event[1])}"


def _fingerprint(facts: tuple[object, ...]) -> str:
    return blake2b(repr(facts).encode(), digest_size=8).hexdigest()


def _watermark_sentence(example: Example, name: Name) -> str:
    mark, event, missed = example.watermark, example.event, example.missed
    announced = f"Watermark {mark.position} was announced to {example.subscriber}"
    if event is not None and missed is not None:
        return _torn_sentence(example, event, missed, name)
    if missed is not None:
        what = f"{shown(missed, name)} at position {missed.position}, written by operation {missed.op},"
        return f"{announced}, but {what} never arrived."
    if event is None:
        raise AssertionError(f"{example} shows nothing")
    if event.kind == WATERMARK:
        return f"{announced} {after(event, mark)} after watermark {event.position}: it went back."
    where = (
        "that very position, which it includes," if event.position == mark.position else f"position {event.position}"
    )
    return f"{announced}, but {shown(event, name)} at {where} first arrived {after(mark, event)} later."


def _torn_sentence(example: Example, event: Sight, missed: Missed, name: Name) -> str:
    mark = example.watermark
    if missed.key == NO_KEY:
        rest = f"but not every row that unit {missed.op} has"
    else:
        end = "never came" if missed.came is None else f"came {after(mark, missed.came)} later"
        rest = f"but {shown(missed, name)} of the same unit had not: it {end} (operation {missed.op})"
    what = "A batch ended at" if mark.kind == COMMIT else f"Watermark {mark.position} was announced to"
    return f"{what} {example.subscriber} when {shown(event, name)} at position {event.position} had arrived, {rest}."


def _order_sentence(example: Example, name: Name) -> str:
    mark, event = both(example)
    arrived = f"{shown(mark, name)} reached {example.subscriber} {after(event, mark)} after {shown(event, name)}"
    if event.position == mark.position:
        return f"{arrived}: both are at position {mark.position}, where the source wrote them the other way round."
    return f"{arrived}, but its position {mark.position} is below {event.position}: they came in the wrong order."


def _duplicate_sentence(example: Example, name: Name) -> str:
    mark, event = both(example)
    what = f"{shown(mark, name)} at position {mark.position}"
    where = "" if mark.session == event.session else f" in session {mark.session}, having come in {event.session}"
    return f"{what} reached {example.subscriber} again{where}, {after(event, mark)} after the delivery before."


def _divergent_sentence(example: Example, name: Name) -> str:
    mark, event = both(example)
    when = f"{after(event, mark)} after {name(event.value)} had come as the same event"
    return f"{shown(mark, name)} at position {mark.position} reached {example.subscriber} {when}."


def _outside_sentence(example: Example, name: Name) -> str:
    mark, start = example.watermark, example.event
    why = "" if start is None else f" to begin at {start.position}"
    asked = f"session {mark.session} had asked{why}" if why else f"session {mark.session} never asked for that"
    return f"{shown(mark, name)} at position {mark.position} reached {example.subscriber}, but {asked}."


def _moved_sentence(example: Example, name: Name) -> str:
    mark, event = both(example)
    arrived = f"{shown(mark, name)} at position {mark.position} reached {example.subscriber} on another partition"
    return f"{arrived} than {shown(event, name)} {after(event, mark)} before it, and no move was declared."


def _phantom_sentence(example: Example, name: Name) -> str:
    mark, failed = example.watermark, example.missed
    why = "no operation ever wrote it" if failed is None else f"operation {failed.op}, which wrote it, certainly failed"
    return f"{shown(mark, name)} at position {mark.position} reached {example.subscriber}, but {why}."


def _value_sentence(example: Example, name: Name) -> str:
    mark, written = example.watermark, example.missed
    if written is None:
        raise AssertionError(f"{example} has nothing to compare with")
    what = f"wrote {name(written.value)}" if written.key == mark.key else f"wrote nothing to {name(mark.key)}"
    arrived = f"{shown(mark, name)} at position {mark.position} reached {example.subscriber}"
    return f"{arrived}, but operation {written.op}, whose row it is, {what}."


def _silent_sentence(example: Example, name: Name) -> str:
    mark, lost = example.watermark, example.missed
    if lost is None:
        raise AssertionError(f"{example} has lost nothing")
    what = f"{shown(lost, name)} at position {lost.position}, written by operation {lost.op},"
    return f"{what} never reached {example.subscriber}, and no gap marker said so before watermark {mark.position}."


def _state_sentence(example: Example, name: Name) -> str:
    mark, event, newest = example.watermark, example.event, example.missed
    if event is None or newest is None:
        raise AssertionError(f"{example} has nothing to compare")
    had = f"{name(newest.value)} from position {newest.position} on (operation {newest.op}), which is newer"
    built = f"{example.subscriber} has built {shown(event, name)} from its stream"
    return f"At watermark {mark.position} {built}, where the source had {had}."


_SENTENCES: Final[Mapping[str, Callable[[Example, Name], str]]] = MappingProxyType(
    {
        INVERTED: _order_sentence,
        DUPLICATE: _duplicate_sentence,
        PHANTOM: _phantom_sentence,
        WRONG: _value_sentence,
        SILENT: _silent_sentence,
        MISMATCH: _state_sentence,
        DIVERGENT: _divergent_sentence,
        OUTSIDE: _outside_sentence,
        MOVED: _moved_sentence,
        **SENTENCES,
    }
)
