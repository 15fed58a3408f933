"""What the report on a run of ours has besides the judgement: how to repeat it, what it drew, what its faults did."""

from hashlib import sha256
from pathlib import Path

import msgspec

from checkers.verdict.compose import RunFacts
from harness.judging.exposed import exposed
from harness.judging.facts import fault_rows
from harness.judging.unjudged import other_model
from harness.judging.way_out import way_out
from harness.record.exposure import Exposure
from harness.record.store import RunFile, sut_in
from harness.report.model import Report
from harness.scenario.command import command_anywhere
from harness.scenario.consent import code_in_file


def as_run(report: Report, run_file: RunFile, exposure: Exposure, facts: RunFacts, history: Path) -> Report:
    """The report, with the details that only a run of ours has."""
    return msgspec.structs.replace(
        report,
        way_out=way_out(run_file, report.clause, other_model(history, run_file.promises)),
        anywhere=command_anywhere(run_file),
        versions=dict(run_file.versions),
        sut=sut_in(run_file),
        plan_sha256=plan_sha256(run_file),
        cluster=run_file.cluster,
        code=code_in_file(run_file),
        workload=run_file.workload,
        runtime=run_file.runtime,
        seed=run_file.seed,
        bugs=run_file.bugs,
        is_given=run_file.is_plan_given or run_file.options.get("script") is not None,
        drawn={**run_file.parameters, **run_file.plan.drawn},
        faults=fault_rows(run_file, exposure),
        goals={goal: exposure.goals.get(goal, 0) for goal in run_file.goals},
        exposure=exposed(run_file, exposure, facts),
    )


def plan_sha256(run_file: RunFile) -> str:
    """The hash of a run's fault plan."""
    return sha256(msgspec.json.encode(run_file.plan.steps)).hexdigest()
