"""Wrong clocks in containers, by libfaketime: a node's wall clock steps, drifts or freezes.

1. The library reads a file for each reading of the wall clock. Its content replaces the wall clock of the node's
   processes; CLOCK_MONOTONIC, which drives their timers, is unchanged.
2. The library offers a rate, but that also stretches the waits of select and epoll: a node with a slow clock had slow
   timers. So a drift is many small steps, written by a loop inside the container.
3. The file is replaced, never rewritten in place: half a line would crash its reader.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from harness.core.machine import NodeId
from harness.runtimes.containers.faults.site import GONE, Site
from nemesis.plan import Effect, Step

CLOCK_FILE: Final = "/tmp/seamark-clock"  # noqa: S108  In a container of ours.
# The environment that a node's processes need; without it their clocks cannot be made wrong.
FAKED_CLOCK: Final = {
    "LD_PRELOAD": "/usr/local/lib/libfaketime.so.1",
    "FAKETIME_TIMESTAMP_FILE": CLOCK_FILE,
    "FAKETIME_NO_CACHE": "1",
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # For an old glibc; here threads would wait seconds for each other.
}
_LOOP_FILE: Final = f"{CLOCK_FILE}.loop"
_WRONG_NS: Final = 1_000_000  # The error that reading two clocks by two instructions can cause.
_DRIFTING_S: Final = 0.25  # The time until a drifting clock is visibly wrong.
_SECOND_NS: Final = 1_000_000_000
_REPLACE: Final = f"mv {CLOCK_FILE}.new {CLOCK_FILE}"
# Hundredths of a second, as in /proc/uptime.
_DRIFT: Final = (
    'BEGIN { while ((getline line < "/proc/uptime") > 0) { close("/proc/uptime"); split(line, up, " ");'
    " if (!start) start = up[1];"
    f' printf "%+.6f\\n", step + rate * (up[1] - start) > "{CLOCK_FILE}.new"; close("{CLOCK_FILE}.new");'
    f' if (system("{_REPLACE} && sleep 0.05")) exit 1 }} }}'
)


def command(step: Step, realtime_ns: int) -> str:
    """The shell command that makes a node's clock wrong; `realtime_ns` is the correct time now."""
    offset_s = int(step.args.get("step_ns", 0)) / _SECOND_NS
    rate = int(step.args.get("drift_ppm", 0)) / 1e6
    if step.args.get("freeze"):
        seconds, nanoseconds = divmod(realtime_ns + int(step.args.get("step_ns", 0)), _SECOND_NS)
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
        return f"echo '{moment}.{nanoseconds:09}' >{CLOCK_FILE}.new && {_REPLACE}"
    if rate:
        loop = f"awk -v step={offset_s:.6f} -v rate={rate:.6f} '{_DRIFT}'"
        return f"{loop} >/dev/null 2>&1 & echo $! >{_LOOP_FILE}"
    return f"echo '{offset_s:+.6f}' >{CLOCK_FILE}.new && {_REPLACE}"


HEAL: Final = (
    f"kill $(cat {_LOOP_FILE} 2>/dev/null) 2>/dev/null; rm -f {_LOOP_FILE}; echo +0 >{CLOCK_FILE}.new; {_REPLACE}"
)


class OnClocks:
    """The clocks of some nodes. The effect is the error of clock readings, which the nodes take for the harness."""

    def __init__(self, step: Step, nodes: Sequence[NodeId], *, site: Site) -> None:
        self._step, self._nodes, self._site = step, nodes, site
        self._is_wrong = False
        self._wrong_readings = 0
        self._error_ns_max = 0
        self._right: list[str] = []  # Nodes whose clock was right at the last reading.

    async def begin(self) -> None:
        self._is_wrong = True
        await asyncio.gather(*(self._run(node, command(self._step, time.time_ns())) for node in self._nodes))
        if self._step.args.get("drift_ppm") or self._step.args.get("freeze"):
            await asyncio.sleep(_DRIFTING_S)
        await self._read()

    async def end(self) -> None:
        if self._is_wrong:
            self._is_wrong = False
            await asyncio.gather(*(self._heal(node) for node in self._nodes))

    async def effect(self) -> Effect:
        if self._is_wrong:
            await self._read()
        worst_s = self._error_ns_max / _SECOND_NS
        note = f"{self._wrong_readings} readings of a clock that was up to {worst_s:.3g} s wrong"
        return Effect(self._wrong_readings, note + "".join(f"; the clock of {node} was right" for node in self._right))

    async def _read(self) -> None:
        errors = await asyncio.gather(*(self._error_ns(node) for node in self._nodes))
        self._right = [node for node, error in zip(self._nodes, errors, strict=True) if abs(error) < _WRONG_NS]
        self._wrong_readings += len(self._nodes) - len(self._right)
        self._error_ns_max = max(self._error_ns_max, *map(abs, errors))

    async def _error_ns(self, node: NodeId) -> int:
        """The difference of that node's wall clock from ours, at the moment when the node's other clock was read."""
        with suppress(*GONE):
            clocks = await self._site.nodes[node].control.clocks()
            ours_ns = time.time_ns() - time.monotonic_ns() + clocks.monotonic_ns
            return clocks.realtime_ns - ours_ns
        return 0

    async def _heal(self, node: NodeId) -> None:
        try:
            await self._run(node, HEAL)
        except GONE:
            with suppress(*GONE):  # The node does not run: it must start with the right time.
                await self._site.put(node, CLOCK_FILE, b"+0\n")

    async def _run(self, node: NodeId, line: str) -> None:
        await self._site.run_in(node, ["env", "-u", "LD_PRELOAD", "sh", "-c", line])
