"""Many checkers, one verdict: what became of each promise, whether enough was tested, and the word for it all.

Vacuous, by clause:
a) fewer than `ok_per_type` ok operations of some type of the workload, or fewer than `in_window` completed inside the
   window of a fault that lasted `window_ns` or longer;
b) a planned fault never began, had no measured effect, or overlapped no operation; `excused_percent` of the planned
   ones are let pass, by name;
c) a promise that is the purpose of the test has fewer than `witnesses`, or the order of versions is known for fewer
   than `known_permille` of the writes. (That a watermark needs a write under it, is part of what a witness is.)
e) the final reads, or a subscriber's end position, are missing.
Clause d, goals that were never reached, is about campaigns: `unmet_goals`. A foreign history has no plan: for it only
c counts, with thresholds of one. Source: specs/reports-and-ux.md, section 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from checkers import models
from checkers.names import STREAM, TRANSACTIONAL
from harness.core.promises import Promise
from harness.core.verdict import Judgement, Verdict

CAMPAIGN_RUNS: Final = 50  # From so many on, an unmet goal says something.


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """How much is enough."""

    ok_per_type: int = 20
    in_window: int = 5
    window_ns: int = 1_000_000_000
    excused_percent: int = 10
    witnesses: int = 10
    known_permille: int = 900


FOREIGN: Final = Thresholds(witnesses=1, known_permille=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultFacts:
    """One step of the plan: did it begin, what did it do, and how many operations were open or completed meanwhile?"""

    name: str
    duration_ns: int
    has_begun: bool
    effect: int | None
    overlapping: int
    completed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What a run was exposed to. `behind` names the subscribers that did not reach the source's end."""

    ok_by_type: Mapping[str, int]
    faults: Sequence[FaultFacts]
    has_final_reads: bool
    behind: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseVerdict:
    """What became of a promise: holds, violated, unknown or not-exercised; with the reason for the last two."""

    promise: Promise
    verdict: str
    witnesses: int
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """The verdict of a run, in a word and a line; the clause if it is vacuous; the faults that were excused."""

    verdict: Verdict
    reason: str
    clause: str | None
    promises: tuple[PromiseVerdict, ...]
    excused: tuple[str, ...]


def compose(
    promises: Sequence[Promise],
    judgements: Sequence[Judgement],
    facts: RunFacts | None,
    thresholds: Thresholds | None = None,
) -> Composition:
    """The verdict on a run, or, without `facts`, on a foreign history."""
    limits = thresholds or (Thresholds() if facts is not None else FOREIGN)
    verdicts = tuple(_promise_verdict(promise, judgements) for promise in promises)
    lacking, excused = _fault_clause(facts.faults, limits) if facts is not None else (None, ())
    clause, lack = _vacuous(verdicts, judgements, facts, limits, lacking)
    broken = [each for each in verdicts if each.verdict == "violated"]
    undecided = [each for each in verdicts if each.verdict == "unknown"]
    if broken:
        verdict, reason = Verdict.INVALID, _broken_reason(broken, judgements)
    elif clause is not None:
        verdict, reason = Verdict.VACUOUS, lack
    elif undecided:
        verdict, reason = Verdict.UNKNOWN, f"{undecided[0].promise.id}: {undecided[0].reason}"
    else:
        held = [each for each in verdicts if each.verdict == "holds"]
        verdict, reason = Verdict.VALID, f"{len(held)} of {len(verdicts)} promises held, the rest were not exercised"
        if len(held) == len(verdicts):
            reason = f"all {len(held)} promises held" if len(held) > 1 else f"{held[0].promise.id} held"
    return Composition(
        verdict=verdict,
        reason=reason,
        clause=clause if verdict is Verdict.VACUOUS else None,
        promises=verdicts,
        excused=excused,
    )


def forbidden(promise: Promise) -> frozenset[str]:
    """The anomalies that break a promise: those it names, and all that the models it names prohibit."""
    named = {name for name in promise.forbids if name in TRANSACTIONAL or name in STREAM}
    return frozenset(named) | models.prohibited([name for name in promise.forbids if name not in named])


def unmet_goals(goals: Iterable[Mapping[str, int]], declared: Sequence[str]) -> tuple[str, ...]:
    """Clause d: the declared goals that no run of a campaign reached; none are named for a short campaign."""
    runs = list(goals)
    if len(runs) < CAMPAIGN_RUNS:
        return ()
    return tuple(goal for goal in declared if not any(run.get(goal, 0) for run in runs))


def _promise_verdict(promise: Promise, judgements: Sequence[Judgement]) -> PromiseVerdict:
    names = forbidden(promise)
    witnesses = max(
        (count for each in judgements for name, count in each.witnesses.items() if name in names), default=0
    )
    reasons = [reason for each in judgements for name, reason in sorted(each.unknown.items()) if name in names]
    if any(finding.anomaly in names for each in judgements for finding in each.findings):
        return PromiseVerdict(promise=promise, verdict="violated", witnesses=witnesses)
    if reasons:
        return PromiseVerdict(promise=promise, verdict="unknown", witnesses=witnesses, reason=reasons[0])
    if witnesses == 0:
        is_looked_at = any(name in names for each in judgements for name in each.witnesses)
        reason = "nothing happened that could have shown it" if is_looked_at else "no check looked at it"
        return PromiseVerdict(promise=promise, verdict="not-exercised", witnesses=0, reason=reason)
    return PromiseVerdict(promise=promise, verdict="holds", witnesses=witnesses)


def _vacuous(
    verdicts: Sequence[PromiseVerdict],
    judgements: Sequence[Judgement],
    facts: RunFacts | None,
    limits: Thresholds,
    lacking: str | None,
) -> tuple[str | None, str]:
    """The first clause that makes it vacuous, and why."""
    if facts is not None:
        too_few = _operations_clause(facts, limits)
        if too_few is not None:
            return "a", too_few
        if lacking is not None:
            return "b", lacking
    unwitnessed = _witness_clause(verdicts, judgements, limits)
    if unwitnessed is not None:
        return "c", unwitnessed
    if facts is not None and not facts.has_final_reads:
        return "e", "the final reads are missing"
    if facts is not None and facts.behind:
        return "e", f"{', '.join(facts.behind)} did not reach the end of the stream"
    return None, ""


def _operations_clause(facts: RunFacts, limits: Thresholds) -> str | None:
    for name, count in facts.ok_by_type.items():
        if count < limits.ok_per_type:
            return f"{count} {name} operations succeeded, {limits.ok_per_type} are needed"
    for fault in facts.faults:
        if fault.has_begun and fault.duration_ns >= limits.window_ns and fault.completed < limits.in_window:
            return f"{fault.completed} operations completed during {fault.name}, {limits.in_window} are needed"
    return None


def _fault_clause(faults: Sequence[FaultFacts], limits: Thresholds) -> tuple[str | None, tuple[str, ...]]:
    """Why too many faults did nothing, or None; and those that are excused."""
    idle = [f"{fault.name} {why}" for fault in faults if (why := _idleness(fault)) is not None]
    if len(idle) * 100 > limits.excused_percent * len(faults):
        more = f" (and {len(idle) - 1} more)" if len(idle) > 1 else ""
        return f"{idle[0]}{more}, of {len(faults)} planned faults", ()
    return None, tuple(idle)


def _idleness(fault: FaultFacts) -> str | None:
    if not fault.has_begun:
        return "never began"
    if not fault.effect:
        return "had no effect" if fault.effect == 0 else "was not measured"
    return "overlapped no operation" if fault.overlapping == 0 else None


def _witness_clause(
    verdicts: Sequence[PromiseVerdict], judgements: Sequence[Judgement], limits: Thresholds
) -> str | None:
    for each in verdicts:
        if each.promise.is_purpose and each.verdict != "unknown" and each.witnesses < limits.witnesses:
            return f"{each.promise.id} was witnessed {each.witnesses} times, {limits.witnesses} are needed"
    for judgement in judgements:
        known = judgement.facts.get("version_order_known_permille")
        if isinstance(known, int) and known < limits.known_permille:
            return f"the order of versions is known for {known / 10:g} % of the writes, {limits.known_permille / 10:g} % are needed"
    return None


def _broken_reason(broken: Sequence[PromiseVerdict], judgements: Sequence[Judgement]) -> str:
    names = {name for each in broken for name in forbidden(each.promise)}
    findings = [finding for each in judgements for finding in each.findings if finding.anomaly in names]
    worst = findings[0]
    times = f" {worst.count} times" if worst.count > 1 else ""
    others = sorted({finding.anomaly for finding in findings} - {worst.anomaly})
    beside = f", beside {', '.join(others[:3])}{' and more' if len(others) > 3 else ''}" if others else ""
    return f"{worst.anomaly}{times}{beside}: {', '.join(each.promise.id for each in broken)} broken"
