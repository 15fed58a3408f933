"""A run as a test: a green one leaves nothing behind, any other is kept, and its failure says how to repeat it."""

from pathlib import Path
from textwrap import shorten
from typing import Literal

import msgspec

from harness.campaign.task import delivered
from harness.core.command import seamark
from harness.core.verdict import Verdict
from harness.judging.engines import in_threads
from harness.record.ownership import temporary_folder
from harness.report.model import Report, repetition
from harness.report.screen import visible
from harness.run.carry_out import carried_out
from harness.run.running import prepare
from harness.scenario.consent import Code
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan

SHOWN = 5  # A failure quotes this many symptoms,
WIDTH = 300  # each with this many characters of its sentence; the page has all.
Vacuous = Literal["fail", "skip"]


def judged(scenario: Scenario, code: Code, store: Path, plan: Plan | None = None) -> Report:
    """The report on one run.

    Unless every promise was witnessed and held, the run is kept in the store; `run` is its folder.

    Raises ScenarioError if it cannot be carried out.
    """
    store.mkdir(parents=True, exist_ok=True)
    with temporary_folder("test", beside=store) as folder:
        run, _ = prepare(scenario, code, folder, plan)
        report = carried_out(run, code, in_threads)
        report = msgspec.structs.replace(report, seed=scenario.seed, run=None)
        return report if report.verdict == Verdict.VALID.value else delivered(run, report, store)


def failure(report: Report) -> str:
    """The reason why the run is no pass, with the command that repeats it."""
    lines = [f"{Verdict(report.verdict).word}  {report.reason}"]
    first = {each.symptom: each for each in reversed(report.findings) if each.promise}
    shown = sorted(first.values(), key=report.findings.index)[:SHOWN]
    lines += [f"  {each.anomaly} breaks {each.promise}: {shorten(each.sentence, WIDTH)}" for each in shown]
    if report.run is not None:
        lines.append(f"  page    {Path(report.run) / 'report.html'}")
        if report.verdict == Verdict.INVALID.value:
            lines.append(f"  smaller {seamark('shrink', report.run)}")
    command = repetition(report)
    if command is not None:
        lines.append(f"  repeat  {command}")
    return "\n".join(map(visible, lines))
