"""Streams and their sources in a small language, for tests.

A log is words by time: `s1` or `s1/2` says whose session the following events are of, then

    open@0  open[1]@0  open:x@0  open     a session starts, for all keys, a partition, or a key; at an unknown position
    x=5@3   x=5@3.1   x[1]=5@3            a row: key, value, position, number in its unit (0), partition
    ~x=5@3                                a backfill row
    w@3     w[1]@3                        a watermark
    gap  gap[1]  gap:x  close  error  end  commit  begin  checkpoint@3

and `u7*2` behind a row names its unit and how many rows that has, `e4` its epoch. A source is operations, each with
outcome, position and writes: `"ok@3 x=5 y=6; info x=7; fail y=9"`, with `x[1]=5` for a key's partition, `ok@3e4t7` for
an operation's epoch and the number by which rows name it, `x=5#2` for a write's rank among the versions of its key;
`ok@3~98~104` says at which places of the journal an operation was invoked and answered: events stand from 100 on.
"""

import re
from dataclasses import dataclass, fields, replace

import numpy as np

from harness.core.columns import FAIL, INFO, KINDS, NEVER, OK, Deliveries, Int64s, SourceWrites

OUTCOMES = {"ok": OK, "fail": FAIL, "info": INFO}
EVENT = re.compile(
    r"(?P<kind>open|gap|close|error|end|commit|checkpoint|begin|w|~?(?P<row>[a-z])(?=[\[=]))"
    r"(?:\[(?P<span>\d)\])?(?::(?P<key>[a-z]))?(?:=(?P<value>\d+))?(?:@(?P<position>\d+))?(?:\.(?P<ordinal>\d+))?"
)
OPERATION = re.compile(
    r"(?P<outcome>ok|fail|info)(?:@(?P<position>\d+))?(?:e(?P<epoch>\d+))?(?:t(?P<txn>\d+))?"
    r"(?:~(?P<invoke_seq>\d+)(?:~(?P<complete_seq>\d+))?)?"
)
WRITE = re.compile(r"(?P<key>[a-z])(?:\[(?P<span>\d)\])?=(?P<value>\d+)(?:#(?P<version>\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event; NEVER where there is no such number, -1 for no span."""

    subscriber: int
    session: int
    kind: int
    span: int = -1
    key: int = NEVER
    value: int = NEVER
    position: int = NEVER
    ordinal: int = NEVER
    epoch: int = NEVER
    unit: int = NEVER
    unit_rows: int = NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write of one operation."""

    op: int
    outcome: int
    key: int
    value: int
    position: int
    ordinal: int
    epoch: int = NEVER
    span: int = -1
    txn: int = NEVER
    version: int = NEVER
    invoke_seq: int = NEVER
    complete_seq: int = NEVER


def key_of(letter: str) -> int:
    return ord(letter) - ord("a")


def events(text: str) -> list[Event]:
    """The events of a log in the small language."""
    result: list[Event] = []
    subscriber, session = 1, 1
    for word in text.split():
        if whose := re.fullmatch(r"s(\d+)(?:/(\d+))?", word):
            subscriber, session = int(whose[1]), int(whose[2] or 1)
        elif unit := re.fullmatch(r"u(\d+)\*(\d+)", word):
            result[-1] = replace(result[-1], unit=int(unit[1]), unit_rows=int(unit[2]))
        elif epoch := re.fullmatch(r"e(\d+)", word):
            result[-1] = replace(result[-1], epoch=int(epoch[1]))
        elif found := EVENT.fullmatch(word):
            result.append(_event(found, subscriber, session))
        else:
            raise ValueError(f"{word!r} is no event")
    return result


def writes(text: str) -> list[Write]:
    """The writes of a source in the small language."""
    result = []
    for op, words in enumerate(filter(None, (part.split() for part in text.split(";")))):
        of = OPERATION.fullmatch(words[0])
        assert of, words[0]
        for ordinal, word in enumerate(words[1:]):
            found = WRITE.fullmatch(word)
            assert found, word
            result.append(
                Write(
                    op=op,
                    outcome=OUTCOMES[of["outcome"]],
                    key=key_of(found["key"]),
                    value=int(found["value"]),
                    position=int(of["position"] or NEVER),
                    ordinal=ordinal,
                    epoch=int(of["epoch"] or NEVER),
                    span=int(found["span"] or -1),
                    txn=int(of["txn"] or NEVER),
                    version=int(found["version"] or NEVER),
                    invoke_seq=int(of["invoke_seq"] or NEVER),
                    complete_seq=int(of["complete_seq"] or NEVER),
                )
            )
    return result


def deliveries_of(log: list[Event]) -> Deliveries:
    """The columns of a log; one event a second, journal positions from 100."""
    columns = {f.name: _column([getattr(event, f.name) for event in log]) for f in fields(Event)}
    kind = columns.pop("kind").astype(np.int8)
    when = np.arange(len(log), dtype=np.int64)
    return Deliveries(seq=when + 100, ns=when * 1_000_000_000, kind=kind, **columns)


def source_of(source: list[Write]) -> SourceWrites:
    """The columns of a source."""
    columns = {f.name: _column([getattr(write, f.name) for write in source]) for f in fields(Write)}
    outcome = columns.pop("outcome").astype(np.int8)
    return SourceWrites(outcome=outcome, **columns)


def _event(found: re.Match[str], subscriber: int, session: int) -> Event:
    word = found["kind"]
    if found["row"]:
        kind, key, ordinal = "backfill" if word.startswith("~") else "row", found["row"], found["ordinal"] or 0
    else:
        kind, key, ordinal = "watermark" if word == "w" else word, found["key"], NEVER
    return Event(
        subscriber=subscriber,
        session=session,
        kind=KINDS.index(kind),
        span=int(found["span"] or -1),
        key=key_of(key) if key else NEVER,
        value=int(found["value"] or NEVER),
        position=int(found["position"] or NEVER),
        ordinal=int(ordinal),
    )


def _column(numbers: list[int]) -> Int64s:
    return np.array(numbers, np.int64)
