"""Shrinks a run: from its folder to a new, small run in the store, with texts to understand it and a test to keep."""

from collections.abc import Callable, Iterable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree

import msgspec

from harness.core.errors import HistoryError, ScenarioError, known
from harness.judging.engines import EngineFor
from harness.record.store import RUN_FILE, one_writer, read_run_file, write_atomically
from harness.report.model import FindingRow, Report, read_report
from harness.report.shrunk import SHRUNK_FILE, Origin
from harness.run.carry_out import carry_out
from harness.run.code import code_digest
from harness.run.recorded import script_of
from harness.run.running import prepare, versions
from harness.scenario.consent import Code
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario, scenario_of
from harness.shrink.case import Case, Size
from harness.shrink.dependable import Shown, dependable
from harness.shrink.evidence import evidence_of
from harness.shrink.passes import shrink
from harness.shrink.regression import regression_test, script_text, test_name
from harness.shrink.search import Exhausted, Search
from harness.shrink.trial import Trials, hits, shows
from nemesis.plan import Plan
from nemesis.validation import plan_to_json

PLAN_FILE = "plan.json"
SCRIPT_FILE = "script.txt"
CONFIRMATIONS = 2  # The runs at the end, for each run of a candidate: the outcome of hundreds of trials is in doubt.


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
    """The smallest run found: its `report`, and its size before and after. `test` is the pytest file.

    `shown` is how often runs in containers show the symptom; None for a simulation, which is the same each time.
    """

    symptom: str
    before: Size
    after: Size
    tries: int
    is_exhausted: bool
    shown: Shown | None
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
        smallest, shown = _confirmed(search, trials, tries)
        sizes = _sizes(case.size(), smallest.size())
        origin = Origin(run=str(orders.run), tries=search.tries, sizes=sizes)
        report, test = _stored(smallest, shown, origin, orders, finding, engine)
        return Shrunk(
            symptom=finding.symptom,
            before=case.size(),
            after=smallest.size(),
            tries=search.tries,
            is_exhausted=is_exhausted,
            shown=shown,
            report=report,
            test=str(test),
        )


def _confirmed(search: Search, trials: Trials, notes: Path) -> tuple[Case, Shown | None]:
    """The smallest case that shows the symptom in new runs, and how often runs in containers do.

    Raises ScenarioError if none does; HistoryError, and removes the notes, if they call a simulation red that is not.
    """
    if search.case.scenario.runtime != "sim":
        runs = trials.times * CONFIRMATIONS
        smallest, shown = dependable(search.path, lambda case: hits(trials, case, runs), runs, trials.rate)
        if not shown.hits:
            raise ScenarioError(f"{notes.parent}: none of {runs} more runs shows {trials.symptom}: raise --times")
        return smallest, shown
    if search.case != search.path[0] and not search.shows_now():
        notes.unlink(missing_ok=True)
        wrong = f"its notes say that a run shows {trials.symptom} which does not"
        raise HistoryError(f"{notes}: {wrong}; they are removed, and the same command begins anew")
    return search.case, None


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


def _stored(
    case: Case, shown: Shown | None, origin: Origin, orders: Orders, finding: FindingRow, engine: EngineFor
) -> tuple[Report, Path]:
    """Carry the case out as a run of the store, and write the texts and the test beside its report."""
    for left in reversed(range(1 if shown is None else shown.repetitions())):
        run, _ = prepare(case.scenario, orders.code, orders.run.parent.parent, case.plan)
        write_atomically(run / SHRUNK_FILE, msgspec.json.encode(origin) + b"\n")
        report = carry_out(run, orders.code, engine)
        found = next((each for each in report.findings if each.symptom == finding.symptom), None)
        if found is not None or not left:
            break
        rmtree(run)  # Its operations are those of the next one, which may show the symptom.
    write_atomically(run / PLAN_FILE, plan_to_json(case.plan).encode() + b"\n")
    write_atomically(run / SCRIPT_FILE, script_text(case).encode())
    test = run / f"{test_name(finding)}.py"
    write_atomically(test, regression_test(case, found or finding, orders.code, shown).encode())
    return report, test


def lines(shrunk: Shrunk) -> Iterable[str]:
    """The outcome for people: sizes before and after."""
    for what, (one, other) in _sizes(shrunk.before, shrunk.after).items():
        yield f"  {what:<12}{one:>10,g}  to {other:,g}"
    if shrunk.shown is not None:
        yield f"  seen in {shrunk.shown.hits} of {shrunk.shown.runs} runs of it"


def _sizes(before: Size, after: Size) -> dict[str, tuple[float, float]]:
    return {
        "fault steps": (before.steps, after.steps),
        "operations": (before.operations, after.operations),
        "keys": (before.keys, after.keys),
        "processes": (before.processes, after.processes),
        "seconds": (before.seconds, after.seconds),
    }
