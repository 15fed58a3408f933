"""A fault plan: timed steps, as data. Drawn from the seed before the run starts, saved with it, editable, replayable.

Targets are node ids ("n1"), or directed links ("n1>n2"; a client's end is "client"). The kinds, with their `args`:

- `cut` (links): connections close, and new ones are refused, until the end.
- `reset` (links): connections are reset, messages in transit are lost, and every attempt to connect fails, until the
  end.
- `stall` (links): nothing gets through, nothing is lost, connections stay open.
- `delay` (links): each message takes `latency_ns` longer, plus up to `jitter_ns`, without overtaking on a fifo link.
- `bandwidth` (links): `bytes_per_s` at most.
- `limit-data` (links): a connection closes once `bytes` have passed since the step began, or since it was opened.
- `drop`, `duplicate`, `reorder` (datagram links): `permille` of the messages.
- `crash` (nodes): memory is lost; the end restarts. `disk`: lost (all unsynced writes; the default), torn (a prefix
  of it survives) or kept. `point`: not at `at_ns`, but when one of the targets next reaches that failpoint, and only
  that one; if none has by half of the window, the first target then, so that the step has an effect in any case.
- `pause` (nodes): nothing is handled until the end, nothing is lost. `point` as above.
- `consumer` (nodes): `delay_ns` for each message that is handled.
- `clock` (nodes): `step_ns` at once, `drift_ppm` from then on, `freeze` 1: the clock freezes. The end corrects it.
- `disk-full` (nodes): no write finds room, until the end.
"""

from typing import Protocol

import msgspec


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault: from `at_ns` to `until_ns`, both since the start of the load. `package` names its package."""

    fault: str
    package: str  # "partition", "slow-subscriber", ...: reports count it under this name.
    at_ns: int
    until_ns: int
    targets: tuple[str, ...]
    args: dict[str, int | str] = {}


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The steps of a run, in order of their beginning, and the values they were drawn with."""

    steps: tuple[Step, ...]
    drawn: dict[str, int | str] = {}  # The seed's decisions, for display: packages, their counts and lengths.


class Effect(msgspec.Struct, frozen=True):
    """The measured effect of a fault. `count` 0 means that it had none."""

    count: int
    note: str  # "41 messages held back"


class FaultRuntime(Protocol):
    """The runtime that carries out steps. Simulation and containers share this interface."""

    def refusal(self, step: Step) -> str | None:
        """The reason why this runtime cannot do that step, in one line, or None. Called when the plan is loaded."""

    async def apply(self, step: Step) -> None:
        """Apply the fault. Raises ScenarioError if it cannot."""

    async def undo(self, step: Step) -> None:
        """Heal the fault; does nothing if it is already healed."""

    async def effect(self, step: Step) -> Effect:
        """The effect since the fault was applied; queried before and after `undo`."""
