"""Bit rot in force: a node is killed, a file of it changes, and at the end of the step it starts with that file."""

from collections.abc import Sequence
from contextlib import suppress

from harness.core.machine import NodeId
from harness.runtimes.containers.faults.site import GONE, Site
from harness.runtimes.containers.faults.struck_nodes import Crash
from nemesis.plan import Effect, Step


class Rot:
    """A step on nodes, each of which is down while it is in force.

    A node that does not come back is no failure of the deployment: the server may refuse its own damaged data.
    """

    def __init__(self, step: Step, nodes: Sequence[NodeId], *, site: Site, crash: Crash) -> None:
        self._how, self._place = str(step.args["how"]), int(step.args["place"])
        self._nodes, self._site, self._crash = nodes, site, crash
        self._rotten: dict[NodeId, str] = {}
        self._last = "no file was changed"

    async def begin(self) -> None:
        await self._crash.begin()
        for node in self._nodes:
            self._site.nodes[node].may_end = True  # From now on the server may end because of its data.
            try:
                path, told = await self._site.rot(node, how=self._how, place=self._place)
            except GONE as error:
                self._last = " ".join(str(error).split())
            else:
                self._rotten[node] = f"in {path} of {node} {told}"

    async def end(self) -> None:
        with suppress(*GONE):
            await self._crash.end()

    async def effect(self) -> Effect:
        return Effect(len(self._rotten), "; ".join(self._rotten.values()) or self._last)
