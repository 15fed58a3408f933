"""Node faults in force: their actions on containers, how these are undone, and their measured effects."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from harness.core.errors import DeployError, Unsound
from harness.core.machine import NodeId
from harness.runtimes.containers.faults.probing import Probing
from harness.runtimes.containers.faults.rules import Rules
from harness.runtimes.containers.faults.site import DOWN, GONE, PAUSED, SETTLED_S, Holds, Site
from harness.runtimes.host.control import Counters, Slow
from harness.runtimes.host.storage import CRASH_MODE_FILE
from nemesis.plan import Effect, Step

BALLAST: Final = "ballast"  # In the folder of a node's durable state.
SILENT_S: Final = 0.3
_SMALL_KB: Final = 1 << 20  # A larger disk is not a small volume, but the machine's own, which is never filled.
_DF_SIZE: Final = 8  # The index of the size in the output of `df -P`: the heading has seven parts.
_KEPT: Final = "kept"


class Crash:
    """A step that kills nodes, at once or one at a failpoint, and starts them at its end.

    A server whose unsynced writes shall be lost loses its power: its file system ends first, with two canaries on it.
    It counts once its start has shown that the unsynced one is gone. If the synced one is gone, the step is unsound.
    """

    def __init__(self, step: Step, nodes: Sequence[NodeId], *, site: Site, rules: Rules, holds: Holds) -> None:
        self._mode, self._nodes = str(step.args.get("disk", "lost")), nodes
        self._site, self._rules, self._holds = site, rules, holds
        self._held: list[NodeId] = []
        self._lives: dict[NodeId, int] = {}  # The number of nodes that were up and went down.
        self._powerless: dict[NodeId, str] = {}  # Servers that lost power, each with the evidence on its disk.
        self._shown: set[NodeId] = set()
        self._strikes = Strikes(step, nodes, site, self._strike)

    async def begin(self) -> None:
        await self._strikes.begin()

    async def end(self) -> None:
        await self._strikes.end()
        held, self._held = self._held, []
        await asyncio.gather(*(self._restart(node) for node in held if self._holds.drop(DOWN, node)))

    async def effect(self) -> Effect:
        await self._strikes.settled()
        went = (
            f"{', '.join(node for node in self._nodes if node in self._lives)} went down"
            if self._lives
            else "no node went down"
        )
        if self._powerless:
            shown = "; ".join(f"{node}: {self._powerless[node]}" for node in sorted(self._powerless))
            kept = [node for node in self._lives if node not in self._powerless]
            return Effect(len(self._shown) + len(kept), f"{went}; {shown}")
        controls = [(self._site.nodes[node].control, life) for node, life in self._lives.items()]
        lost = sum(control.lost_records for control, life in controls if control.life > life)
        return Effect(len(self._lives), f"{went}, {lost} unsynced writes lost")

    async def _strike(self, node: NodeId) -> None:
        place = self._site.nodes[node]
        self._held.append(node)
        if self._holds.take(DOWN, node):
            if place.is_down:  # The previous fault is over, but on a busy machine a node is slow to come back.
                await place.control.ready(SETTLED_S)
            was_up, life = not place.is_down, place.control.life
            if self._loses_power(node) and was_up:
                await self._site.fail_power(node, is_torn=self._mode == "torn")
                self._powerless[node] = "its start has shown nothing yet"
            else:
                await self._site.kill(node)
            if was_up:
                self._lives[node] = life

    def _loses_power(self, node: NodeId) -> bool:
        return self._mode != _KEPT and self._site.loses_power(node)

    async def _restart(self, node: NodeId) -> None:
        if self._loses_power(node):
            self._site.nodes[node].may_end = True  # Whether it can use its data after that is up to the server.
            trouble = ""
            try:
                await self._rules.start(node)
            except GONE as error:
                trouble = f"; it did not start again: {' '.join(str(error).split())}"
            if node in self._powerless:
                await self._show(node)
                self._powerless[node] += trouble
            return
        if self._mode != _KEPT:
            with suppress(*GONE):  # The container was removed: the start reports that, if it matters.
                await self._site.put(node, f"{self._site.nodes[node].folder}/{CRASH_MODE_FILE}", self._mode.encode())
        await self._rules.start(node)

    async def _show(self, node: NodeId) -> None:
        """Compare the canaries with those of a power failure. Raises Unsound if synced data is gone."""
        try:
            canaries = await self._site.canaries(node)
        except GONE as error:
            self._powerless[node] = f"its disk could not be read: {' '.join(str(error).split())}"
            return
        if not canaries.synced:
            raise Unsound(f"{node} lost power, and a file that this harness had synced to its disk is gone")
        if canaries.unsynced:
            self._powerless[node] = "the unsynced file is still there"
        else:
            self._powerless[node] = "the unsynced file is gone, the synced one is there"
            self._shown.add(node)


class Pause:
    """A step that freezes nodes, at once or one from a failpoint on, until its end."""

    def __init__(self, step: Step, nodes: Sequence[NodeId], *, site: Site, prober: Probing, holds: Holds) -> None:
        self._is_at_point = "point" in step.args
        self._site, self._prober, self._holds = site, prober, holds
        self._held: list[NodeId] = []
        self._start: dict[NodeId, int] = {}  # The messages received by the frozen nodes when the freeze began.
        self._doubts: list[str] = []
        self._final: Effect | None = None
        self._strikes = Strikes(step, nodes, site, self._strike)

    async def begin(self) -> None:
        await self._strikes.begin()

    async def end(self) -> None:
        await self._strikes.end()  # A node that waits at the failpoint continues with that.
        held, self._held = self._held, []
        for node in held:
            if self._holds.drop(PAUSED, node):
                with suppress(*GONE):  # Not paused, or not there.
                    await self._site.unpause(node)

    async def effect(self) -> Effect:
        await self._strikes.settled()
        if self._final is None or self._held or self._strikes.is_in_force:
            now = await asyncio.gather(*map(self._arrived, self._start))
            came = [count - start for count, start in zip(now, self._start.values(), strict=True)]
            doubts = "".join(f"; {doubt}" for doubt in self._doubts)
            self._final = Effect(sum(came), f"{sum(came)} events had to wait{doubts}")
            still = [node for node in self._start if self._site.nodes[node].control.is_foreign]
            if still and not sum(came):  # Messages that other servers send to it are not counted.
                self._final = Effect(len(still), f"{', '.join(still)} stood still: no probe was answered{doubts}")
            if not self._start:
                self._final = Effect(0, f"no node stood still{doubts}")
        return self._final

    async def _strike(self, node: NodeId) -> None:
        if self._is_at_point and self._strikes.is_at_point(node):
            self._start[node] = await self._arrived(node)
            return
        self._held.append(node)
        if self._holds.take(PAUSED, node):
            if self._site.nodes[node].is_down:  # The node is restarting: a stopped node cannot be frozen.
                await self._site.nodes[node].control.ready(SETTLED_S)
            start = await self._arrived(node)
            await self._site.pause(node)
            if await self._answers(node):
                self._doubts.append(f"{node} goes on answering")
            else:
                self._start[node] = start

    async def _answers(self, node: NodeId) -> bool:
        with suppress(*GONE):
            async with asyncio.timeout(SILENT_S):
                await self._site.nodes[node].control.clocks()
            return True
        return False

    async def _arrived(self, node: NodeId) -> int:
        """The number of events that arrived at a frozen node. At a failpoint the node itself counts them, as only its
        machine stands still; otherwise the senders do.
        """
        if self._is_at_point and self._strikes.is_at_point(node):
            return (await self._prober.counters([node]))[node].deferred
        return await self._prober.came(node)


class Consumer:
    """A step that makes nodes slow in handling each message."""

    def __init__(self, step: Step, nodes: Sequence[NodeId], *, site: Site, prober: Probing) -> None:
        self._delay_ns = int(step.args["delay_ns"])
        self._nodes, self._site, self._prober = nodes, site, prober
        self._start: Mapping[NodeId, Counters] = {}
        self._is_slow = False
        self._final = Effect(0, "0 messages took longer")

    async def begin(self) -> None:
        self._start = await self._prober.counters(self._nodes)
        self._is_slow = True
        self._slow_down(self._delay_ns)

    async def end(self) -> None:
        if self._is_slow:
            self._slow_down(0)
        self._is_slow = False

    async def effect(self) -> Effect:
        if self._is_slow:
            now = await self._prober.counters(self._nodes)
            count = sum(now[node].delayed - self._start[node].delayed for node in self._nodes)
            self._final = Effect(count, f"{count} messages took longer")
        return self._final

    def _slow_down(self, delay_ns: int) -> None:
        for node in self._nodes:
            self._site.nodes[node].control.tell(Slow(delay_ns))


class FullDisk:
    """A step that fills the disks of nodes; their content is kept.

    A write that finds no room ends the node's process.
    """

    def __init__(self, nodes: Sequence[NodeId], *, site: Site, rules: Rules) -> None:
        self._nodes, self._site, self._rules = nodes, site, rules
        self._lives: dict[NodeId, int] = {}  # The counters of the nodes with full disks, when these became full.
        self._touched: list[NodeId] = []
        self._last = "no write was tried"

    async def begin(self) -> None:
        await asyncio.gather(*(self._fill(node) for node in self._nodes))

    async def end(self) -> None:
        touched, self._touched = self._touched, []
        await asyncio.gather(*(self._empty(node) for node in touched))

    async def effect(self) -> Effect:
        count = sum(self._site.nodes[node].control.life - life for node, life in self._lives.items())
        full = [node for node in self._lives if self._site.nodes[node].control.is_foreign]
        if full:  # Such a server does not report which of its writes found no room.
            return Effect(len(full), f"the disk of {', '.join(full)} was full, which ended its process {count} times")
        return Effect(count, f"{count} writes found no room, and ended the node's process; {self._last}")

    async def _fill(self, node: NodeId) -> None:
        fields = (await self._size(node)).split()
        if len(fields) <= _DF_SIZE:  # The engine may lose a command's output.
            raise DeployError(f"{node} did not report the size of its disk")
        size_kb = int(fields[_DF_SIZE])
        if size_kb > _SMALL_KB:
            self._last = f"the disk of {node} has {size_kb} KB: it is no small volume, and was not filled"
            return
        life = self._site.nodes[node].control.life
        self._touched.append(node)
        self._site.nodes[node].may_end = True
        # A command that fills the disk ends with an error; a byte into another file then shows that it is full.
        ballast = self._ballast(node)
        fill = f"dd if=/dev/zero of={ballast} bs=4k 2>/dev/null"
        probe = f"if echo x 2>/dev/null >{ballast}.probe; then echo room; else echo none; fi; rm -f {ballast}.probe"
        try:
            room = await self._site.run_in(node, ["sh", "-c", f"{fill}; {probe}"])
        except GONE:
            if await self._runs(node):
                raise
            # The node ran when its disk was checked, and ended for lack of room before it could answer.
            self._lives[node], self._last = life, f"{node} ended while its disk was filled"
            return
        if room == "none":
            self._lives[node], self._last = life, "a write by the harness found no room either"
        else:
            self._last = f"a write by the harness found room on {node}"

    async def _size(self, node: NodeId) -> str:
        """The output of `df` for the node's disk."""
        return await self._site.run_in(node, ["df", "-P", "-k", self._site.nodes[node].folder])

    async def _runs(self, node: NodeId) -> bool:
        try:
            await self._size(node)
        except GONE:
            return False
        return True

    async def _empty(self, node: NodeId) -> None:
        place, is_ready = self._site.nodes[node], False
        try:
            await self._site.run_in(node, ["rm", "-f", self._ballast(node)])
            is_ready = await place.control.ready(SETTLED_S)
        except GONE:
            with suppress(*GONE):  # The node does not run: it must have room when it starts.
                await self._site.put(node, self._ballast(node), b"")
        must_start = place.control.is_foreign and not is_ready  # It ended for lack of room, and stays ended.
        if node in self._lives and is_ready and not place.control.serves_after_full_disk:
            await self._site.kill(node)
            must_start = True
        place.is_down, place.may_end = place.is_down or must_start, False
        if must_start:
            await self._rules.start(node)

    def _ballast(self, node: NodeId) -> str:
        return f"{self._site.nodes[node].folder}/{BALLAST}"


class Strikes:
    """The strikes of a step: on all nodes at once; or, if it names a failpoint, only on the first node that reaches
    it.

    If none has reached it by half of the step's window, the first node is struck then. A node that reaches the
    failpoint freezes there, so that the fault strikes it there.
    """

    def __init__(
        self, step: Step, nodes: Sequence[NodeId], site: Site, strike: Callable[[NodeId], Awaitable[None]]
    ) -> None:
        self._nodes, self._site, self._strike = nodes, site, strike
        self._point = step.args.get("point")
        self._half_s = (step.until_ns - step.at_ns) / 2 / 1e9
        self._armed: dict[NodeId, int] = {}
        self._at_point: tuple[NodeId, int] | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._striking: asyncio.Task[None] | None = None
        self.is_in_force = False

    async def begin(self) -> None:
        """Strike now, or arm the failpoint."""
        if self._point is None:
            self.is_in_force = True
            await asyncio.gather(*(self._strike(node) for node in self._nodes))
            return
        for node in self._nodes:
            arm = self._site.nodes[node].control.arm
            self._armed[node] = arm(str(self._point), partial(self._reached, node))
        self._waiting = asyncio.get_running_loop().call_later(self._half_s, self._strike_anyway)

    async def end(self) -> None:
        """Stop striking, and release a node that waits at the failpoint."""
        self.is_in_force = False
        if self._waiting is not None:
            self._waiting.cancel()
        self._disarm()
        await self.settled()
        if self._at_point is not None:
            node, number = self._at_point
            self._site.nodes[node].control.release(number)

    async def settled(self) -> None:
        """Wait until no strike is in progress."""
        if self._striking is not None:
            with suppress(*GONE):
                await self._striking

    def is_at_point(self, node: NodeId) -> bool:
        """True if the node was struck at the failpoint, not at half of the window."""
        return self._at_point is not None and self._at_point[0] == node

    def _reached(self, node: NodeId) -> None:
        number = self._armed.pop(node)
        if self._striking is None:
            self._at_point = (node, number)
            self._strike_in_time(node)
        else:
            self._site.nodes[node].control.release(number)

    def _strike_anyway(self) -> None:
        if self._striking is None:
            self._strike_in_time(self._nodes[0])

    def _strike_in_time(self, node: NodeId) -> None:
        self._disarm()
        self.is_in_force = True
        self._striking = asyncio.ensure_future(self._strike(node))

    def _disarm(self) -> None:
        for node, number in self._armed.items():
            control = self._site.nodes[node].control
            control.disarm(number)
            control.release(number)  # The node may have reached it while that was in progress.
        self._armed.clear()
