"""Carries out one candidate, and finds the symptoms that it shows."""

from pathlib import Path

import msgspec

from harness.core.errors import SeamarkError
from harness.judging.engines import in_threads
from harness.record.ownership import temporary_folder
from harness.record.store import JOURNAL, RUN_FILE, write_run_file
from harness.report.model import Report
from harness.run.running import execute, finish, prepare
from harness.run.single import judge_run
from harness.runtimes.simulation.child import Onlooker, record_run
from harness.scenario.consent import Code
from harness.shrink.case import Case


class Trials(msgspec.Struct, frozen=True, kw_only=True):
    """How to try candidates: the code, `place`, a folder beside which temporary runs are made, and the rule.

    Only `promise` is judged, if one is named. A candidate counts if at least `rate` of `times` runs show the symptom;
    in the simulation one run is enough.
    """

    code: Code
    place: Path
    symptom: str
    promise: str | None = None
    times: int = 1
    rate: float = 1.0


def shows(trials: Trials, case: Case) -> bool:
    """True if the candidate shows the symptom. One that cannot be carried out shows none."""
    least, hits = trials.times * trials.rate, 0
    for left in reversed(range(trials.times)):
        hits += trials.symptom in symptoms(case, trials.code, trials.place, trials.promise)
        if hits >= least:
            return True
        if hits + left < least:
            return False
    return False


def hits(trials: Trials, case: Case, runs: int) -> int:
    """How many of that many runs of the case show the symptom."""
    return sum(trials.symptom in symptoms(case, trials.code, trials.place, trials.promise) for _ in range(runs))


def symptoms(case: Case, code: Code, place: Path, promise: str | None = None) -> frozenset[str]:
    """The symptoms of a run of that case; none if it cannot be carried out."""
    try:
        return frozenset(finding.symptom for finding in carried_out(case, code, place, promise).findings)
    except (SeamarkError, ExceptionGroup):
        return frozenset()


def carried_out(case: Case, code: Code, place: Path, promise: str | None, onlooker: Onlooker | None = None) -> Report:
    """The report on a run of that case, whose files are removed afterwards.

    A simulation runs in this process, which saves the start of an interpreter. `onlooker` follows it from inside."""
    with temporary_folder("shrink", place) as store:
        run, run_file = prepare(case.scenario, code, store, case.plan)
        if promise is not None:  # Checks for other promises would take most of the time.
            kept = tuple(each for each in run_file.promises if each.id == promise)
            write_run_file(run, msgspec.structs.replace(run_file, promises=kept))
        if case.scenario.runtime == "sim":
            record_run(run / RUN_FILE, run / JOURNAL, code, onlooker=onlooker)
        else:
            execute(run, code)
        finish(run)
        return judge_run(run, in_threads, code=code)
