"""The nemesis process: it carries out a plan, measures its effects, and always heals."""

import asyncio
from collections.abc import Callable
from typing import Literal

from harness.core.record import Evidence, Fault
from harness.core.seams import Clock
from nemesis.plan import Effect, FaultRuntime, Plan, Step

Phase = Literal["begin", "effect", "end", "refused"]


class NemesisProcess:
    """The ledger of faults in force, and the code that carries out a plan."""

    def __init__(self, plan: Plan, faults: FaultRuntime, clock: Clock, record: Callable[[Evidence], None]) -> None:
        self._plan, self._faults, self._clock, self._record = plan, faults, clock, record
        self._ledger: dict[int, Step] = {}  # In order of application.

    async def run(self) -> None:
        """Carry out every step at its time. Returns when the last step is healed."""
        start_ns = self._clock.now_ns()
        async with asyncio.TaskGroup() as group:
            for number, step in enumerate(self._plan.steps):
                group.create_task(self._carry_out(number, step, start_ns), name=f"fault {number} ({step.fault})")

    async def heal(self) -> None:
        """Undo all faults still in force, the latest first."""
        for number in reversed(list(self._ledger)):
            await self._undo(number)

    async def _carry_out(self, number: int, step: Step, start_ns: int) -> None:
        await self._clock.sleep_ns(start_ns + step.at_ns - self._clock.now_ns())
        self._ledger[number] = step
        self._note(number, step, "begin", None)
        await self._faults.apply(step)
        await self._clock.sleep_ns(start_ns + step.until_ns - self._clock.now_ns())
        if number in self._ledger:
            await self._undo(number)

    async def _undo(self, number: int) -> None:
        step = self._ledger[number]
        before = await self._faults.effect(step)
        await self._faults.undo(step)
        after = await self._faults.effect(step)
        del self._ledger[number]
        self._note(number, step, "effect", max(after, before, key=lambda effect: effect.count))
        self._note(number, step, "end", None)

    def _note(self, number: int, step: Step, phase: Phase, effect: Effect | None) -> None:
        self._record(
            Fault(
                self._clock.now_ns(),
                number,
                phase,
                step.package,
                step.targets,
                effect.count if effect else None,
                effect.note if effect else None,
            )
        )
