"""Rules of change streams as data: each file of `checkers.streams.rules` declares them beside their judgement.

`checkers.streams.catalogue` finds them; everything else about a rule (its name in promises, its place in reports, its
line in the docs) is derived from its `Rule`.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from checkers.history.names import Names
from checkers.streams.examples import Example, Sight
from checkers.streams.findings import identity
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly
from harness.core.columns import Int64s, SourceWrites
from harness.core.promises import StreamContract
from harness.core.verdict import Finding

S = TypeVar("S")
Tie = Literal["row", "write", "key"]
Sentence = Callable[[Example, Names], str]


class Need(Enum):
    """The evidence that a rule needs besides the events of a stream. Without it the rule is not exercised."""

    SOURCE = "the operations of the source"
    POSITIONS = "the positions of nearly all writes"
    OPENS = "sessions that report where they begin"
    ALL = "subscribers that are each sent everything"
    IMAGES = "rows that show what they replaced"


class Cut(Enum):
    """What a violation does to the content of a watermark, of which the graph of watermarks is a second opinion."""

    ROW = "it gives or takes a row"
    UNIT = "it tears a transaction, so both opinions should find it"
    STATE = "it changes which state the stream seems to show"


class PerKey:
    """A ruling that depends on one key at a time, as a fact of a view: a long log is judged by blocks of keys.

    Violations are sorted by time; `tie` is the column that sorts those of the same time. "key" is the key of the write.
    """

    def __init__(self, judge: Callable[[StreamView], Ruling], tie: Tie) -> None:
        self.judge, self.tie = judge, tie
        self.__doc__ = judge.__doc__

    def __call__(self, view: StreamView) -> Ruling:
        """The ruling for all keys of the view."""
        return view.facts.of(self.judge, partial(self.judge, view))


def per_key(tie: Tie) -> Callable[[Callable[[StreamView], Ruling]], PerKey]:
    """A decorator for a function whose ruling depends on one key at a time."""
    return lambda judge: PerKey(judge, tie)


class OfKeys(Struct, frozen=True):
    """The scope of a rule about single keys."""

    judge: PerKey
    sentence: Sentence


class OfUnits(Struct, frozen=True):
    """The scope of a rule about units of writes. It is judged alone, by parts, with all threads of the task.

    Its rulings refer to the rows of `units(view)`, not to those of the view itself.
    """

    judge: Callable[[StreamView], Ruling]
    sentence: Sentence
    units: Callable[[StreamView], StreamView]


class OfLog(Struct, frozen=True):
    """The scope of a rule about a whole log. `after` are rulings about single keys that it needs."""

    judge: Callable[[StreamView], Ruling]
    sentence: Sentence
    after: tuple[PerKey, ...] = ()


class Conclusion(Struct, frozen=True):
    """The findings of a rule that is not about single logs, and the number of its witnesses."""

    findings: tuple[Finding, ...] = ()
    witnesses: int = 0


class OfSource(Struct, frozen=True):
    """The scope of a rule about the source alone: judged once, from the history and its placed writes."""

    judge: Callable[[Path, SourceWrites, StreamContract], Conclusion]


class Sighted(Struct, frozen=True, order=True):
    """A session at a position."""

    subscriber: int
    number: int
    position: int


Seen = Mapping[Sighted, tuple[Sight, ...]]  # The events that sessions saw at positions, by time.


class OfAllLogs(Struct, Generic[S], frozen=True):
    """The scope of a rule that compares logs: each log is summarized by its task, and only the summaries are collected.

    `conclude` takes the summaries, a function that fetches the events of a few sessions at positions, the subscribers'
    names, and the names of values. `rows` finds those events in a log.
    """

    summarize: Callable[[StreamView], S]
    conclude: Callable[[Sequence[S], Callable[[Sequence[Sighted]], Seen], Sequence[str], Names], Conclusion]
    rows: Callable[[StreamView, Sequence[Sighted]], Mapping[Sighted, Int64s]]


Scope = OfKeys | OfUnits | OfLog | OfSource | OfAllLogs[Any]


class Rule(Struct, frozen=True, kw_only=True):
    """A rule of change streams, with its id in stream-guarantees.md.

    Findings are in the order of `rank`. `legal` is the name under which a rule counts legal cases that look like
    violations; None if it counts none. `identity` gives the facts of an example that a fingerprint is made of.
    """

    name: str  # That of the anomaly.
    id: str
    rank: int
    anomaly: Anomaly
    witness: str  # What counts as a chance to see a violation.
    scope: Scope
    needs: frozenset[Need] = frozenset()
    is_online: bool = False  # True if it is judged while a run goes on.
    legal: str | None = None
    cut: Cut | None = None
    identity: Callable[[Example, Names], tuple[object, ...]] = identity

    def per_key(self) -> tuple[PerKey, ...]:
        """The rulings about single keys that the rule needs."""
        match self.scope:
            case OfKeys(judge=judge):
                return (judge,)
            case OfLog(after=after):
                return after
            case _:
                return ()
