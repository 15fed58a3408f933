"""Shrinks a run: from its folder to a new, small run in the store, with texts to understand it and a test to keep."""

from collections.abc import Callable, Iterable
from functools import partial
from hashlib import blake2b
from pathlib import Path

import msgspec

from harness.core.errors import HistoryError, ScenarioError, SeamarkError, known
from harness.judging.engines import EngineFor
from harness.record.store import RUN_FILE, one_writer, read_run_file, write_atomically
from harness.report.model import FindingRow, Report, read_report
from harness.report.shrunk import SHRUNK_FILE, Origin
from harness.run.code import code_digest
from harness.run.recorded import script_of
from harness.run.running import prepare, versions
from harness.run.single import carry_out
from harness.scenario.consent import Code
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario, scenario_of
from harness.shrink.case import Case, Size
from harness.shrink.evidence import evidence_of
from harness.shrink.passes import shrink
from harness.shrink.regression import regression_test, script_text, test_name
from harness.shrink.search import Exhausted, Search
from harness.shrink.trial import Trials, shows
from nemesis.plan import Plan
from nemesis.validation import plan_to_json

PLAN_FILE = "plan.json"
SCRIPT_FILE = "script.txt"


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a shrink. `symptom` is a symptom or anomaly of one of the run's findings; None: of the first.

    At most `tries` candidates are tried, `jobs` at once. In containers each is run `times` times, and counts if at
    least `rate` of these runs show the symptom.
    """

    run: Path
    code: Code
    symptom: str | None = None
    jobs: int = 2
    tries: int = 3000
    times: int = 1
    rate: float = 1.0


class Shrunk(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest run found: its `report`, and its size before and after. `test` is the pytest file."""

    symptom: str
    before: Size
    after: Size
    tries: int
    is_exhausted: bool
    report: Report
    test: str


def shrunk(orders: Orders, engine: EngineFor, tell: Callable[[Size, int], None]) -> Shrunk:
    """Shrink the run, and store the smallest one beside it. `tell` gets the size so far and the number of tries.

    Raises ScenarioError if the run has no such finding, or if repeating its operations does not show it; HistoryError
    if notes of earlier tries are wrong.
    """
    run_file = read_run_file(orders.run / RUN_FILE)
    finding = _finding(orders.run, orders.symptom)
    scenario = scenario_of(run_file, orders.run / RUN_FILE)
    place = orders.run.parent.parent
    trials = Trials(
        code=orders.code,
        place=place,
        symptom=finding.symptom,
        promise=finding.promise,
        times=orders.times,
        rate=orders.rate,
    )
    lows = {each.name: each.low for each in load_cluster(orders.code, run_file.code_sha256).parameters}
    case = _recorded(orders.run, scenario, {name: run_file.parameters[name] for name in lows}, run_file.plan)
    tries = _tries_file(orders.run, trials)
    with (
        one_writer(orders.run),
        Search(case, partial(shows, trials), tries, jobs=orders.jobs, tries=orders.tries, tell=tell) as search,
    ):
        if not search.shows_now():
            again = "its operations, carried out again, do not show"
            raise ScenarioError(f"{orders.run}: {again} {finding.symptom}: there is nothing to shrink from")
        is_exhausted = False
        try:
            shrink(search, evidence_of(orders.run, finding), lows)
        except Exhausted:
            is_exhausted = True
        if search.case != case and not search.shows_now():
            raise _unconfirmed(tries, finding, orders)
        sizes = _sizes(case.size(), search.case.size())
        origin = Origin(run=str(orders.run), tries=search.tries, sizes=sizes)
        report, test = _stored(search.case, origin, orders, finding, engine)
        return Shrunk(
            symptom=finding.symptom,
            before=case.size(),
            after=search.case.size(),
            tries=search.tries,
            is_exhausted=is_exhausted,
            report=report,
            test=str(test),
        )


def _unconfirmed(notes: Path, finding: FindingRow, orders: Orders) -> SeamarkError:
    """The error that the smallest run does not show the finding when it is run once more. Wrong notes are removed."""
    if orders.times > 1:
        return ScenarioError(f"{orders.run}: its smallest run does not show {finding.symptom} each time: raise --times")
    notes.unlink(missing_ok=True)
    wrong = f"its notes say that a run shows {finding.symptom} which does not"
    return HistoryError(f"{notes}: {wrong}; they are removed, and the same command begins anew")


def _finding(run: Path, chosen: str | None) -> FindingRow:
    """The finding to shrink. Raises ScenarioError if none has that symptom or anomaly."""
    report = read_report(run)
    if report is None or not report.findings:
        raise ScenarioError(f"{run}: has no finding, and nothing to shrink; seamark check judges it again")
    if chosen is None:
        return next((each for each in report.findings if each.promise), report.findings[0])
    names = tuple(dict.fromkeys([name for each in report.findings for name in (each.symptom, each.anomaly)]))
    known(chosen, names, "finding")
    return next(each for each in report.findings if chosen in {each.symptom, each.anomaly})


def _recorded(run: Path, scenario: Scenario, parameters: dict[str, int], plan: Plan) -> Case:
    """The run as a case.

    The choices of its seed are written out, so that another seed changes only delays and choices of nodes.
    """
    script = scenario.script or script_of(run, scenario.clients)
    return Case(scenario=msgspec.structs.replace(scenario, script=script, parameters=parameters), plan=plan)


def _tries_file(run: Path, trials: Trials) -> Path:
    """The file that keeps the results of tries, for this code, symptom and rule only."""
    parts = (versions(), code_digest([trials.code]), trials.code.name, trials.symptom, trials.times, trials.rate)
    digest = blake2b(msgspec.msgpack.encode(parts, order="sorted"), digest_size=6).hexdigest()
    return run / f"shrink-{digest}.jsonl"


def _stored(case: Case, origin: Origin, orders: Orders, finding: FindingRow, engine: EngineFor) -> tuple[Report, Path]:
    """Carry the case out as a run of the store, and write the texts and the test beside its report."""
    run, _ = prepare(case.scenario, orders.code, orders.run.parent.parent, case.plan)
    write_atomically(run / SHRUNK_FILE, msgspec.json.encode(origin) + b"\n")
    report = carry_out(run, orders.code, engine)
    write_atomically(run / PLAN_FILE, plan_to_json(case.plan).encode() + b"\n")
    write_atomically(run / SCRIPT_FILE, script_text(case).encode())
    shown = next((each for each in report.findings if each.symptom == finding.symptom), finding)
    test = run / f"{test_name(finding)}.py"
    write_atomically(test, regression_test(case, shown, orders.code).encode())
    return report, test


def lines(shrunk: Shrunk) -> Iterable[str]:
    """The outcome for people: sizes before and after."""
    for what, (one, other) in _sizes(shrunk.before, shrunk.after).items():
        yield f"  {what:<12}{one:>10,g}  to {other:,g}"


def _sizes(before: Size, after: Size) -> dict[str, tuple[float, float]]:
    return {
        "fault steps": (before.steps, after.steps),
        "operations": (before.operations, after.operations),
        "keys": (before.keys, after.keys),
        "processes": (before.processes, after.processes),
        "seconds": (before.seconds, after.seconds),
    }
