"""The types of a verdict: a check's findings, and the outcome for the run."""

from enum import Enum
from hashlib import blake2b
from typing import Annotated, Literal

import msgspec

from harness.core.record import Json


class Verdict(Enum):
    """The outcome of a run. The order of the members is their precedence: the first that applies wins.

    Each value is the code in report.json; the shell gets `exit_code`, the screen `word`.
    """

    INVALID = "invalid"
    ERROR = "error"
    VACUOUS = "vacuous"
    UNKNOWN = "unknown"
    VALID = "valid"

    @property
    def exit_code(self) -> int:
        """The exit code of a command with this verdict."""
        return _EXIT_CODES[self]

    @property
    def word(self) -> str:
        """The name of the verdict on the screen."""
        return _WORDS[self]


_EXIT_CODES = {Verdict.INVALID: 1, Verdict.ERROR: 4, Verdict.VACUOUS: 3, Verdict.UNKNOWN: 2, Verdict.VALID: 0}
_WORDS = {
    Verdict.INVALID: "ANOMALY",
    Verdict.ERROR: "HARNESS ERROR",
    Verdict.VACUOUS: "VACUOUS",
    Verdict.UNKNOWN: "UNKNOWN",
    Verdict.VALID: "PASS",
}
FAILED = (Verdict.INVALID.value, Verdict.ERROR.value)  # The verdicts of runs that a person must look at.
EXIT_USAGE = 64
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


def worst(verdicts: list[Verdict]) -> Verdict:
    """The verdict of highest precedence. Raises ValueError if there is none: an empty result is never a pass."""
    order = list(Verdict)
    return min(verdicts, key=order.index)


def fingerprint(*facts: object) -> str:
    """The fingerprint of a finding with those facts, the anomaly among them: numbers, texts, and tuples of these."""
    return blake2b(repr(facts).encode(), digest_size=8).hexdigest()


Relation = Literal["ww", "wr", "rw", "process", "realtime", "watermark"]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One edge of a cycle, with its proof: `source` precedes `target` because of `sentence`."""

    source: str  # "T12", an operation's index; "W s1/327", a watermark
    target: str
    relation: Relation
    sentence: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An anomaly, with the evidence that shows it.

    `fingerprint` is the same for the same anomaly in the same history, whichever engine found it. `ops` are the indexes
    of the operations, and `events` the journal positions of the stream events, that a reader needs to see.
    """

    fingerprint: str
    anomaly: str
    checker: str
    sentence: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 1
    ops: tuple[int, ...] = ()
    events: tuple[int, ...] = ()
    cycle: tuple[Step, ...] = ()


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """One check's result for the anomalies that it looks for.

    `witnesses` counts, for each anomaly by name, the events that could have shown it; an anomaly without witnesses was
    not exercised. `unknown` gives, by name, the reason why no answer was possible.
    """

    checker: str
    findings: tuple[Finding, ...]
    witnesses: dict[str, int]
    unknown: dict[str, str] = {}
    facts: dict[str, Json] = {}  # Other facts for the report: sizes, shares, legal observations.
