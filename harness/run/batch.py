"""Many runs of one scenario with consecutive seeds, in several processes; each run is judged in its own process.

The unit of distribution is the run. In a run, kernels run locally. A run with findings is judged again by the requested
engine before it is reported, and a disagreement between the two is an error of ours.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from checkers.engine.datasets import Engine
from harness.core.errors import ScenarioError
from harness.core.verdict import Verdict, worst
from harness.core.wording import counted
from harness.judging.engines import EngineFailed, in_threads
from harness.judging.way_out import LONGER, SECONDS_MAX
from harness.record.store import create_run, write_atomically
from harness.report.batch_page import Summary, batch_page
from harness.report.junit import junit
from harness.report.model import REPORT_FILE, Report, WayOut, error_report
from harness.report.trouble import in_one_line
from harness.run.carry_out import carry_out
from harness.run.pool import LocalPool, results
from harness.run.running import prepare
from harness.run.single import JUNIT_FILE, PAGE_FILE, encoded, judge_run, store_report
from harness.scenario.command import command_of
from harness.scenario.consent import Code
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan

BATCHES = "batches"  # The folder of batches in the store.
CAMPAIGN_RUNS = 50  # From this count on, a goal that was never reached is significant: clause d of vacuity.


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a batch. `planned` runs were requested; if fewer were begun, `stopped` says why."""

    verdict: str
    exit_code: int
    reason: str
    clause: str | None = None
    planned: int
    stopped: str | None = None
    counts: dict[str, int]
    runs: tuple[Report, ...]
    seconds: float
    page: str | None = None  # The path of the page about all runs.
    way_out: WayOut | None = None  # What to run after a batch without a finding.

    def summary(self) -> Summary:
        """The summary of the whole batch for its page."""
        return Summary(
            verdict=self.verdict,
            exit_code=self.exit_code,
            reason=self.reason,
            clause=self.clause,
            planned=self.planned,
            stopped=self.stopped,
            seconds=self.seconds,
            way_out=self.way_out,
        )


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a batch.

    `time_budget_s`: begin no run after that time. `min_runs`: with fewer it is vacuous.
    """

    scenario: Scenario
    code: Code
    count: int
    jobs: int
    store: Path
    plan: Plan | None = None
    model: str | None = None
    is_twice: bool = False
    until_found: bool = False
    fail_fast: bool = False
    time_budget_s: float | None = None
    min_runs: int = 1


def run_batch(orders: Orders, engine: Callable[[], Engine] | None, tell: Callable[[Report], None]) -> Batch:
    """Carry out the runs, call `tell` with each report as it arrives, and return the outcome.

    `engine` judges runs with findings again; None: no second judgement.
    """
    started = time.monotonic()
    reports: list[Report] = []
    stopped: str | None = None
    seeds = iter(range(orders.scenario.seed, orders.scenario.seed + orders.count))

    def following() -> int | None:
        return next(seeds, None) if stopped is None else None

    with LocalPool(partial(_one, orders), orders.jobs) as pool:
        for seed, result in results(pool, following):
            report = _confirmed(_report(seed, result), engine, orders)
            reports.append(report)
            tell(report)
            stopped = stopped or _why_stop(orders, reports, time.monotonic() - started)
    reports.sort(key=lambda report: report.seed or 0)
    return _stored(orders, _composed(orders, reports, stopped, time.monotonic() - started))


def _stored(orders: Orders, batch: Batch) -> Batch:
    """The batch, stored in its folder: the page about all runs, junit.xml, and the batch as JSON."""
    folder = create_run(orders.store, BATCHES, orders.scenario.seed)
    stored = msgspec.structs.replace(batch, page=str(folder / PAGE_FILE))
    write_atomically(folder / PAGE_FILE, encoded(batch_page(batch.summary(), batch.runs, folder)))
    write_atomically(folder / JUNIT_FILE, junit(batch.runs, suite=orders.scenario.cluster, vacuous=_vacuous(batch)))
    write_atomically(folder / REPORT_FILE, msgspec.json.format(msgspec.json.encode(stored, order="sorted"), indent=1))
    return stored


def _vacuous(batch: Batch) -> str | None:
    """The reason why the batch as a whole is vacuous; None if it is not."""
    return batch.reason if batch.verdict == Verdict.VACUOUS.value else None


def _one(orders: Orders, seed: int) -> Report:
    """The report of one run, made in a process of the pool."""
    scenario = msgspec.structs.replace(orders.scenario, seed=seed)
    run, _ = prepare(scenario, orders.code, orders.store, orders.plan)
    return carry_out(
        run,
        orders.code,
        in_threads,
        model=orders.model,
        is_twice=orders.is_twice,
        is_fail_fast=orders.fail_fast,
        is_traced=False,
    )


def _report(seed: int, result: Report | Exception) -> Report:
    """A run's report; a failure of the harness itself becomes a report as well, and the other runs count all the same.

    Raises ScenarioError: an error in one scenario is an error in all.
    """
    if isinstance(result, ScenarioError):
        raise result
    return error_report(in_one_line(result), seed=seed) if isinstance(result, Exception) else result


def _confirmed(report: Report, engine: Callable[[], Engine] | None, orders: Orders) -> Report:
    """The report; one with findings as the other engine judges the run."""
    if report.verdict != Verdict.INVALID.value or engine is None or report.run is None:
        return report
    try:
        again = judge_run(Path(report.run), lambda _: engine(), model=orders.model, code=orders.code)
    except EngineFailed as error:
        return _as_error(report, f"not confirmed, {error}; found in threads: {report.reason}")
    if _fingerprints(again) == _fingerprints(report):
        return store_report(Path(report.run), again)
    if again.verdict == Verdict.ERROR.value:
        reason = f"not confirmed, {again.reason}; found in threads: {report.reason}"
    else:
        reason = f"the engines disagree: {_fingerprints(report)} in threads, {_fingerprints(again)} on Spark"
    return _as_error(report, reason)


def _as_error(report: Report, reason: str) -> Report:
    return msgspec.structs.replace(
        report, verdict=Verdict.ERROR.value, exit_code=Verdict.ERROR.exit_code, reason=reason
    )


def _fingerprints(report: Report) -> list[str]:
    return sorted(finding.fingerprint for finding in report.findings)


def _why_stop(orders: Orders, reports: list[Report], elapsed_s: float) -> str | None:
    verdicts = {report.verdict for report in reports}
    if orders.until_found and Verdict.INVALID.value in verdicts:
        return "an anomaly was found"
    if orders.fail_fast and verdicts - {Verdict.VALID.value}:
        return "a run did not pass"
    if orders.time_budget_s is not None and elapsed_s > orders.time_budget_s:
        return f"the time budget of {orders.time_budget_s:g} s is used up"
    return None


def _composed(orders: Orders, reports: list[Report], stopped: str | None, took_s: float) -> Batch:
    verdict = worst([Verdict(report.verdict) for report in reports])
    counts = {each.value: sum(report.verdict == each.value for report in reports) for each in Verdict}
    shown = ", ".join(f"{counts[each.value]} {each.word}" for each in Verdict if counts[each.value])
    made = counted(len(reports), "run") if len(reports) == orders.count else f"{len(reports)} of {orders.count} runs"
    reason, clause = f"{made}: {shown}", next(_clauses(reports, verdict), None)
    declared = tuple(dict.fromkeys(goal for report in reports for goal in report.goals))
    unmet = unmet_goals([report.goals for report in reports], declared)
    if unmet and verdict in (Verdict.VALID, Verdict.UNKNOWN):
        verdict, clause = Verdict.VACUOUS, "d"
        reason += f"; never reached: {', '.join(unmet)}"
    if len(reports) < orders.min_runs and verdict in (Verdict.VALID, Verdict.UNKNOWN):
        verdict, clause = Verdict.VACUOUS, "d"
        reason += f"; fewer than --min-runs {orders.min_runs}"
    return Batch(
        verdict=verdict.value,
        exit_code=verdict.exit_code,
        reason=reason,
        clause=clause,
        planned=orders.count,
        stopped=stopped,
        counts=counts,
        runs=tuple(reports),
        seconds=round(took_s, 1),
        way_out=_way_out(orders, verdict, reports),
    )


def _way_out(orders: Orders, verdict: Verdict, reports: Sequence[Report]) -> WayOut | None:
    """What to run after a batch that found nothing: the same with more time, or with other seeds."""
    if verdict in (Verdict.INVALID, Verdict.ERROR) or orders.plan is not None:
        return None
    if verdict is Verdict.VACUOUS and len(reports) < orders.min_runs:
        return WayOut(sentence=f"Give it more time with --time-budget, or ask for fewer runs than {orders.min_runs}.")
    scenario = msgspec.structs.replace(orders.scenario, seed=orders.scenario.seed + orders.count)
    sentence = "Other seeds test more."
    if verdict is Verdict.VACUOUS:
        scenario = msgspec.structs.replace(scenario, time_s=min(LONGER * scenario.time_s, SECONDS_MAX))
        sentence = "Run longer; a sweep adds up what many runs tested, and one vacuous run decides nothing there."
    return WayOut(sentence=sentence, command=f"{command_of(scenario)} --count {orders.count}")


def _clauses(reports: list[Report], verdict: Verdict) -> Iterator[str]:
    return (report.clause for report in reports if report.clause and report.verdict == verdict.value)


def unmet_goals(runs: Sequence[Mapping[str, int]], declared: Sequence[str]) -> tuple[str, ...]:
    """The declared goals that no run of a campaign reached; none if the campaign is too short to tell."""
    if len(runs) < CAMPAIGN_RUNS:
        return ()
    return tuple(goal for goal in declared if not any(run.get(goal, 0) for run in runs))
