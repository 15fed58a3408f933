"""One verdict from many checkers: the state of each promise, whether the run was vacuous, and the reason.

Pure: takes the promises, the judgements, and facts about the run; nothing is read or measured here.

A run is *vacuous* if it tested too little. There are five clauses; these four concern one run, and d a campaign.
a) Too few ok operations of some type of the workload, or a fault of a second or more with too few completions.
b) All planned faults, or all by one name that the user gave, never began, had no measured effect, or overlapped no
   operation. Others without effect are excused: they are notes.
c) Nothing promised, or a purpose of the test with too few witnesses; too few writes of known version order; too few
   watermarks with a write under them; stream events without a contract. Other promises with too few witnesses count as
   not exercised, and cost nothing.
e) The final reads or a subscriber's end position are missing, or the run never came to its end.
A foreign history has no plan: only c counts, with thresholds of one, and e for a recording that was cut short.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct, field

from checkers.verdict.groups import has_cause, rank
from checkers.verdict.titles import NONE, title
from checkers.words.anomalies import Anomaly
from checkers.words.models import prohibited
from harness.core.errors import require
from harness.core.promises import Promise
from harness.core.verdict import Finding, Judgement, Verdict
from harness.core.wording import counted

NO_MODELS: Final[Mapping[str, frozenset[str]]] = MappingProxyType({})
SECOND: Final = 1_000_000_000


class PromiseState(Enum):
    """The state of a promise after a run; the values are those of report.json."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    NOT_EXERCISED = "not-exercised"


class Thresholds(Struct, frozen=True, kw_only=True):
    """The least numbers that a run must reach not to be vacuous."""

    ok_of_type: int = 20
    met_by_fault: int = 1  # Operations that were open at some moment of it.
    completed_in_fault: int = 5
    fault_ns: int = SECOND  # Shorter faults may pass without a completion.
    witnesses: int = 10
    known_versions_percent: int = 90
    watermarks_with_writes: int = 10

    def __post_init__(self) -> None:
        require(self.witnesses >= 1, "an empty result is never a pass: `witnesses` is at least 1", self)
        require(0 <= self.known_versions_percent <= 100, "`known_versions_percent` is from 0 to 100", self)


FOREIGN: Final = Thresholds(witnesses=1, known_versions_percent=0, watermarks_with_writes=1)


class PlannedFault(Struct, frozen=True, kw_only=True):
    """A step of the plan and its effect. `name` is for people: "partition of n1, n2 at 3.1 s".

    `named` is the user's own name for it, which several steps may share; None for the seed's choice.
    """

    name: str
    named: str | None = None
    has_begun: bool
    effect: int | None  # The measured effect; None if it was not measured.
    duration_ns: int
    overlapping: int  # Client operations that were open at some moment of it.
    completed: int  # Client operations that completed in it, as ok, fail or info.


class RunFacts(Struct, frozen=True, kw_only=True):
    """The facts about a run besides its judgements. The defaults are those of a foreign history."""

    is_foreign: bool = False
    error: str | None = None  # The error of the harness, a checker or its infrastructure; None without one.
    ok_by_type: Mapping[str, int] = field(default_factory=dict)  # Every type of the workload, with 0 where none was ok.
    faults: tuple[PlannedFault, ...] = ()
    has_final_reads: bool = True
    behind: tuple[str, ...] = ()  # Subscribers that did not reach the source's last position.
    incomplete: str | None = None  # Why the run did not come to its end.
    known_versions: int = 0  # Writes whose place in the version order is known,
    all_versions: int = 0  # of this many; 0 of 0 where the order does not matter.
    watermarks_with_writes: int | None = None  # None: no stream is under test.
    unjudged: str | None = None  # The sentence about records that no check could judge.


class PromiseVerdict(Struct, frozen=True, kw_only=True):
    """A promise and its state. `witnesses` are those of its best exercised anomaly.

    If it holds, `reason` names those anomalies of its own that no event could have shown; None if there are none.
    """

    promise: Promise
    state: PromiseState
    witnesses: int
    findings: tuple[Finding, ...] = ()
    reason: str | None = None


class Vacuity(Struct, frozen=True, kw_only=True):
    """A reason why a run is vacuous: the clause, the number that fell short, and a sentence for people."""

    clause: Literal["a", "b", "c", "e"]
    number: int
    sentence: str


class Composition(Struct, frozen=True, kw_only=True):
    """The verdict of a run with everything on which it rests. `observations` are findings that no promise forbids."""

    verdict: Verdict
    reason: str
    promises: tuple[PromiseVerdict, ...]
    vacuities: tuple[Vacuity, ...] = ()
    excused: tuple[str, ...] = ()
    observations: tuple[Finding, ...] = ()

    @property
    def clause(self) -> str | None:
        """The first clause that made the run vacuous; None for another verdict."""
        return self.vacuities[0].clause if self.verdict is Verdict.VACUOUS else None


def compose(
    promises: Sequence[Promise],
    judgements: Sequence[Judgement],
    facts: RunFacts,
    *,
    of_harness: Sequence[Promise] = (),
    thresholds: Thresholds | None = None,
    models: Mapping[str, frozenset[str]] = NO_MODELS,
    records: Mapping[str, Anomaly] = NONE,
) -> Composition:
    """One verdict, by precedence: violated, error, vacuous, unknown, valid.

    `of_harness` are promises that every run must keep. They can be violated, but a run that exercised only them is
    vacuous: nothing that the system promised was tested. `models` gives the anomalies of each consistency model that a
    promise names in `forbids`. An anomaly that it names is forbidden with all that imply it, as the history then has it
    too; only the named ones count as witnesses. `records` are those of the anomalies that brought checks declare.
    Without `thresholds` those of `Thresholds` hold, or of `FOREIGN` for a foreign history.
    """
    limits = thresholds or (FOREIGN if facts.is_foreign else Thresholds())
    own = tuple(_promise_verdict(promise, judgements, limits, models, records) for promise in promises)
    states = (*own, *(_promise_verdict(promise, judgements, limits, models, records) for promise in of_harness))
    missed = _missed(facts.faults, limits)
    excused = idle_faults((fault for fault in facts.faults if fault not in missed), limits)
    vacuities = tuple(_vacuities(own, facts, limits, idle_faults(missed, limits)))
    claimed = {finding.fingerprint for state in states for finding in state.findings}
    others = [finding for judgement in judgements for finding in judgement.findings]
    observations = tuple(finding for finding in others if finding.fingerprint not in claimed)
    verdict, reason = _verdict(states, facts, vacuities, records)
    if verdict is not Verdict.INVALID:
        reason += _unforbidden(observations)
    return Composition(
        verdict=verdict,
        reason=reason,
        promises=states,
        vacuities=vacuities,
        excused=excused,
        observations=observations,
    )


def shortfalls(
    states: Sequence[PromiseVerdict], facts: RunFacts, thresholds: Thresholds | None = None
) -> tuple[Vacuity, ...]:
    """The clauses by which many runs together tested too little, from the sums over their promises and facts.

    A fault stands for its kind in all runs, and none is excused: a kind that never had an effect was never tested.
    """
    limits = thresholds or Thresholds()
    return tuple(_vacuities(states, facts, limits, idle_faults(facts.faults, limits)))


def changed_nothing(idle: Sequence[str], planned: int) -> str:
    """The sentence about the faults that changed nothing, of those planned."""
    return f"{len(idle)} of {counted(planned, 'fault')} changed nothing: {'; '.join(idle)}"


def idle_faults(faults: Iterable[PlannedFault], limits: Thresholds) -> tuple[str, ...]:
    """The faults that changed nothing, each with the first reason that applies, if there is more to name."""
    reasons = ((fault.name, _idleness(fault, limits)) for fault in faults)
    return tuple(f"{name} ({reason})" if reason else name for name, reason in reasons if reason is not None)


def _missed(faults: Sequence[PlannedFault], limits: Thresholds) -> Sequence[PlannedFault]:
    """The faults whose lack of effect counts: all, if none had one; else those by a name of which none had one."""
    effective = [fault for fault in faults if _idleness(fault, limits) is None]
    if not effective:
        return faults
    tested = {None, *(fault.named for fault in effective)}
    return [fault for fault in faults if fault.named not in tested]


def _idleness(fault: PlannedFault, limits: Thresholds) -> str | None:
    """The reason why a fault changed nothing: empty without a measured effect, None if it tested something."""
    if not fault.has_begun:
        return "never began"
    if not fault.effect:
        return ""
    if not fault.overlapping:
        return "met no operation"
    is_met = fault.overlapping >= limits.met_by_fault
    return None if is_met else f"met {counted(fault.overlapping, 'operation')}, fewer than {limits.met_by_fault}"


def _promise_verdict(
    promise: Promise,
    judgements: Sequence[Judgement],
    limits: Thresholds,
    models: Mapping[str, frozenset[str]],
    records: Mapping[str, Anomaly],
) -> PromiseVerdict:
    named = frozenset[str]().union(*(models.get(name, {name}) for name in promise.forbids))
    forbidden = prohibited((), named)
    heard = [one for one in judgements if promise.check in {None, one.checker}]
    findings = tuple(f for judgement in heard for f in judgement.findings if f.anomaly in forbidden)
    seen = [(name, n) for judgement in heard for name, n in judgement.witnesses.items() if name in named]
    doubts = [(name, why) for j in heard for name, why in j.unknown.items() if name in forbidden]
    witnesses = max((count for _, count in seen), default=0)
    reason = None
    if findings:
        state = PromiseState.VIOLATED
    elif doubts:
        state, reason = PromiseState.UNKNOWN, _doubt(doubts, records)
    elif not seen:
        state, reason = PromiseState.NOT_EXERCISED, "no check of this run decides it"
    elif not witnesses:
        state, reason = PromiseState.NOT_EXERCISED, "nothing that was recorded could have broken it"
    elif witnesses < limits.witnesses:
        state, reason = PromiseState.NOT_EXERCISED, f"{witnesses} of at least {counted(limits.witnesses, 'witness')}"
    else:
        state, exercised = PromiseState.HOLDS, {name for name, count in seen if count}
        idle = [name for name in promise.forbids if name not in models and name not in exercised]
        reason = f"no event could have shown {', '.join(idle)}" if idle else None
    return PromiseVerdict(promise=promise, state=state, witnesses=witnesses, findings=findings, reason=reason)


def _doubt(doubts: Sequence[tuple[str, str]], own: Mapping[str, Anomaly]) -> str:
    """The reason why the first anomaly by rank is open; those without a cause come last.

    It names that anomaly, unless it is the reason for others as well.
    """
    reasons = Counter(why for _, why in doubts)
    name, why = min(doubts, key=lambda doubt: (not has_cause(doubt[0], own), rank(doubt[0], own), doubt[0]))
    return why if reasons[why] > 1 else f"{name}: {why}"


def _vacuities(
    states: Sequence[PromiseVerdict], facts: RunFacts, limits: Thresholds, idle: Sequence[str]
) -> Iterable[Vacuity]:
    """The clauses that apply, in alphabetical order; but the end of a run that was cut short is why the others do."""
    if facts.incomplete is not None:
        yield Vacuity(clause="e", number=0, sentence=f"the run did not come to its end: {facts.incomplete}")
    if not facts.is_foreign:
        yield from _too_little_load(facts, limits)
        if idle:
            yield Vacuity(clause="b", number=len(idle), sentence=changed_nothing(idle, len(facts.faults)))
    yield from _too_little_evidence(states, facts, limits)
    yield from _no_end(facts)


def _too_little_load(facts: RunFacts, limits: Thresholds) -> Iterable[Vacuity]:
    for name, count in facts.ok_by_type.items():
        if count < limits.ok_of_type:
            text = f"{counted(count, 'operation')} of type {name} succeeded, fewer than {limits.ok_of_type}"
            yield Vacuity(clause="a", number=count, sentence=text)
    for fault in facts.faults:
        is_long = fault.has_begun and fault.duration_ns >= limits.fault_ns
        if is_long and fault.completed < limits.completed_in_fault:
            done, least = counted(fault.completed, "operation"), limits.completed_in_fault
            text = f"{done} completed during {fault.name}, fewer than {least}"
            yield Vacuity(clause="a", number=fault.completed, sentence=text)


def _too_little_evidence(states: Sequence[PromiseVerdict], facts: RunFacts, limits: Thresholds) -> Iterable[Vacuity]:
    if facts.unjudged is not None:
        yield Vacuity(clause="c", number=0, sentence=facts.unjudged)
    for each in states:
        if each.promise.is_purpose and each.state is PromiseState.NOT_EXERCISED:
            text = f"{each.promise.called} was not exercised: {each.reason}"
            yield Vacuity(clause="c", number=each.witnesses, sentence=text)
    if not states:
        yield Vacuity(clause="c", number=0, sentence="no promise was given, so none could be broken")
    elif all(each.state is PromiseState.NOT_EXERCISED for each in states):
        yield Vacuity(clause="c", number=0, sentence="no promise was exercised")
    if facts.known_versions * 100 < limits.known_versions_percent * facts.all_versions:
        percent = facts.known_versions * 100 // facts.all_versions
        counts = f"{facts.known_versions} of {facts.all_versions} writes ({percent} %)"
        text = f"the version order is known for {counts}, fewer than {limits.known_versions_percent} %"
        yield Vacuity(clause="c", number=percent, sentence=text)
    marks = facts.watermarks_with_writes
    if marks is not None and marks < limits.watermarks_with_writes:
        text = f"{counted(marks, 'watermark')} had a write under them, fewer than {limits.watermarks_with_writes}"
        yield Vacuity(clause="c", number=marks, sentence=text)


def _no_end(facts: RunFacts) -> Iterable[Vacuity]:
    if facts.is_foreign:
        return
    if not facts.has_final_reads:
        yield Vacuity(clause="e", number=0, sentence="the final reads are missing")
    if facts.behind:
        text = f"{', '.join(facts.behind)} did not reach the source's last position"
        yield Vacuity(clause="e", number=len(facts.behind), sentence=text)


def _verdict(
    states: Sequence[PromiseVerdict], facts: RunFacts, vacuities: Sequence[Vacuity], own: Mapping[str, Anomaly]
) -> tuple[Verdict, str]:
    """The verdict, by precedence, and its reason in a line."""
    violated = [each for each in states if each.state is PromiseState.VIOLATED]
    if violated:
        every = [(each, finding) for each in violated for finding in each.findings]
        first, finding = min(every, key=lambda pair: rank(pair[1].anomaly, own))
        times = sum(one.count for one in first.findings if one.anomaly == finding.anomaly)
        return Verdict.INVALID, f"{title(finding.anomaly, own)}, {_times(times)}: {first.promise.called} is violated"
    if facts.error is not None:
        return Verdict.ERROR, facts.error
    if vacuities:
        return Verdict.VACUOUS, vacuities[0].sentence
    unknown = [each for each in states if each.state is PromiseState.UNKNOWN]
    if unknown:
        return Verdict.UNKNOWN, f"{unknown[0].promise.called} could not be decided: {unknown[0].reason}"
    held = [each for each in states if each.state is PromiseState.HOLDS]
    left = len(states) - len(held)
    idle = f", {left} not exercised" if left else ""
    return (
        Verdict.VALID,
        f"{counted(len(held), 'promise')} held, witnessed {_times(sum(each.witnesses for each in held))}{idle}",
    )


def _unforbidden(observations: Sequence[Finding]) -> str:
    """The part of the reason that names anomalies seen but not forbidden, so that no passing verdict hides them."""
    names = sorted({finding.anomaly for finding in observations})
    what = "anomaly" if len(names) == 1 else "anomalies"
    return f"; {len(names)} {what} seen and not forbidden: {', '.join(names)}" if names else ""


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"
