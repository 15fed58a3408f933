"""Seamark from Python: judge a history, run a scenario, read a report. docs/api.md shows each in a few lines.

Only what is named here is public; harness, checkers, nemesis and clusters change without notice.
"""

from importlib.metadata import version as _version

from harness.core.errors import DeployError, HistoryError, ScenarioError, SeamarkError
from harness.core.verdict import Step
from harness.report.model import FaultRow, FindingRow, PromiseRow
from harness.scenario.scenario import Scenario
from seamark.commands import check, read, repeat, run, runs
from seamark.report import Report

__version__ = _version("seamark")
__all__ = (
    "DeployError",
    "FaultRow",
    "FindingRow",
    "HistoryError",
    "PromiseRow",
    "Report",
    "Scenario",
    "ScenarioError",
    "SeamarkError",
    "Step",
    "check",
    "read",
    "repeat",
    "run",
    "runs",
)
