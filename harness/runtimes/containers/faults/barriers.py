"""Links between members without a proxy: rules in the network namespace of the receiving member, set from outside.

Members that reach each other by name have no door in between. A barrier is a rule of iptables for the packets that come
from another member's address. The container needs neither a capability nor a program for it: the harness enters the
container's network namespace. Every rule counts its packets, which shows that it is in force.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from harness.core.machine import NodeId
from harness.runtimes.containers.faults.site import GONE, Site, Struck, listed
from nemesis.plan import Effect
from nemesis.topology import ends

# A connection that is cut is reset at once, as are attempts to make a new one; of a stall neither side learns.
_ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "cut": ("-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"),
    "stall": ("-j", "DROP"),
}
_COUNTED: Final = re.compile(r"--comment (\S+) .*?-c (\d+) \d+ ")


class Barriers:
    """All barriers of a run, in the places of their rules."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._standing: dict[str, tuple[NodeId, NodeId, tuple[str, ...]]] = {}  # By name: from, to, and the rule.
        self._fault: dict[str, str] = {}

    async def begin(self, fault: str, links: Mapping[str, str]) -> None:
        """Set a barrier under each of these names, for the link given with it."""
        for name, link in links.items():
            source, target = map(NodeId, ends(link))
            self._standing[name] = (source, target, ())
            self._fault[name] = fault
        await asyncio.gather(*(self._set(name) for name in links))

    async def end(self, names: Sequence[str]) -> None:
        """Take these barriers away. A member that is gone has taken its rules with it."""
        gone = {name: self._standing.pop(name) for name in names if name in self._standing}
        await asyncio.gather(*(self._lift(target, rule) for _, target, rule in gone.values() if rule))

    async def counted(self, names: Sequence[str]) -> dict[str, int]:
        """The packets that each of these barriers has met so far, on the members that can be queried."""
        targets = {self._standing[name][1] for name in names if name in self._standing}
        found: dict[str, int] = {}
        for target in sorted(targets):
            with suppress(*GONE):
                rules = await self._site.filter_packets(target, ["-v", "-S", "INPUT"])
                found |= {name: int(count) for name, count in _COUNTED.findall(rules) if name in names}
        return found

    def concerns(self, node: NodeId) -> bool:
        """True if a barrier stands before or behind that member."""
        return any(node in (source, target) for source, target, _ in self._standing.values())

    async def again(self, node: NodeId) -> None:
        """Set the barriers of a member that has started again: its namespace is new, and perhaps its address."""
        for name, (source, target, rule) in list(self._standing.items()):
            if node == target:
                await self._set(name)
            elif node == source:
                await self._lift(target, rule)
                await self._set(name)

    async def _set(self, name: str) -> None:
        if name not in self._standing:  # It was taken away while another one of its member was set again.
            return
        source, target, _ = self._standing[name]
        try:
            address = await self._site.address_of(source)
            rule = ("-s", address, "-m", "comment", "--comment", name, *_ACTIONS[self._fault[name]])
            await self._site.filter_packets(target, ["-I", "INPUT", "1", *rule])
        except GONE:
            if not (self._site.nodes[source].is_down or self._site.nodes[target].is_down):
                raise
            # `again` does this at its start.
        else:
            if name in self._standing:
                self._standing[name] = (source, target, rule)
            else:  # It was taken away in between, before it had this rule.
                await self._lift(target, rule)

    async def _lift(self, target: NodeId, rule: Sequence[str]) -> None:
        if rule:
            with suppress(*GONE):
                await self._site.filter_packets(target, ["-D", "INPUT", *rule])


class OnMembers:
    """One step on links between members."""

    def __init__(self, number: int, fault: str, links: Sequence[str], barriers: Barriers) -> None:
        self._fault, self._barriers = fault, barriers
        self._links = {f"seamark-{number}-{link.replace('>', '-')}": link for link in links}
        self._most: dict[str, int] = {}
        self._is_in_force = False

    async def begin(self) -> None:
        self._is_in_force = True
        await self._barriers.begin(self._fault, self._links)

    async def end(self) -> None:
        if self._is_in_force:
            await self.effect()
            self._is_in_force = False
            await self._barriers.end(list(self._links))

    async def effect(self) -> Effect:
        if self._is_in_force:
            for name, count in (await self._barriers.counted(list(self._links))).items():
                self._most[name] = max(count, self._most.get(name, 0))
        total = sum(self._most.values())
        silent = [link for name, link in self._links.items() if not self._most.get(name)]
        word = "rejected" if self._fault == "cut" else "dropped"
        note = f"{total} packets between members {word}"
        return Effect(total, f"{note}; none came on {listed(silent)}" if silent else note)


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
