"""Seamark from Python: judge a history, run a scenario, read a report; declare a system, a check, a model.

Only the names here are public (docs/api.md); harness, checkers, nemesis and clusters change without notice. Each name
is imported at its first use: the file of a system loads no more than it needs, in each process that runs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from checkers.own.check import Check as Check
    from checkers.own.check import Finding as Finding
    from checkers.own.check import Judgement as Judgement
    from checkers.own.history import Delivered as Delivered
    from checkers.own.history import History as History
    from checkers.own.history import Operation as Operation
    from checkers.own.model import Model as Model
    from checkers.own.model import Op as Op
    from checkers.own.model import linearizable as linearizable
    from checkers.words.anomalies import Anomaly as Anomaly
    from checkers.words.anomalies import Cause as Cause
    from harness.core.errors import DeployError as DeployError
    from harness.core.errors import HistoryError as HistoryError
    from harness.core.errors import ScenarioError as ScenarioError
    from harness.core.errors import SeamarkError as SeamarkError
    from harness.core.machine import Answer as Answer
    from harness.core.machine import Call as Call
    from harness.core.machine import Closed as Closed
    from harness.core.machine import Context as Context
    from harness.core.machine import Delivery as Delivery
    from harness.core.machine import Drained as Drained
    from harness.core.machine import Dump as Dump
    from harness.core.machine import Durable as Durable
    from harness.core.machine import Event as Event
    from harness.core.machine import Links as Links
    from harness.core.machine import Machine as Machine
    from harness.core.machine import Message as Message
    from harness.core.machine import NodeId as NodeId
    from harness.core.machine import Received as Received
    from harness.core.machine import Settings as Settings
    from harness.core.machine import Synced as Synced
    from harness.core.machine import TimerFired as TimerFired
    from harness.core.promises import Bounds as Bounds
    from harness.core.promises import Naming as Naming
    from harness.core.promises import Promise as Promise
    from harness.core.promises import StreamContract as StreamContract
    from harness.core.record import MicroOp as MicroOp
    from harness.core.seams import CallFailed as CallFailed
    from harness.core.seams import Client as Client
    from harness.core.seams import Completion as Completion
    from harness.core.seams import Connection as Connection
    from harness.core.seams import Deliver as Deliver
    from harness.core.seams import Doors as Doors
    from harness.core.seams import GoModule as GoModule
    from harness.core.seams import Invocation as Invocation
    from harness.core.seams import MachineCluster as MachineCluster
    from harness.core.seams import Membership as Membership
    from harness.core.seams import Node as Node
    from harness.core.seams import Option as Option
    from harness.core.seams import Parameter as Parameter
    from harness.core.seams import Service as Service
    from harness.core.seams import ServiceClient as ServiceClient
    from harness.core.seams import Subscriber as Subscriber
    from harness.core.seams import Wheel as Wheel
    from harness.core.system import System as System
    from harness.core.verdict import Step as Step
    from harness.report.model import FaultRow as FaultRow
    from harness.report.model import FindingRow as FindingRow
    from harness.report.model import PromiseRow as PromiseRow
    from harness.scenario.scenario import Scenario as Scenario
    from nemesis.plan import Plan as Plan
    from seamark.commands import check as check
    from seamark.commands import read as read
    from seamark.commands import repeat as repeat
    from seamark.commands import run as run
    from seamark.commands import runs as runs
    from seamark.report import Report as Report
    from seamark.testing import Broken as Broken
    from seamark.testing import for_each_seed as test
    from seamark.testing import verify as verify

    __version__: str

# Where each name is defined.
_HOMES: Final = {
    "checkers.own.check": "Check Finding Judgement",
    "checkers.own.history": "Delivered History Operation",
    "checkers.own.model": "Model Op linearizable",
    "checkers.words.anomalies": "Anomaly Cause",
    "harness.core.errors": "DeployError HistoryError ScenarioError SeamarkError",
    "harness.core.machine": (
        "Answer Call Closed Context Delivery Drained Dump Durable Event Links Machine Message "
        "NodeId Received Settings Synced TimerFired"
    ),
    "harness.core.promises": "Bounds Naming Promise StreamContract",
    "harness.core.record": "MicroOp",
    "harness.core.seams": (
        "CallFailed Client Completion Connection Deliver Doors GoModule Invocation MachineCluster Membership Node "
        "Option Parameter Service ServiceClient Subscriber Wheel"
    ),
    "harness.core.system": "System",
    "harness.core.verdict": "Step",
    "harness.report.model": "FaultRow FindingRow PromiseRow",
    "harness.scenario.scenario": "Scenario",
    "nemesis.plan": "Plan",
    "seamark.commands": "check read repeat run runs",
    "seamark.report": "Report",
    "seamark.testing": "Broken for_each_seed verify",
}
_HOME: Final = {name: home for home, names in _HOMES.items() for name in names.split()}
_OTHERWISE: Final = {"test": "for_each_seed"}  # Names that differ from those of the definitions.
__all__ = (
    "Anomaly",
    "Answer",
    "Bounds",
    "Broken",
    "Call",
    "CallFailed",
    "Cause",
    "Check",
    "Client",
    "Closed",
    "Completion",
    "Connection",
    "Context",
    "Deliver",
    "Delivered",
    "Delivery",
    "DeployError",
    "Doors",
    "Drained",
    "Dump",
    "Durable",
    "Event",
    "FaultRow",
    "Finding",
    "FindingRow",
    "GoModule",
    "History",
    "HistoryError",
    "Invocation",
    "Judgement",
    "Links",
    "Machine",
    "MachineCluster",
    "Message",
    "MicroOp",
    "Model",
    "Naming",
    "Node",
    "NodeId",
    "Op",
    "Operation",
    "Option",
    "Parameter",
    "Plan",
    "Promise",
    "PromiseRow",
    "Received",
    "Report",
    "Scenario",
    "ScenarioError",
    "SeamarkError",
    "Service",
    "ServiceClient",
    "Settings",
    "Step",
    "StreamContract",
    "Subscriber",
    "Synced",
    "System",
    "TimerFired",
    "Wheel",
    "check",
    "linearizable",
    "read",
    "repeat",
    "run",
    "runs",
    "test",
    "verify",
)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415  Executors have our code, and no distribution.

        return version("seamark")
    defined = _OTHERWISE.get(name, name)
    if name not in __all__:
        raise AttributeError(f"module 'seamark' has no attribute {name!r}")
    return getattr(import_module(_HOME[defined]), defined)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
