"""Changes of members in force: a node leaves its cluster, and comes back as a new one without data."""

import asyncio
from typing import Final

from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.runtimes.containers.faults.rules import Rules
from harness.runtimes.containers.faults.site import DOWN, GONE, Holds, Procedures, Site
from nemesis.plan import Effect, Step

_BACK_WITHIN_S: Final = 60.0


class Membership:
    """A step that removes a node until its end (`remove`), or replaces it at once (`replace`).

    Every change counts once the other members list it. A node that has left, or may have left, must not come back with
    its data, so in the end it always joins anew.
    """

    def __init__(self, step: Step, *, site: Site, rules: Rules, holds: Holds, procedures: Procedures) -> None:
        self._node, self._is_replaced = NodeId(step.targets[0]), step.fault == "replace"
        self._within_s = (step.until_ns - step.at_ns) / 1e9
        self._site, self._rules, self._holds, self._procedures = site, rules, holds, procedures
        self._turn = asyncio.Lock()  # A run that ends early heals while the beginning is in progress.
        self._is_away = False
        self._seen: list[str] = []
        self._trouble = ""

    async def begin(self) -> None:
        try:
            async with self._turn:
                await self._change()
        except GONE as error:  # The end completes what can be.
            self._trouble = f"; it took until the end: {' '.join(str(error).split())}"

    async def end(self) -> None:
        async with self._turn:
            if self._is_away:
                await self._back(_BACK_WITHIN_S)

    async def effect(self) -> Effect:
        return Effect(len(self._seen), ("; ".join(self._seen) or f"{self._node} did not leave") + self._trouble)

    async def _change(self) -> None:
        node, place = self._node, self._site.nodes[self._node]
        self._is_away = True
        self._holds.take(DOWN, node)  # A crash meanwhile must not start it with its data.
        if self._is_replaced:
            await self._site.kill(node)
            await self._back(self._within_s)
            return
        place.may_end, before = True, place.may_end  # Members of etcd end once they have left.
        try:
            await self._procedures.leave(node, self._within_s)
        finally:
            await self._site.kill(node)
            place.may_end = before
        await self._confirm(self._within_s)

    async def _confirm(self, within_s: float) -> None:
        """Let the others tell that the node has left. Raises DeployError."""
        members = await self._procedures.members(self._node, within_s)
        if self._node in members:
            raise DeployError(f"{self._node} was removed, and is still a member")
        self._seen.append(f"{self._node} left: {', '.join(sorted(members))} remained")

    async def _back(self, within_s: float) -> None:
        """Let the node, which is down, join without data; remove it before if it is still a member."""
        node = self._node
        if not self._seen:
            await self._procedures.leave(node, within_s)
            await self._confirm(within_s)
        await self._procedures.join(node, within_s)
        self._is_away = False
        if not self._holds.drop(DOWN, node):  # Another fault keeps it down, and starts it later.
            return
        await self._rules.start(node)
        members = await self._procedures.members(node, within_s)
        if node not in members:
            raise DeployError(f"{node} runs, but the others do not list it: {', '.join(sorted(members))}")
        self._seen.append(f"{node} joined without data")
