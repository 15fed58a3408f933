"""A fault plan: timed steps, as data. Drawn from the seed before the run starts, saved with it, editable, replayable.

Targets are node ids ("n1"), or directed links ("n1>n2"; a client's end is "client"). The kinds, with their `args`:

- `cut` (links): connections close, and new ones are refused, until the end.
- `reset` (links): connections are reset, what is under way is lost, and so is every attempt to connect, until the end.
- `stall` (links): nothing gets through, nothing is lost, connections stay open.
- `delay` (links): `latency_ns` more for each message, and up to `jitter_ns`, without overtaking on a fifo link.
- `bandwidth` (links): `bytes_per_s` at most.
- `limit-data` (links): a connection closes once `bytes` have passed since the step began, or since it was opened.
- `drop`, `duplicate`, `reorder` (datagram links): `permille` of the messages.
- `crash` (nodes): memory is lost; the end restarts. `disk`: lost (all that was not synced; the default), torn (a prefix
  of it survives) or kept. `point`: not at `at_ns`, but when one of the targets next reaches that failpoint, and only
  that one; if none has by half of the window, the first target then, so that the step has an effect in any case.
- `pause` (nodes): nothing is handled until the end, nothing is lost. `point` as above.
- `consumer` (nodes): `delay_ns` for each message that is handled.
- `clock` (nodes): `step_ns` at once, `drift_ppm` from then on, `freeze` 1: it stands still. The end sets it right.
- `disk-full` (nodes): no write finds room, until the end.
"""

from typing import Protocol

import msgspec


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault: from `at_ns` to `until_ns`, both since the start of the load. `package` says where it comes from."""

    fault: str
    package: str  # "partition", "slow-subscriber", ...: the word under which reports count it.
    at_ns: int
    until_ns: int
    targets: tuple[str, ...]
    args: dict[str, int | str] = {}


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The steps of a run, by time of their beginning, and how they were drawn."""

    steps: tuple[Step, ...]
    drawn: dict[str, int | str] = {}  # Which packages, how often, how long: what the seed decided, for people.


class Effect(msgspec.Struct, frozen=True):
    """What a fault was measured to do. `count` 0 means that it had no effect."""

    count: int
    note: str  # "41 messages held back"


class FaultRuntime(Protocol):
    """Carries steps out. The same seam in simulation and in containers."""

    def refusal(self, step: Step) -> str | None:
        """Why this runtime cannot do that step, in one line, or None. Asked when the plan is loaded."""

    async def apply(self, step: Step) -> None:
        """Bring the fault about. Raises ScenarioError if it cannot."""

    async def undo(self, step: Step) -> None:
        """Heal it. Nothing happens if it is healed already."""

    async def effect(self, step: Step) -> Effect:
        """What it did since it was applied; asked before and after `undo`."""
