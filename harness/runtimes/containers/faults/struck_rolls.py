"""Rolls in force: nodes are stopped and started again in turn, with the same release or with the next one."""

import asyncio
from collections.abc import Sequence
from typing import Final

from harness.core.machine import NodeId
from harness.runtimes.containers.faults.rules import Rules
from harness.runtimes.containers.faults.site import DOWN, SETTLED_S, Holds, Procedures, Site
from nemesis.plan import Effect, Step

_UPGRADE: Final = "upgrade"


class Roll:
    """A step whose nodes have their turns spread over it, each after the one before answers again.

    Nodes whose turn has not come when the step ends are left alone by a restart, and are upgraded then by an upgrade.
    """

    def __init__(
        self,
        step: Step,
        nodes: Sequence[NodeId],
        *,
        site: Site,
        rules: Rules,
        holds: Holds,
        procedures: Procedures | None,
    ) -> None:
        self._left = list(nodes)
        self._procedures = procedures if step.fault == _UPGRADE else None
        self._each_s = (step.until_ns - step.at_ns) / 1e9 / len(nodes)
        self._site, self._rules, self._holds = site, rules, holds
        self._turn = asyncio.Lock()
        self._is_over = False
        self._done: list[str] = []

    async def begin(self) -> None:
        loop = asyncio.get_running_loop()
        began_s, count = loop.time(), len(self._left)
        for number in range(count):
            await asyncio.sleep(began_s + number * self._each_s - loop.time())
            async with self._turn:
                if self._is_over or loop.time() - began_s > count * self._each_s:
                    return
                await self._restart(self._left.pop(0))

    async def end(self) -> None:
        async with self._turn:
            self._is_over = True
            while self._procedures is not None and self._left:
                await self._restart(self._left.pop(0))

    async def effect(self) -> Effect:
        what = "stopped and answered again" if self._procedures is None else "answered with the next release"
        return Effect(len(self._done), f"{', '.join(self._done) or 'no node'} {what}")

    async def _restart(self, node: NodeId) -> None:
        place = self._site.nodes[node]
        if place.is_down:  # An earlier fault is over, but on a busy machine a node is slow to come back.
            await place.control.ready(SETTLED_S)
        was_up = not place.is_down
        is_first = self._holds.take(DOWN, node)
        try:
            has_ended = await self._site.stop(node)
            if self._procedures is not None:
                await self._procedures.upgrade(node)
        finally:
            is_last = self._holds.drop(DOWN, node)
            if is_last:  # Else another fault keeps it down, and starts it later.
                await self._rules.start(node)
        if was_up and is_first and is_last:
            self._done.append(node if has_ended else f"{node} (which had to be killed)")
