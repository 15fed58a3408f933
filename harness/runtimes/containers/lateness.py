"""Detects times when a machine was too busy to run the nodes: like a fault, such a time excuses slowness.

A node answers on its control channel whatever its machine does, and only faults that stop the whole node affect that
channel. So each running node is queried for its clocks a few times per second. If at least half of them delay the
answer for LATE_S, or the harness itself wakes up that late, the machine counts as busy, until everything was in time
for CALM_S. A single late node may be busy because of its own bug: that excuses nothing.

The history records such a time as a fault of kind BUSY, with a number after those of the plan.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from harness.core.errors import DeployError
from harness.core.record import BUSY, Fault

EVERY_S: Final = 0.2
LATE_S: Final = 0.1
MOST_S: Final = 0.5  # The longest wait for an answer.
CALM_S: Final = 1.0


class Queried(Protocol):
    """The harness's end of a node's control channel."""

    async def clocks(self) -> object:
        """The node's answer."""


class Lateness:
    """A watcher for busy times of one run. `up` gives the nodes that can answer now; `targets` are all nodes."""

    def __init__(
        self,
        up: Callable[[], Sequence[Queried]],
        record: Callable[[Fault], None],
        now_ns: Callable[[], int],
        *,
        targets: tuple[str, ...],
        step: int,
    ) -> None:
        self._up, self._record, self._now_ns = up, record, now_ns
        self._targets, self._step = targets, step
        self._rounds = 0  # Late rounds in the open window; 0 if none is open.
        self._worst_s = 0.0

    async def watch(self) -> None:
        """Watch for busy times. Never returns."""
        loop = asyncio.get_running_loop()
        last_s = loop.time()
        try:
            while True:
                late_s = await self._late_s()
                now_s = loop.time()
                if late_s > LATE_S:
                    self._note(late_s)
                    last_s = now_s
                elif self._rounds and now_s - last_s >= CALM_S:
                    self._close()
        finally:
            self._close()

    async def _late_s(self) -> float:
        """The lateness in seconds: of the harness's wake-up, or, if greater, of the answers of half of the nodes."""
        loop = asyncio.get_running_loop()
        due_s = loop.time() + EVERY_S
        await asyncio.sleep(EVERY_S)
        began_s = loop.time()
        took = await asyncio.gather(*(self._took_s(each) for each in self._up()))
        answered = sorted((each for each in took if each is not None), reverse=True)
        of_nodes = answered[(len(answered) + 1) // 2 - 1] if answered else 0.0
        return max(began_s - due_s, of_nodes)

    async def _took_s(self, node: Queried) -> float | None:
        """The time until that node answered, MOST_S if it did not; None if it has gone meanwhile."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            async with asyncio.timeout(MOST_S):
                await node.clocks()
        except TimeoutError:
            return MOST_S if node in self._up() else None
        except DeployError:
            return None
        return loop.time() - began_s

    def _note(self, late_s: float) -> None:
        if not self._rounds:
            self._tell("begin")
        self._rounds += 1
        self._worst_s = max(self._worst_s, late_s)

    def _close(self) -> None:
        if self._rounds:
            note = f"half of the nodes or the harness were late {self._rounds} times, by {self._worst_s * 1000:.0f} ms"
            self._tell("effect", self._rounds, note)
            self._tell("end")
            self._rounds, self._worst_s, self._step = 0, 0.0, self._step + 1

    def _tell(self, phase: str, effect: int | None = None, note: str | None = None) -> None:
        self._record(Fault(self._now_ns(), self._step, phase, BUSY, self._targets, effect, note))  # type: ignore[arg-type]  # A phase.
