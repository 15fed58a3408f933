"""Findings about starts, ends, logs and whole streams, as sentences with the facts."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from checkers.history.names import Name
from checkers.streams.task import ABOVE, ENDED, FUTURE, HANDOVER, RESUME, REWRITTEN, TAIL, ZOMBIE, Example, Sight
from checkers.streams.words import after, both, shown
from harness.core.columns import BACKFILL, OPEN, WATERMARK


def _lost_sentence(example: Example, name: Name) -> str:
    mark, start, lost = example.watermark, example.event, example.missed
    if start is None or lost is None:
        raise AssertionError(f"{example} lacks nothing")
    what = f"{shown(lost, name)} at position {lost.position}, written by operation {lost.op},"
    began = f"resumed at {start.position}" if start.kind == OPEN else f"began with a snapshot at {start.position}"
    session = f"{example.subscriber} {began} in session {mark.session}"
    return f"{session}, but {what} was left out: {_passed(mark, name)} came."


def _passed(mark: Sight, name: Name) -> str:
    if mark.kind == WATERMARK:
        return f"watermark {mark.position}"
    return f"{shown(mark, name)} at position {mark.position}"


def _hand_over_sentence(example: Example, name: Name) -> str:
    mark, event, missed = example.watermark, example.event, example.missed
    if mark.kind == BACKFILL and missed is not None:
        older = f"A snapshot at {mark.position} showed {example.subscriber} {shown(mark, name)}"
        newer = f"operation {missed.op} had written {name(missed.value)} at position {missed.position}"
        return f"{older}, where the source had something newer: {newer}."
    if mark.kind == BACKFILL and event is not None:
        late = f"A snapshot's row, {shown(mark, name)} at position {mark.position}, reached {example.subscriber}"
        return f"{late} {after(event, mark)} behind {shown(event, name)} at {event.position}, which it overwrites."
    if event is None and missed is not None:
        what = f"{shown(missed, name)} from position {missed.position} on (operation {missed.op})"
        lacks = (
            f"{example.subscriber} got a whole snapshot in session {mark.session}, and then watermark {mark.position}"
        )
        return f"{lacks}, but the snapshot lacks {what}."
    return _lost_sentence(example, name)


def _tail_sentence(example: Example, name: Name) -> str:
    lost = example.missed
    if lost is None:
        raise AssertionError(f"{example} has lost nothing")
    what = f"{shown(lost, name)} at position {lost.position}, written by operation {lost.op},"
    return f"All had come to rest, and {example.subscriber} was connected, but {what} never reached it."


def _future_sentence(example: Example, name: Name) -> str:  # noqa: ARG001  Every sentence takes a name.
    mark, highest = example.watermark, example.missed
    announced = f"Watermark {mark.position} was announced to {example.subscriber}"
    if highest is None:
        return f"{announced}, which nothing had reached by then."
    return f"{announced}, when {highest.position}, of operation {highest.op}, was the highest that had begun."


def _above_sentence(example: Example, name: Name) -> str:  # noqa: ARG001  Every sentence takes a name.
    mark, part = both(example)
    said = "had been opened at" if part.kind == OPEN else "was at"
    whole = f"Watermark {mark.position} of the whole stream was announced to {example.subscriber}"
    return f"{whole}, when a partition of it {said} {part.position}, as the session had been told."


def _rewritten_sentence(example: Example, name: Name) -> str:
    mark, event = both(example)
    again = f"{example.subscriber} read {shown(mark, name)} at offset {mark.position}"
    return f"{again}, where {after(event, mark)} before {shown(event, name)} had been read."


def _ended_sentence(example: Example, name: Name) -> str:
    mark, end = both(example)
    what = (
        f"Watermark {mark.position}" if mark.kind == WATERMARK else f"{shown(mark, name)} at position {mark.position}"
    )
    return f"{what} reached {example.subscriber} {after(end, mark)} after the end of what it belongs to."


def _zombie_sentence(example: Example, name: Name) -> str:
    mark, newer = both(example)
    old = f"{shown(mark, name)} stands at position {mark.position}, put there by an older owner"
    return f"{old} than {shown(newer, name)} at {newer.position}: who had been replaced still wrote."


SENTENCES: Final[Mapping[str, Callable[[Example, Name], str]]] = MappingProxyType(
    {
        RESUME: _lost_sentence,
        HANDOVER: _hand_over_sentence,
        TAIL: _tail_sentence,
        FUTURE: _future_sentence,
        ABOVE: _above_sentence,
        REWRITTEN: _rewritten_sentence,
        ENDED: _ended_sentence,
        ZOMBIE: _zombie_sentence,
    }
)
