"""The exposure of many runs of one cluster, summed, and the clauses of vacuity that apply to it.

A run is vacuous if a fault of its plan overlapped no operation. Some of many runs always are: a pause may freeze every
node. So a sweep is judged by sums. A kind of fault is exercised if, over all runs of the cluster, it took effect and
overlapped enough operations; a promise, if its witnesses add up to enough.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from checkers.verdict.compose import (
    PlannedFault,
    PromiseState,
    PromiseVerdict,
    RunFacts,
    Thresholds,
    Vacuity,
    shortfalls,
)
from harness.core.promises import Promise
from harness.core.verdict import Verdict
from harness.core.wording import counted
from harness.judging.judge import SETTLED
from harness.report.model import Exposed, Report

T = TypeVar("T")

LIMITS: Final = Thresholds(met_by_fault=5)
ENDED_PERCENT: Final = 90  # The least share of runs that came to their end: with fewer, too few had final reads.
ORDER: Final = ("violated", "unknown", "not-exercised", "holds")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSum:
    """A kind of fault over all runs: steps planned, begun and with effect.

    `met` are operations that were open during a step with effect, `completed` those that ended in any step. `is_long`:
    some step was long enough that operations should complete in it.
    """

    kind: str
    planned: int
    begun: int
    effective: int
    met: int
    completed: int
    is_long: bool

    @property
    def is_exercised(self) -> bool:
        """True if it took effect, and overlapped enough operations."""
        is_answered = not self.is_long or self.completed >= LIMITS.completed_in_fault
        return self.effective > 0 and self.met >= LIMITS.met_by_fault and is_answered


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseSum:
    """A promise over all runs. `counts` are runs by their verdict on it, `reason` is why it is not decided."""

    id: str
    text: str
    source: str
    is_purpose: bool
    state: PromiseState
    witnesses: int
    counts: dict[str, int]
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """The exposure of many runs of one cluster; `vacuities` are the clauses by which it is too little."""

    faults: tuple[FaultSum, ...]
    promises: tuple[PromiseSum, ...]
    vacuities: tuple[Vacuity, ...]


def exposure_of(reports: Sequence[Report]) -> Exposure:
    """The exposure of runs of one cluster. Runs in which the harness failed do not count."""
    judged = [report for report in reports if report.verdict != Verdict.ERROR.value]
    known = [report.exposure for report in judged if report.exposure is not None]
    faults, promises = tuple(_faults(judged, known)), tuple(promise_sums(judged))
    own = [each for each in promises if each.id != SETTLED.id]
    states = [state_of(each) for each in own]
    return Exposure(faults=faults, promises=promises, vacuities=shortfalls(states, facts_of(faults, known), LIMITS))


def _faults(reports: Sequence[Report], known: Sequence[Exposed]) -> Iterable[FaultSum]:
    for kind, rows in _grouped((row.kind, row) for report in reports for row in report.faults).items():
        yield FaultSum(
            kind=kind,
            planned=sum(row.planned for row in rows),
            begun=sum(row.begun for row in rows),
            effective=sum(row.effective for row in rows),
            met=sum(each.met.get(kind, 0) for each in known),
            completed=sum(row.ok + row.fail + row.info for row in rows),
            is_long=any(kind in each.long for each in known),
        )


def promise_sums(reports: Sequence[Report]) -> Iterable[PromiseSum]:
    """The promises of those runs, each summed over all of them."""
    purposes = {name for report in reports if report.exposure is not None for name in report.exposure.purposes}
    for every in _grouped((row.id, row) for report in reports for row in report.promises).values():
        first = every[0]
        counts, witnesses = Counter(row.verdict for row in every), sum(row.witnesses for row in every)
        state, reason = _summed(counts, witnesses)
        if state is PromiseState.UNKNOWN:
            reason = next((row.reason for row in every if row.verdict == state.value), reason)
        yield PromiseSum(
            id=first.id,
            text=first.text,
            source=first.source,
            is_purpose=first.id in purposes,
            state=state,
            witnesses=witnesses,
            counts={word: counts[word] for word in ORDER if counts[word]},
            reason=reason,
        )


def _grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """The values by key, in order of first appearance."""
    groups: dict[str, list[T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def _summed(counts: Mapping[str, int], witnesses: int) -> tuple[PromiseState, str | None]:
    """The state of a promise over all runs, and the reason unless it holds or is violated."""
    for state in (PromiseState.VIOLATED, PromiseState.UNKNOWN):
        if counts.get(state.value):
            return state, None
    if witnesses >= LIMITS.witnesses:
        return PromiseState.HOLDS, None
    return (
        PromiseState.NOT_EXERCISED,
        f"{witnesses} of at least {LIMITS.witnesses} witnesses in {counted(sum(counts.values()), 'run')}",
    )


def state_of(each: PromiseSum) -> PromiseVerdict:
    """A sum in the form of one run's verdict on the promise."""
    promise = Promise(id=each.id, text=each.text, source=each.source, forbids=(), is_purpose=each.is_purpose)
    return PromiseVerdict(promise=promise, state=each.state, witnesses=each.witnesses, reason=each.reason)


def facts_of(faults: Sequence[FaultSum], known: Sequence[Exposed]) -> RunFacts:
    """The sums over all runs, in the form of one run's facts."""
    ok = Counter[str]()
    for each in known:
        ok.update(dict.fromkeys(each.ok_by_type, 0) | each.ok_by_type)
    marks = [each.watermarks_with_writes for each in known if each.watermarks_with_writes is not None]
    ended = sum(each.has_end for each in known)
    is_short = ended * 100 < ENDED_PERCENT * len(known)
    return RunFacts(
        ok_by_type=ok,
        faults=tuple(map(_as_one, faults)),
        incomplete=f"{ended} of {len(known)} runs had one, fewer than {ENDED_PERCENT} %" if is_short else None,
        known_versions=sum(each.known_versions for each in known),
        all_versions=sum(each.all_versions for each in known),
        watermarks_with_writes=sum(marks) if marks else None,
    )


def _as_one(fault: FaultSum) -> PlannedFault:
    """A kind of fault as one fault, with the length of its longest step if that took effect."""
    return PlannedFault(
        name=fault.kind,
        has_begun=fault.begun > 0,
        effect=fault.effective,
        duration_ns=LIMITS.fault_ns if fault.is_long and fault.effective else 0,
        overlapping=fault.met,
        completed=fault.completed,
    )
