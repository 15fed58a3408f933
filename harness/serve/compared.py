"""Two runs side by side: their differences, and what they share."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from checkers.verdict.titles import title
from harness.core.errors import HistoryError
from harness.report.model import FaultRow, FindingRow, PromiseRow, Report

HASH_SHOWN = 16  # The number of digits of a hash that are shown.
VALUE_MAX = 200  # The most characters of a value in the table of differences.
ROWS_MAX = 5_000  # The most rows of a table: more would take the time of other pages.


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A table row with a cell for each run; None: the run has no such value."""

    name: str
    first: str | None
    second: str | None

    @property
    def is_same(self) -> bool:
        """True if both runs have the same value."""
        return self.first == self.second


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A class of findings, and how often each run has it."""

    name: str
    anomaly: str
    promise: str | None
    sentence: str
    first: int
    second: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisePair:
    """A promise, with its row in each run."""

    id: str
    text: str
    first: PromiseRow | None
    second: PromiseRow | None

    @property
    def is_same(self) -> bool:
        """True if the promise has the same verdict in both runs."""
        return (self.first and self.first.verdict) == (self.second and self.second.verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPair:
    """A kind of fault, with its row in each run."""

    kind: str
    first: FaultRow | None
    second: FaultRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of two runs.

    `settings` are choices of the seed or the user that differ; `same_count` are the same.
    """

    facts: tuple[Pair, ...]
    settings: tuple[Pair, ...]
    same_count: int
    findings: tuple[Shared, ...]
    promises: tuple[PromisePair, ...]
    faults: tuple[FaultPair, ...]
    sentence: str


def comparison(first: Report, second: Report) -> Comparison:
    """The comparison of two reports. Findings count as the same if they share the anomaly and the promise.

    Raises HistoryError if a table would have more than ROWS_MAX rows.
    """
    for report in (first, second):
        _require_few(report)
    settings = list(_settings(first, second))
    differing = [each for each in settings if not each.is_same]
    return Comparison(
        facts=tuple(_facts(first, second)),
        settings=tuple(differing),
        same_count=len(settings) - len(differing),
        findings=tuple(_findings(first, second)),
        promises=tuple(_promises(first.promises, second.promises)),
        faults=tuple(_faults(first.faults, second.faults)),
        sentence=_sentence(first, second),
    )


def _require_few(report: Report) -> None:
    counts = {
        "settings": len(report.drawn) + len(report.versions),
        "promises": len(report.promises),
        "kinds of faults": len(report.faults),
        "classes of findings": len({(each.anomaly, each.promise) for each in report.findings}),
    }
    for name, count in counts.items():
        if count > ROWS_MAX:
            raise HistoryError(f"one of these runs has {count:,} {name}; runs with up to {ROWS_MAX:,} can be compared")


def _sentence(first: Report, second: Report) -> str:
    """A sentence with the most important difference between the two."""
    if first.history_sha256 is not None and first.history_sha256 == second.history_sha256:
        return "The two histories are the same, record by record."
    here, there = ({(each.anomaly, each.promise) for each in report.findings} for report in (first, second))
    if here == there:
        return "Both runs show the same anomalies." if here else "Neither run shows an anomaly."
    if not here or not there:
        return f"Only the {'second' if there else 'first'} run shows anomalies."
    return "Both runs show anomalies, and not the same ones."


def _facts(first: Report, second: Report) -> Iterator[Pair]:
    yield Pair(name="why", first=first.reason, second=second.reason)
    lasted = [None if each.duration_s is None else f"{each.duration_s:.3f} s" for each in (first, second)]
    yield Pair(name="its own time", first=lasted[0], second=lasted[1])
    yield Pair(name="fault plan", first=_short(first.plan_sha256), second=_short(second.plan_sha256))
    yield Pair(name="history", first=_short(first.history_sha256), second=_short(second.history_sha256))
    for kind, word in (("ok", "ok"), ("fail", "fail"), ("info", "unknown")):
        counts = [f"{each.operations.get(kind, 0):,}" for each in (first, second)]
        yield Pair(name=f"operations {word}", first=counts[0], second=counts[1])


def _short(sha256: str | None) -> str | None:
    return None if sha256 is None else sha256[:HASH_SHOWN]


def _settings(first: Report, second: Report) -> Iterator[Pair]:
    def all_of(report: Report) -> dict[str, str]:
        plain = {name: getattr(report, name) for name in ("cluster", "workload", "runtime", "seed", "model")}
        known = {name: value for name, value in plain.items() if value is not None}
        known |= {"planted bugs": ", ".join(report.bugs)} if report.bugs else {}
        return {name: _text(value) for name, value in (known | report.versions | report.drawn).items()}

    one, other = all_of(first), all_of(second)
    for name in dict.fromkeys((*one, *other)):
        yield Pair(name=name, first=one.get(name), second=other.get(name))


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]} …"


def _findings(first: Report, second: Report) -> Iterator[Shared]:
    found: dict[tuple[str, str | None], FindingRow] = {}
    for each in (*first.findings, *second.findings):
        found.setdefault((each.anomaly, each.promise), each)
    one, other = (_counts(report) for report in (first, second))
    for (anomaly, promise), example in sorted(found.items(), key=lambda item: item[0][1] is None):
        yield Shared(
            name=title(anomaly, first.declared | second.declared),
            anomaly=anomaly,
            promise=promise,
            sentence=example.sentence,
            first=one[anomaly, promise],
            second=other[anomaly, promise],
        )


def _counts(report: Report) -> Counter[tuple[str, str | None]]:
    """How often each anomaly broke each promise."""
    counts = Counter[tuple[str, str | None]]()
    for each in report.findings:
        counts[each.anomaly, each.promise] += each.count
    return counts


def _promises(first: Sequence[PromiseRow], second: Sequence[PromiseRow]) -> Iterator[PromisePair]:
    """The promises of both runs; those with different verdicts come first."""
    one, other = ({row.id: row for row in rows} for rows in (first, second))
    pairs = [
        PromisePair(id=each, text=(one.get(each) or other[each]).text, first=one.get(each), second=other.get(each))
        for each in dict.fromkeys((*one, *other))
    ]
    yield from sorted(pairs, key=lambda pair: pair.is_same)


def _faults(first: Sequence[FaultRow], second: Sequence[FaultRow]) -> Iterator[FaultPair]:
    one, other = ({row.kind: row for row in rows} for rows in (first, second))
    for kind in dict.fromkeys((*one, *other)):
        yield FaultPair(kind=kind, first=one.get(kind), second=other.get(kind))
