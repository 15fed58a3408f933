"""Histories of streams beside transactions, in words, for the check of the watermark graph."""

from collections.abc import Iterator
from pathlib import Path

from checkers.engine.datasets import LocalEngine
from checkers.watermarks.check import Options, check_source
from checkers.watermarks.cycles.steps import NAMES
from harness.core.columns import KINDS, NEVER
from harness.core.promises import StreamContract
from harness.core.record import Complete, Invoke, MicroOp, Record, StreamEvent
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.streams.cases import contract
from tests.worlds.streams.language import Event, events


def records(journal: str) -> Iterator[Record]:
    """The records of a journal, in which operations and events stand one behind the other, apart by `;`.

    An operation is `0 ax1 ry1,2 @3`: its index, what it appends and reads, its position (`@3?`: the one that it read
    as of). It ends at once, or where `0 ends` says so if it begins with `begin`. Anything else is a log.
    """
    open_operations: dict[int, Complete] = {}
    number = 0
    for time, part in enumerate(filter(None, (part.strip() for part in journal.split(";")))):
        words = part.removeprefix("begin ").split()
        if not words[0].isdigit():
            for event in events(part):
                yield _event(event, time, number)
                number += 1
            continue
        index = int(words[0])
        if words[1:] == ["ends"]:
            yield open_operations.pop(index)
            continue
        yield Invoke(index, time, time, index, "txn", None, tuple(_mops(words[1:], is_known=False)))
        complete = _complete(index, time, words[1:])
        if part.startswith("begin"):
            open_operations[index] = complete
        else:
            yield complete


def _complete(index: int, time: int, words: list[str]) -> Complete:
    position = next((word for word in words if word.startswith("@")), None)
    is_read = position is not None and position.endswith("?")
    number = None if position is None else int(position.strip("@?"))
    mops = tuple(_mops(words, is_known=True))
    commit, read = (None, number) if is_read else (number, None)
    return Complete(index, time, "ok", None, mops, read_ts=read, commit_ts=commit)


def _mops(words: list[str], *, is_known: bool) -> Iterator[MicroOp]:
    for word in words:
        if word[0] == "a":
            yield MicroOp("append", word[1], int(word[2:]))
        elif word[0] == "r":
            yield MicroOp("r", word[1], [int(one) for one in word[2:].split(",") if one] if is_known else None)


def _event(event: Event, time: int, number: int) -> StreamEvent:
    key = None if event.key == NEVER else chr(ord("a") + event.key)
    shown = (None if each == NEVER else each for each in (event.value, event.position, event.ordinal))
    span = None if event.span < 0 else f"p{event.span}"
    return StreamEvent(time, f"s{event.subscriber}", event.session, number, KINDS[event.kind], span, key, *shown)


def judged(folder: Path, journal: str, forbidden: frozenset[str] = frozenset(NAMES), **changes: object) -> Judgement:
    """What the check says of such a history."""
    how: StreamContract = contract(**changes)
    if not (folder / "ops.parquet").exists():
        write_history(records(journal), folder)
    return check_source(folder, folder, how, LocalEngine(1), Options(forbidden=forbidden))


def found(folder: Path, journal: str, **changes: object) -> list[str]:
    """The names of what is found."""
    return [finding.anomaly for finding in judged(folder, journal, frozenset(NAMES), **changes).findings]
