"""A deployment that exists in memory only: what faults do to it is seen in what comes through."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.runtimes.containers.disks.power import Canaries
from harness.runtimes.containers.disks.rot import Rotten
from harness.runtimes.containers.links.late import Lateness
from harness.runtimes.containers.links.links import Toxic
from harness.runtimes.containers.links.queues import Held, Holding
from harness.runtimes.host.control import Clocks, Counters, FromHarness, LinkCounters, Slow
from nemesis.plan import Step

MS = 1_000_000
N1, N2, S1 = NodeId("n1"), NodeId("n2"), NodeId("s1")
NODES = (N1, N2, S1)
SMALL_KB = 65536


def step(fault: str, *targets: str, until_ns: int = 1000 * MS, **args: int | str) -> Step:
    return Step(fault=fault, package="partition", at_ns=0, until_ns=until_ns, targets=targets, args=args)


class FakeProxies:
    def __init__(self) -> None:
        self.disabled: list[str] = []
        self.toxics: dict[str, list[Toxic]] = {}
        self.calls: list[tuple[str, str]] = []

    def enable(self, name: str) -> None:
        self.calls.append(("enable", name))
        self.disabled = [each for each in self.disabled if each != name]

    def disable(self, name: str) -> None:
        self.calls.append(("disable", name))
        self.disabled.append(name)

    def add_toxic(self, name: str, toxic: Toxic) -> None:
        self.toxics.setdefault(name, []).append(toxic)

    def remove_toxic(self, name: str, toxic_name: str) -> None:
        self.toxics[name] = [each for each in self.toxics.get(name, []) if each.name != toxic_name]

    def in_force(self) -> dict[str, list[Toxic]]:
        return {name: toxics for name, toxics in self.toxics.items() if toxics}


class FakeControl:
    """`links` are what the node has counted; a probe arrives if nothing of the site keeps it off."""

    def __init__(self, site: "FakeSite", node: NodeId) -> None:
        self.life, self.lost_records, self.is_foreign = 1, 0, False
        self.serves_after_full_disk = True
        self.links: dict[str, dict[str, int]] = {}
        self.delayed = self.deferred = 0
        self.clock_error_ns = 0
        self.armed: dict[int, tuple[str, Callable[[], None]]] = {}
        self.told: list[FromHarness] = []
        self.released: list[int] = []
        self._site, self._node = site, node
        self._next = 0

    async def clocks(self) -> Clocks:
        if self._node in self._site.paused:
            await asyncio.sleep(10)
        return self._site.clocks(self._node)

    async def counters(self) -> Counters:
        if self._site.nodes[self._node].is_down:
            raise DeployError("does not answer")
        return self.total()

    def total(self) -> Counters:
        links = {peer: LinkCounters(**counts) for peer, counts in self.links.items()}
        return Counters(0, 0, 0, self.delayed, {}, links, deferred=self.deferred)

    async def ready(self, within_s: float) -> bool:
        while self._node in self._site.starting:
            await asyncio.sleep(0.001)
        return not self._site.nodes[self._node].is_down

    async def probe(self, to: NodeId, timeout_s: float) -> str | None:
        reason = self._site.obstacle(self._node, to)
        if reason is None:
            await asyncio.sleep(self._site.latency_s(self._node, to))
            return None
        if reason == "refused":
            self.count(to, refused=1)
        return reason

    def count(self, peer: str, **more: int) -> None:
        counts = self.links.setdefault(peer, {})
        for name, count in more.items():
            counts[name] = counts.get(name, 0) + count

    def arm(self, point: str, reached: Callable[[], None]) -> int:
        self._next += 1
        self.armed[self._next] = (point, reached)
        return self._next

    def disarm(self, number: int) -> None:
        self.armed.pop(number, None)

    def release(self, number: int) -> None:
        self.released.append(number)

    def tell(self, message: FromHarness) -> None:
        self.told.append(message)

    def slow_ns(self) -> int:
        return [each.delay_ns for each in self.told if isinstance(each, Slow)][-1]

    def reach(self) -> None:
        """The machine comes to the failpoint that was armed first."""
        number = next(iter(self.armed))
        self.armed.pop(number)[1]()


@dataclass
class FakeQueue:
    node: NodeId
    holding: Holding
    count: int = 0
    is_open: bool = True

    async def held(self) -> Held:
        return Held(self.count, self.count * 3 * MS)

    async def close(self) -> Held:
        self.is_open = False
        return await self.held()


@dataclass
class FakePlace:
    control: FakeControl
    is_down: bool = False
    may_end: bool = False
    folder: str = "/var/lib/seamark"
    rules: list[str] = field(default_factory=list)  # Of iptables, as "OUTPUT --dport 20001".


class FakeSite:
    """Nodes n1, n2 and s1, all linked. `iptables_works` and the like let a fault fail to bite."""

    def __init__(self) -> None:
        self.proxies = FakeProxies()
        self.nodes = {node: FakePlace(FakeControl(self, node)) for node in NODES}
        self.client_ports = dict.fromkeys(NODES, 1)
        self.paused: list[NodeId] = []
        self.removed: list[NodeId] = []  # Containers that are gone.
        self.commands: list[tuple[NodeId, str]] = []
        self.files: list[tuple[NodeId, str, bytes]] = []
        self.iptables_works = True
        self.disk_kb = SMALL_KB
        self.has_room = False
        self.fails_when_full = self.ends_when_full = False
        self.start_s = 0.0
        self.starting: list[NodeId] = []
        self.relays: dict[str, Lateness] = {}
        self.addresses = {node: f"10.0.0.{number}" for number, node in enumerate(NODES, 1)}
        self.filters: dict[NodeId, list[str]] = {}  # By node, the first rule first.
        self.packets = 0  # Met by each rule.
        self.queues: list[FakeQueue] = []
        self.powered: list[NodeId] = []  # Nodes with file systems of their own.
        self.failed_power: list[tuple[NodeId, bool]] = []
        self.keeps_power = False
        self.left = Canaries(synced=True, unsynced=False)
        self.stubborn: list[NodeId] = []  # Nodes that must be killed.
        self.stuck: list[str] = []  # Links that carry nothing for a reason of their own.

    def port_of(self, source: str, target: str) -> int:
        return 20_000 + 10 * NODES.index(NodeId(source)) + NODES.index(NodeId(target))

    def obstacle(self, source: str, target: str) -> str | None:
        """Why nothing gets through there; None if it does."""
        name = f"{source}>{target}"
        kinds = [toxic.kind for toxic in self.proxies.toxics.get(name, [])]
        if name in self.proxies.disabled or "reset_peer" in kinds or self.nodes[NodeId(target)].is_down:
            return "refused"
        port = self.port_of(source, target)
        silent = any(str(port) in rule for rule in self.nodes[NodeId(source)].rules)
        return "nothing arrived within 300 ms" if silent or name in self.stuck else None

    def latency_s(self, source: str, target: str) -> float:
        toxics = self.proxies.toxics.get(f"{source}>{target}", [])
        return sum(toxic.attributes["latency"] for toxic in toxics if toxic.kind == "latency") / 1000

    def talk(self, source: NodeId, target: NodeId, count: int) -> None:
        """`source` sends so many messages to `target`; a connection that cannot be made is refused once."""
        reason = self.obstacle(source, target)
        near, far = self.nodes[source].control, self.nodes[target].control
        if reason == "refused":
            near.count(target, refused=1)
            return
        near.count(target, sent=count)
        if reason is None:
            far.count(source, received=count)

    def clocks(self, node: NodeId) -> Clocks:
        monotonic_ns = time.monotonic_ns()
        error_ns = self.nodes[node].control.clock_error_ns
        return Clocks(0, 0, monotonic_ns, 0, time.time_ns() - time.monotonic_ns() + monotonic_ns + error_ns)

    def lateness(self, link: str) -> Lateness | None:
        return self.relays.get(link)

    async def address_of(self, node: NodeId) -> str:
        if self.nodes[node].is_down:
            raise DeployError(f"{node} has no address")
        return self.addresses[node]

    async def filter_packets(self, node: NodeId, arguments: Sequence[str]) -> str:
        if self.nodes[node].is_down:
            raise DeployError(f"no container {node}")
        rules = self.filters.setdefault(node, [])
        match list(arguments):
            case ["-I", "INPUT" | "OUTPUT", "1", *rule]:
                rules.insert(0, " ".join(rule))
            case ["-D", "INPUT" | "OUTPUT", *rule]:
                rules.remove(" ".join(rule))
        names = [rule.split("--comment ")[1].split()[0] for rule in rules]
        return "".join(f"-A INPUT -m comment --comment {name} -c {self.packets} 99 -j DROP\n" for name in names)

    async def hold_packets(self, node: NodeId, number: int, holding: Holding) -> FakeQueue:
        if self.nodes[node].is_down:
            raise DeployError(f"no container {node}")
        self.queues.append(FakeQueue(node, holding))
        return self.queues[-1]

    async def rot(self, node: NodeId, *, how: str, place: int) -> Rotten:
        if not self.nodes[node].is_down:
            raise DeployError(f"{node} runs")
        return Rotten("/data/file", f"{how} at {place}")

    def loses_power(self, node: NodeId) -> bool:
        return node in self.powered

    async def fail_power(self, node: NodeId, *, is_torn: bool) -> None:
        self.failed_power.append((node, is_torn))
        await self.kill(node)
        if self.keeps_power:
            raise DeployError(f"{node} is not on this machine")

    async def canaries(self, node: NodeId) -> Canaries:
        if node in self.removed:
            raise DeployError(f"no container {node}")
        return self.left

    async def run_in(self, node: NodeId, command: list[str]) -> str:
        line = command[-1]
        self.commands.append((node, line))
        if node in self.removed or self.nodes[node].is_down:
            raise DeployError(f"no container {node}")
        if command[0] == "iptables":
            return "\n".join(
                f"-A {chain} -p tcp -m tcp {match} {port} -c 7 420 -j DROP"
                for chain, match, port in (rule.split() for rule in self.nodes[node].rules)
            )
        if command[0] == "df":
            return f"Filesystem 1024-blocks Used Available Capacity Mounted on\ntmpfs {self.disk_kb} 0 0 0% /x"
        if "ballast.probe" in line:
            if self.fails_when_full:
                self.nodes[node].is_down = self.ends_when_full
                raise DeployError(f"the command on {node} came to no end")
            return "room" if self.has_room else "none"
        for verb, chain, match, port in re.findall(r"-([ID]) (\w+)(?: 1)? -p tcp (--[ds]port) (\d+)", line):
            rule = f"{chain} {match} {port}"
            if self.iptables_works and verb == "I":
                self.nodes[node].rules.append(rule)
            elif rule in self.nodes[node].rules:
                self.nodes[node].rules.remove(rule)
        return ""

    async def kill(self, node: NodeId) -> None:
        if node in self.removed:
            raise DeployError(f"no container {node}")
        self.nodes[node].is_down = True
        self.nodes[node].rules.clear()

    async def stop(self, node: NodeId) -> bool:
        await self.kill(node)
        return node not in self.stubborn

    async def start(self, node: NodeId) -> None:
        self.starting.append(node)
        await asyncio.sleep(self.start_s)
        self.starting.remove(node)
        self.nodes[node].is_down = False
        self.nodes[node].control.life += 1
        await asyncio.sleep(0.03)

    async def pause(self, node: NodeId) -> None:
        self.paused.append(node)

    async def unpause(self, node: NodeId) -> None:
        if node not in self.paused:
            raise DeployError(f"{node} is not paused")
        self.paused.remove(node)

    async def put(self, node: NodeId, path: str, content: bytes) -> None:
        self.files.append((node, path, content))
