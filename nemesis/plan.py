"""A fault plan: timed steps, as data. Drawn from the seed before the run starts, saved with it, editable, replayable.

Targets are node ids ("n1"), or directed links ("n1>n2"; a client's end is "client"). The files of nemesis/faults say
what each fault does to them until its step ends.
"""

from typing import Literal, Protocol

import msgspec

# All faults that a runtime can carry out: each runtime matches on every name. A new name goes here.
LinkFault = Literal["cut", "reset", "stall", "delay", "bandwidth", "limit-data"]
DatagramFault = Literal["drop", "duplicate", "reorder"]
ClientFault = Literal["late"]
NodeFault = Literal[
    "crash", "pause", "consumer", "clock", "disk-full", "failover", "rot", "restart", "upgrade", "remove", "replace"
]
FaultName = LinkFault | DatagramFault | ClientFault | NodeFault


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault: from `at_ns` to `until_ns`, both since the start of the load. `package` names its package."""

    fault: str  # A `FaultName`, unless a person wrote something else.
    package: str  # "partition", "slow-subscriber", ...: reports count it under this name.
    at_ns: int
    until_ns: int
    targets: tuple[str, ...]
    args: dict[str, int | str] = {}


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The steps of a run, in order of their beginning; and `drawn`, the seed's choices."""

    steps: tuple[Step, ...]
    drawn: dict[str, int | str] = {}  # The seed's decisions, for display: packages, their counts and lengths.


class Effect(msgspec.Struct, frozen=True):
    """The measured effect of a fault. `count` 0 means that it had none."""

    count: int
    note: str  # "41 messages held back"


class FaultRuntime(Protocol):
    """A runtime that carries out steps: the simulation, or containers."""

    def refusal(self, step: Step) -> str | None:
        """The reason, in one line, why this runtime cannot do that step; None if it can.

        Called when the plan is loaded.
        """

    async def apply(self, step: Step) -> None:
        """Apply the fault. Raises ScenarioError if it cannot."""

    async def undo(self, step: Step) -> None:
        """Heal the fault; does nothing if it is already healed."""

    async def effect(self, step: Step) -> Effect:
        """The effect since the fault was applied. Called before and after `undo`."""
