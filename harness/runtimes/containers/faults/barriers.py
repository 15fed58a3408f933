"""Links between members without a proxy: rules in the network namespace of a member, set from outside.

Members that reach each other by name have no door in between. A barrier is a rule of iptables for the packets from one
member's address to another: it stands at the receiver, or at the sender if it makes copies. The container needs neither
a capability nor a program for it: the harness enters the container's network namespace. Packets that are held up pass
through a program of ours there; without it the kernel lets them pass. Rule and program count their packets, which
shows that the fault is in force.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from harness.core.machine import NodeId
from harness.runtimes.containers.faults.site import GONE, Queue, Site, Struck, listed
from harness.runtimes.containers.links.queues import Held, Holding
from nemesis.plan import Effect, Step
from nemesis.topology import ends

# A connection that is cut is reset at once, as are attempts to make a new one; of a stall neither side learns.
_CUT: Final = ("-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")
_DROP: Final = ("-j", "DROP")
_DONE: Final[Mapping[str, str]] = {
    "cut": "rejected",
    "stall": "dropped",
    "drop": "lost",
    "duplicate": "doubled",
    "reorder": "held while others passed",
    "delay": "delayed",
    "bandwidth": "held back",
}
_OVERTAKEN: Final = Holding(1_000_000, 19_000_000, is_ordered=False)
_MS: Final = 1_000_000
_COUNTED: Final = re.compile(r"--comment (\S+) .*?-c (\d+) \d+ ")


@dataclass(slots=True)
class Barrier:
    """A fault on one link. Only one task at a time sets or lifts it."""

    step: Step
    source: NodeId
    target: NodeId
    number: int  # Of its queue, in either namespace.
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    rule: tuple[str, ...] = ()  # As it stands now: its chain, then the rule.
    queue: Queue | None = None

    @property
    def place(self) -> NodeId:
        """The member in whose namespace it stands."""
        return self.source if self.step.fault == "duplicate" else self.target

    @property
    def other(self) -> NodeId:
        """The member whose address it names."""
        return self.target if self.step.fault == "duplicate" else self.source

    @property
    def holding(self) -> Holding | None:
        """How it holds packets; None if it does not."""
        args = {name: int(value) for name, value in self.step.args.items()}
        match self.step.fault:
            case "delay":
                return Holding(args["latency_ns"], args.get("jitter_ns", 0))
            case "bandwidth":
                return Holding(bytes_per_s=args["bytes_per_s"])
            case "reorder":
                return _OVERTAKEN
        return None

    def rule_for(self, name: str, address: str) -> tuple[str, ...]:
        """The chain, and its rule for packets from or to that address."""
        chain, way = ("OUTPUT", "-d") if self.step.fault == "duplicate" else ("INPUT", "-s")
        some = (
            "-m",
            "statistic",
            "--mode",
            "random",
            "--probability",
            f"{int(self.step.args.get('permille', 0)) / 1000}",
        )
        chosen = some if "permille" in self.step.args else ()
        action: tuple[str, ...]
        match self.step.fault:
            case "cut":
                action = _CUT
            case "stall" | "drop":
                action = _DROP
            case "duplicate":
                action = ("-j", "TEE", "--gateway", address)
            case _:
                action = ("-j", "NFQUEUE", "--queue-num", str(self.number), "--queue-bypass")
        return (chain, way, address, *chosen, "-m", "comment", "--comment", name, *action)


class Barriers:
    """All barriers of a run, in the places of their rules."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._standing: dict[str, Barrier] = {}
        self._count = 0

    async def begin(self, step: Step, links: Mapping[str, str]) -> None:
        """Set a barrier under each of these names, for the link given with it."""
        for name, link in links.items():
            source, target = map(NodeId, ends(link))
            self._count += 1
            self._standing[name] = Barrier(step, source, target, self._count)
        await asyncio.gather(*(self._set(name, self._standing[name]) for name in links))

    async def end(self, names: Sequence[str]) -> None:
        """Take these barriers away. A member that is gone has taken its rules with it."""
        gone = [self._standing.pop(name) for name in names if name in self._standing]
        await asyncio.gather(*map(self._lifted, gone))

    async def counted(self, names: Sequence[str]) -> dict[str, int]:
        """The packets that each of these barriers has met so far, on the members that can be queried."""
        found: dict[str, int] = {}
        for place in sorted({self._standing[name].place for name in names if name in self._standing}):
            with suppress(*GONE):
                rules = await self._site.filter_packets(place, ["-v", "-S"])
                found |= {name: int(count) for name, count in _COUNTED.findall(rules) if name in names}
        return found

    async def held(self, name: str) -> Held:
        """What that barrier has held since it was set, also the last time."""
        barrier = self._standing.get(name)
        return Held() if barrier is None or barrier.queue is None else await barrier.queue.held()

    def concerns(self, node: NodeId) -> bool:
        """True if a barrier stands before or behind that member."""
        return any(node in (each.source, each.target) for each in self._standing.values())

    async def again(self, node: NodeId) -> None:
        """Set the barriers of a member that has started again: its namespace is new, and perhaps its address."""
        for name, barrier in list(self._standing.items()):
            if node in (barrier.source, barrier.target):
                await self._set(name, barrier, has_new_place=node == barrier.place)

    async def _set(self, name: str, barrier: Barrier, *, has_new_place: bool = False) -> None:
        async with barrier.turn:
            if has_new_place:
                barrier.rule = ()
            await self._lift(barrier)
            if self._standing.get(name) is not barrier:
                return
            try:
                address = await self._site.address_of(barrier.other)
                if barrier.holding is not None:
                    barrier.queue = await self._site.hold_packets(barrier.place, barrier.number, barrier.holding)
                chain, *rule = barrier.rule_for(name, address)
                await self._site.filter_packets(barrier.place, ["-I", chain, "1", *rule])
                barrier.rule = (chain, *rule)
            except GONE:
                await self._lift(barrier)
                if not (self._site.nodes[barrier.source].is_down or self._site.nodes[barrier.target].is_down):
                    raise
                # `again` does this at its start.

    async def _lifted(self, barrier: Barrier) -> None:
        async with barrier.turn:
            await self._lift(barrier)

    async def _lift(self, barrier: Barrier) -> None:
        (rule, barrier.rule), (queue, barrier.queue) = (barrier.rule, ()), (barrier.queue, None)
        if rule:
            with suppress(*GONE):
                await self._site.filter_packets(barrier.place, ["-D", *rule])
        if queue is not None:
            await queue.close()


class OnMembers:
    """One step on links between members."""

    def __init__(self, number: int, step: Step, links: Sequence[str], barriers: Barriers) -> None:
        self._step, self._barriers = step, barriers
        self._links = {f"seamark-{number}-{link.replace('>', '-')}": link for link in links}
        self._most: dict[str, int] = {}
        self._held: dict[str, Held] = {}
        self._is_in_force = False

    async def begin(self) -> None:
        self._is_in_force = True
        await self._barriers.begin(self._step, self._links)

    async def end(self) -> None:
        if self._is_in_force:
            await self.effect()
            self._is_in_force = False
            await self._barriers.end(list(self._links))

    async def effect(self) -> Effect:
        if self._is_in_force:
            await self._count()
        total = sum(self._most.values())
        silent = [link for name, link in self._links.items() if not self._most.get(name)]
        note = f"{total} packets between members {_DONE[self._step.fault]}"
        if total and self._held:
            mean_ns = sum(each.total_ns for each in self._held.values()) // total
            note += f", {mean_ns / _MS:.1f} ms on average"
        return Effect(total, f"{note}; none came on {listed(silent)}" if silent else note)

    async def _count(self) -> None:
        names = list(self._links)
        if self._step.fault in ("delay", "bandwidth", "reorder"):
            for name in names:
                held = await self._barriers.held(name)
                if held.packets >= self._held.get(name, Held()).packets:  # Else its member has started again.
                    self._held[name] = held
            counted = {name: held.packets for name, held in self._held.items()}
        else:
            counted = await self._barriers.counted(names)
        for name, count in counted.items():
            self._most[name] = max(count, self._most.get(name, 0))


class Together:
    """The parts of one step that are carried out by different means."""

    def __init__(self, *parts: Struck) -> None:
        self._parts = parts

    async def begin(self) -> None:
        await asyncio.gather(*(part.begin() for part in self._parts))

    async def end(self) -> None:
        await asyncio.gather(*(part.end() for part in self._parts))

    async def effect(self) -> Effect:
        found = [await part.effect() for part in self._parts]
        return Effect(sum(effect.count for effect in found), "; ".join(effect.note for effect in found))
