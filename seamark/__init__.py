"""Seamark from Python: judge a history, run a scenario, read a report. docs/api.md has a short example of each.

Only the names here are public; harness, checkers, nemesis and clusters change without notice.
"""

from importlib.metadata import version as _version

from harness.core.errors import DeployError, HistoryError, ScenarioError, SeamarkError
from harness.core.verdict import Step
from harness.report.model import FaultRow, FindingRow, PromiseRow
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from seamark.commands import check, read, repeat, run, runs
from seamark.report import Report
from seamark.testing import Broken, verify
from seamark.testing import for_each_seed as test

__version__ = _version("seamark")
__all__ = (
    "Broken",
    "DeployError",
    "FaultRow",
    "FindingRow",
    "HistoryError",
    "Plan",
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
    "test",
    "verify",
)
