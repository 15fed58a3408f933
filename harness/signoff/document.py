"""signoff.json as a value: the decision on a release, for the page, for Markdown and for other tools.

The schema has a version, and names are never reused. Times are UTC; shares and rates go from 0 to 1.
"""

from enum import Enum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from harness.record.bounded import Amount, Count, PromiseCode, Sha256, Share, VerdictCode
from harness.signoff.statistics import Rate

SIGNOFF_SCHEMA: Final = 1
SIGNOFF_FILE: Final = "signoff.json"


DecisionCode = Annotated[str, Meta(pattern="^(go|no-go|insufficient-evidence)$")]
State = Annotated[str, Meta(pattern="^(new|worse|ongoing|resolved|rare|observed)$")]
Day = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]


class Decision(Enum):
    """The decision on a release. Each value is the code in signoff.json."""

    GO = "go"
    NO_GO = "no-go"
    INSUFFICIENT = "insufficient-evidence"

    @property
    def word(self) -> str:
        """The decision as readers see it."""
        return _WORDS[self]

    @property
    def exit_code(self) -> int:
        """The exit code of the command; for insufficient evidence that of a vacuous run."""
        return _EXIT_CODES[self]


_WORDS = {Decision.GO: "GO", Decision.NO_GO: "NO-GO", Decision.INSUFFICIENT: "INSUFFICIENT EVIDENCE"}
_EXIT_CODES = {Decision.GO: 0, Decision.NO_GO: 1, Decision.INSUFFICIENT: 3}


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two sweeps."""

    path: str
    id: str
    name: str
    verdict: VerdictCode
    reason: str
    began_utc: str
    ended_utc: str
    versions: dict[str, str]
    sut: dict[str, str] = {}  # The release, as declared.
    bugs: tuple[str, ...]
    config_sha256: str
    history_sha256: str
    rows_sha256: str
    runs: Count


class ExposureRow(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of how much of a cluster each sweep tested. `why` says that it is too little; None if it is not."""

    cluster: str
    what: str
    baseline: Amount
    candidate: Amount
    why: str | None = None


class FindingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A class of findings in both sweeps.

    `state`: new (in the candidate alone), worse (in both, and more often than chance explains), ongoing, resolved (in
    the baseline alone, whose rate the candidate would have shown), rare (in the baseline alone, and the candidate may
    have missed it), or observed (no promise forbids it). `is_blocking`: it alone is a NO-GO. `note` has details.
    """

    fingerprint: str
    cluster: str
    anomaly: str
    promise: str | None
    sentence: str
    state: State
    baseline: Rate
    candidate: Rate
    is_blocking: bool
    waiver: str | None = None  # The owner of a waiver that counts.
    note: str | None = None
    command: str | None = None
    first_seen: str


class PowerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A planted bug, and the chance that the candidate's `runs` would have shown it.

    `hits` of `drawn` runs of the calibration showed it. `least` is the chance at the low end of the rate's interval.
    Both are None for a bug that no drawn run showed.
    """

    cluster: str
    bug: str
    description: str
    promise: str | None
    anomaly: str | None
    hits: Count
    drawn: Count
    runs: Count
    chance: Share | None
    least: Share | None


class BehaviourRow(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of one cell under faults; None: no run has it. `is_worse`: by more than half of the baseline's."""

    cell: str
    what: str
    unit: str
    baseline: Amount | None
    candidate: Amount | None
    is_worse: bool


class PromiseRow(msgspec.Struct, frozen=True, kw_only=True):
    """A promise of a cluster: its verdict in both sweeps, None if it was not promised there, and the witnesses."""

    cluster: str
    id: str
    text: str
    source: str
    baseline: PromiseCode | None
    candidate: PromiseCode | None
    baseline_witnesses: Count
    witnesses: Count
    runs: Count  # The candidate's runs with a verdict on it.


class WaiverRow(msgspec.Struct, frozen=True, kw_only=True):
    """A waiver and its effect. `state`: counts, expired, or not-needed."""

    fingerprint: str
    owner: str
    reason: str
    expires: str
    state: str


class Digest(msgspec.Struct, frozen=True, kw_only=True):
    """The hash of a file on which the decision rests."""

    what: str
    path: str
    sha256: Sha256


class Signoff(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on a release. `rule` is the one that applied, `reasons` its grounds, the weightiest first."""

    schema: int = SIGNOFF_SCHEMA
    decision: DecisionCode
    exit_code: int
    rule: str
    reasons: tuple[str, ...]
    signed_utc: Day
    signed_by: str | None = None  # The person who signs.
    ticket: str | None = None
    seamark: str
    baseline: Side
    candidate: Side
    exposure: tuple[ExposureRow, ...]
    findings: tuple[FindingRow, ...]
    power: tuple[PowerRow, ...]
    behaviour: tuple[BehaviourRow, ...]
    promises: tuple[PromiseRow, ...]
    waivers: tuple[WaiverRow, ...]
    digests: tuple[Digest, ...]


def to_json(signoff: Signoff) -> bytes:
    """signoff.json as indented text. The document's hash is the hash of this text."""
    return msgspec.json.format(msgspec.json.encode(signoff, order="sorted"), indent=1) + b"\n"
