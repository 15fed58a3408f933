"""Repeats the operations and faults of a run with another version of its cluster, to see if the bug is still there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.core.command import seamark
from harness.core.errors import ScenarioError
from harness.core.seams import Cluster
from harness.core.wording import counted
from harness.judging.engines import EngineFor
from harness.record.store import RUN_FILE, RunFile, read_run_file
from harness.report.model import Report, read_report
from harness.run.carry_out import carry_out
from harness.run.live import Watcher
from harness.run.recorded import script_of
from harness.run.running import prepare
from harness.scenario.consent import Code, place_of
from harness.scenario.registry import code_sha256_of, load_cluster
from harness.scenario.scenario import WORKLOAD_SHAPE, Scenario, scenario_of


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to a run: the code of its cluster, and optionally planted bugs and options.

    `times` runs are made, each with another seed, as other delays can hide a bug.
    """

    code: Code
    bugs: tuple[str, ...] | None = None
    options: dict[str, str] = {}
    times: int = 1


class Anew(msgspec.Struct, frozen=True, kw_only=True):
    """The reports on the new runs, and `before`, the symptoms of the old one.

    `dropped` is what the other version lacks.
    """

    before: tuple[str, ...]
    reports: tuple[Report, ...]
    dropped: tuple[str, ...]

    @property
    def shown(self) -> Report:
        """The report to show: that of the first run with a finding, else of the first run."""
        return next((each for each in self.reports if each.findings), self.reports[0])

    def times(self) -> dict[str, int]:
        """For each symptom, those of the old run first, the number of new runs that show it."""
        found = [{finding.symptom for finding in report.findings} for report in self.reports]
        names = dict.fromkeys([*self.before, *(finding.symptom for each in self.reports for finding in each.findings)])
        return {name: sum(name in each for each in found) for name in names}


def is_of(run_file: RunFile, named: str, code: Code) -> bool:
    """True if `code` made the run, whose cluster is `named`: it has the same installed name, or its file the same hash.

    A file counts as the same if the run has no hash.
    """
    if code.place is None or place_of(named) is None:
        return code.name == named
    return run_file.code_sha256 in {None, code_sha256_of(code)}


def anew(run: Path, changes: Changes, engine: EngineFor, watcher: Watcher | None = None) -> Anew:
    """Repeat the run with those changes, as new runs in its store.

    Raises ScenarioError if the other version has no such node, workload or fault.
    """
    run_file = read_run_file(run / RUN_FILE)
    before = read_report(run)
    if before is None:
        raise ScenarioError(f"{run}: was not judged yet, so there is nothing to compare: {seamark('check', run)}")
    scenario = scenario_of(run_file, run / RUN_FILE)
    if scenario.attach is not None:
        raise ScenarioError(f"{run}: strikes the containers of a project, and only you can change its version")
    scenario, dropped = _fitted(run, scenario, run_file, load_cluster(changes.code), changes)
    reports = []
    for seed in range(scenario.seed, scenario.seed + changes.times):
        again = msgspec.structs.replace(scenario, seed=seed)
        made, _ = prepare(again, changes.code, run.parent.parent, run_file.plan)
        reports.append(carry_out(made, changes.code, engine, watcher=watcher))
    symptoms = dict.fromkeys(finding.symptom for finding in before.findings)
    return Anew(before=tuple(symptoms), reports=tuple(reports), dropped=dropped)


def _fitted(
    run: Path, scenario: Scenario, run_file: RunFile, cluster: Cluster, changes: Changes
) -> tuple[Scenario, tuple[str, ...]]:
    """The scenario with the recorded operations and the seed's choices that this version has; and those it lacks."""
    options = {each.name: each.values for each in cluster.options}
    kept: dict[str, Any] = {
        "parameters": {
            each.name: run_file.parameters[each.name]
            for each in cluster.parameters
            if each.low <= run_file.parameters.get(each.name, each.low - 1) <= each.high
        },
        "bugs": changes.bugs
        if changes.bugs is not None
        else tuple(bug for bug in scenario.bugs if bug in cluster.bugs),
        "options": {name: value for name, value in scenario.options.items() if value in options.get(name, ())}
        | changes.options,
    }
    dropped = [f"bug {bug}" for bug in scenario.bugs if bug not in cluster.bugs]
    dropped += [f"option {name}={value}" for name, value in scenario.options.items() if name not in kept["options"]]
    shape = {name for name, _, _ in WORKLOAD_SHAPE}
    dropped += [
        f"parameter {name}={value}"
        for name, value in run_file.parameters.items()
        if name not in kept["parameters"] and name not in shape
    ]
    script = scenario.script or script_of(run, scenario.clients)
    return msgspec.structs.replace(scenario, script=script, **kept), tuple(dropped)


def outcome(anew: Anew) -> Iterator[str]:
    """For people, one line for each finding of the run: whether it is still there."""
    runs = len(anew.reports)
    for what in anew.dropped:
        yield f"  left out     {what}, which this version does not have"
    for symptom, times in anew.times().items():
        seen = "" if runs == 1 else f"  in {times} of {counted(runs, 'run')}"
        if symptom not in anew.before:
            yield f"  new          {symptom}{seen}"
        elif times:
            yield f"  still there  {symptom}{seen}"
        else:
            yield f"  not seen     {symptom}  in {counted(runs, 'run')}; other delays can hide a bug"
