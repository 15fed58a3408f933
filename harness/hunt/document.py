"""hunt.json as a value: the outcome of a hunt, for the page and for other tools."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from checkers.verdict.compose import PromiseState
from harness.campaign.exposure import exposure_of
from harness.campaign.outcome import utc_now
from harness.core.verdict import Verdict
from harness.core.wording import counted
from harness.hunt.rows import Row, is_trouble
from harness.hunt.search import Begun, Limits, Result
from harness.report.model import Report
from harness.run.batch import unmet_goals
from harness.shrink.case import Size

HUNT_SCHEMA: Final = 1
HUNT_FILE: Final = "hunt.json"
EVERY: Final = 100  # New features are counted for each group of this many runs.
POINT: Final = "point:"


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal or failpoint that the cluster declares: how many runs reached it, and the first one; None if none did."""

    name: str
    is_point: bool
    runs: int
    first: int | None


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A run that reached some feature first: the number of such features, and some of them, the rarest first."""

    number: int
    origin: str
    parents: tuple[int, ...]
    seed: int
    steps: int
    new: int
    rarest: tuple[str, ...]


class Trophy(msgspec.Struct, frozen=True, kw_only=True):
    """The new finding, from run `number`. `run` is its folder in the store, `small` that of the shrunk run."""

    symptom: str
    anomaly: str
    promise: str | None
    sentence: str
    fingerprint: str
    number: int
    run: str
    command: str
    small: str | None = None
    test: str | None = None
    before: Size | None = None
    after: Size | None = None


class Hunt(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a hunt of at most `planned` runs. `stopped`: why it ended early without a new finding.

    `new` has the number of features that each hundred of runs reached first. `known` counts runs by the known symptoms
    that they showed, `trouble` has the reasons of runs that failed.
    """

    schema: int = HUNT_SCHEMA
    verdict: str
    exit_code: int
    reason: str
    cluster: str
    workload: str | None
    bugs: tuple[str, ...]
    seed: int
    time_s: float
    started_utc: str
    finished_utc: str
    versions: dict[str, str]
    planned: int
    runs: int
    stopped: str | None
    seconds: float  # Real time, over all sessions of a resumed hunt.
    hours: float  # The runs' own time.
    counts: dict[str, int]  # Runs by their own verdict.
    features: int
    new: tuple[int, ...]
    goals: tuple[Goal, ...]
    corpus: tuple[Member, ...]
    found: Trophy | None = None
    known: dict[str, int] = {}
    trouble: tuple[str, ...] = ()
    folder: str | None = None


def hunt_of(begun: Begun, result: Result, found: Trophy | None) -> Hunt:
    """The document of a hunt that has ended."""
    rows, order = result.rows, begun.order
    limits = order.limits
    reports = [row.report for row in rows]
    verdict, reason = _outcome(result, found, limits)
    return Hunt(
        verdict=verdict.value,
        exit_code=verdict.exit_code,
        reason=reason,
        cluster=begun.code.name,
        workload=order.scenario.workload,
        bugs=order.scenario.bugs,
        seed=order.seed,
        time_s=order.scenario.time_s,
        started_utc=order.started_utc,
        finished_utc=utc_now(),
        versions=order.versions,
        planned=limits.runs,
        runs=len(rows),
        stopped=result.stopped,
        seconds=max((row.elapsed_s for row in rows), default=0.0),
        hours=round(sum(report.duration_s or 0.0 for report in reports) / 3600, 4),
        counts={each.value: sum(report.verdict == each.value for report in reports) for each in Verdict},
        features=len(result.corpus.counts),
        new=_per_hundred(rows),
        goals=tuple(_goals(rows)),
        corpus=_members(result),
        found=found,
        known=_known(rows, frozenset(order.known)),
        trouble=tuple(dict.fromkeys(report.reason for report in reports if is_trouble(report))),
        folder=str(begun.folder),
    )


def _outcome(result: Result, found: Trophy | None, limits: Limits) -> tuple[Verdict, str]:
    """The verdict and its reason: a new finding, a failure, or how much all runs together exercised.

    Known findings do not count.
    """
    reports = [row.report for row in result.rows]
    made = counted(len(reports), "run")
    if found is not None:
        return Verdict.INVALID, f"run {found.number + 1} of at most {limits.runs:,} shows {found.symptom}"
    failed = [report.reason for report in reports if is_trouble(report)]
    if failed:
        return Verdict.ERROR, f"{len(failed):,} of {made} failed; {failed[0]}"
    if not reports:
        return Verdict.VACUOUS, "no run was made"
    exposure = exposure_of(reports)
    unmet = _unmet(reports)
    early = f"; ended early: {result.stopped}" if result.stopped else ""
    if exposure.vacuities or unmet:
        why = exposure.vacuities[0].sentence if exposure.vacuities else f"never reached: {', '.join(unmet)}"
        return Verdict.VACUOUS, f"nothing new in {made}, and {why}{early}"
    unknown = [each for each in exposure.promises if each.state is PromiseState.UNKNOWN]
    if unknown:
        return Verdict.UNKNOWN, f"{unknown[0].id} could not be decided: {unknown[0].reason}{early}"
    held = [each for each in exposure.promises if each.state is PromiseState.HOLDS]
    if not held:
        return (
            Verdict.VACUOUS,
            f"nothing new in {made}, and no promise was exercised that no known finding breaks{early}",
        )
    times = sum(each.witnesses for each in held)
    held_text = f"{counted(len(held), 'promise')} held, witnessed {times:,} times"
    return Verdict.VALID, f"nothing new in {made}; {held_text}{early}"


def _unmet(reports: Sequence[Report]) -> tuple[str, ...]:
    goals = [report.goals for report in reports]
    return unmet_goals(goals, tuple(dict.fromkeys(goal for each in goals for goal in each)))


def _per_hundred(rows: Sequence[Row]) -> tuple[int, ...]:
    return tuple(sum(len(row.new) for row in rows[start : start + EVERY]) for start in range(0, len(rows), EVERY))


def _goals(rows: Sequence[Row]) -> list[Goal]:
    """All declared goals and failpoints, those that fewest runs reached first."""
    names = dict.fromkeys(name for row in rows for name in row.report.goals)
    made = []
    for name in names:
        numbers = [row.number for row in rows if row.report.goals.get(name, 0)]
        goal = Goal(
            name=name.removeprefix(POINT),
            is_point=name.startswith(POINT),
            runs=len(numbers),
            first=min(numbers, default=None),
        )
        made.append(goal)
    return sorted(made, key=lambda goal: (goal.runs, goal.name))


def _members(result: Result) -> tuple[Member, ...]:
    """The runs of the corpus, the latest first."""
    counts, names = result.corpus.counts, list(result.corpus.numbers)
    rows = {row.number: row for row in result.rows}
    made = []
    for entry in reversed(result.corpus.entries):
        row = rows[entry.number]
        rarest = sorted(entry.new, key=lambda feature: (counts[feature], feature))[:3]
        made.append(
            Member(
                number=entry.number,
                origin=row.origin,
                parents=row.parents,
                seed=entry.case.scenario.seed,
                steps=len(entry.case.plan.steps),
                new=len(entry.new),
                rarest=tuple(names[feature] for feature in rarest),
            )
        )
    return tuple(made)


def _known(rows: Sequence[Row], known: frozenset[str]) -> dict[str, int]:
    """For each known symptom the number of runs that showed it."""
    shown: Counter[str] = Counter()
    for row in rows:
        new = {finding.symptom for finding in row.findings(known)}
        shown.update({each.symptom for each in row.report.findings if each.promise} - new)
    return dict(sorted(shown.items()))


def hunt_to_json(hunt: Hunt) -> bytes:
    """hunt.json as indented text."""
    return msgspec.json.format(msgspec.json.encode(hunt, order="sorted"), indent=1) + b"\n"


def file_of(folder: Path) -> Path:
    """The path of hunt.json in a hunt's folder."""
    return folder / HUNT_FILE
