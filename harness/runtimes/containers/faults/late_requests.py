"""Late requests in force: what the relays of some links hold, and what arrived after its client had hung up."""

import asyncio

from harness.core.errors import DeployError
from harness.runtimes.containers.faults.site import Site
from nemesis.plan import Effect, Step


class Late:
    """A step that makes what clients write arrive late."""

    def __init__(self, step: Step, *, site: Site) -> None:
        self._delay_s = int(step.args["delay_ns"]) / 1e9
        self._relays = [lateness for lateness in map(site.lateness, step.targets) if lateness is not None]
        self._start = (0, 0)
        self._is_in_force = False
        if len(self._relays) < len(step.targets):
            raise DeployError("a link has no relay")

    async def begin(self) -> None:
        self._start = self._counts()
        self._is_in_force = True
        for lateness in self._relays:
            lateness.hold(self._delay_s)

    async def end(self) -> None:
        if self._is_in_force:
            self._is_in_force = False
            await asyncio.gather(*(lateness.release() for lateness in self._relays))

    async def effect(self) -> Effect:
        arrived, dropped = (now - start for now, start in zip(self._counts(), self._start, strict=True))
        note = f"{arrived} pieces of requests arrived after their clients had hung up, {dropped} were dropped"
        return Effect(arrived, note)

    def _counts(self) -> tuple[int, int]:
        return sum(each.arrived for each in self._relays), sum(each.dropped for each in self._relays)
