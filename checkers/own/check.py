"""A check as a user writes it: a pure function from a `History` to a `Judgement`. `row` makes it one of the table."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from checkers.engine import protocol
from checkers.engine.protocol import Context, When
from checkers.history.troubles import Trouble, judgement
from checkers.own.history import History
from checkers.words.anomalies import Declared
from harness.core import verdict
from harness.core.errors import ScenarioError

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*")


class Finding(Struct, frozen=True, kw_only=True):
    """One violation. `ops` are the indexes of operations, `events` the `seq` of events, that a reader needs to see.

    Violations of one anomaly are shown as one, with their number, unless their groups differ.
    """

    anomaly: str
    sentence: str
    ops: tuple[int, ...] = ()
    events: tuple[int, ...] = ()
    group: str | int | None = None


class Judgement(Struct, frozen=True, kw_only=True):
    """The result of a check. `witnesses` counts, by anomaly, what could have shown it: without any it is not exercised.

    `unknown` gives, by anomaly, the reason why no answer was possible.
    """

    witnesses: Mapping[str, int]
    findings: Sequence[Finding] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)


class Check(Struct, frozen=True, kw_only=True):
    """A check of a system's own. `anomalies` are those that it may report: each a one-line meaning, or an `Anomaly`.

    A promise that forbids one of the names, or that has this `name` as its `check`, gets the check. `judge` must be a
    function of its module. With `by_generation` it judges the operations between two restarts of the whole cluster
    separately, if the system's bounds have `saved_bits`.
    """

    name: str
    anomalies: Declared
    judge: Callable[[History], Judgement]
    by_generation: bool = False

    def __post_init__(self) -> None:
        for name in (self.name, *self.anomalies):
            if not _NAME.fullmatch(name):
                raise ScenarioError(f"check {self.name!r}: {name!r} must be of small letters, digits and dashes")
        if not self.anomalies:
            raise ScenarioError(f"check {self.name!r}: it looks for nothing: name its anomalies, each with its meaning")

    def row(self) -> protocol.Check:
        """The check as a row of the table of checks."""
        return protocol.Check(
            name=self.name,
            anomalies=self.anomalies,
            judge=self._judged,
            when=When.NEEDED,
            by_generation=self.by_generation,
        )

    def _judged(self, history: Path, context: Context) -> verdict.Judgement:
        found = self.judge(History(history, context))
        if not isinstance(found, Judgement):
            raise ScenarioError(f"check {self.name}: it returned {type(found).__name__}, and must return a Judgement")
        for name in (*found.witnesses, *found.unknown, *(each.anomaly for each in found.findings)):
            if name not in self.anomalies:
                raise ScenarioError(
                    f"check {self.name}: {name!r} is not among its anomalies: declare it, with a meaning"
                )
        troubles = [
            Trouble(
                each.anomaly,
                each.sentence,
                each.ops + each.events or (each.sentence,),
                each.ops,
                each.events,
                each.group,
            )
            for each in found.findings
        ]
        return judgement(self.name, tuple(self.anomalies), troubles, found.witnesses, unknown=found.unknown)
