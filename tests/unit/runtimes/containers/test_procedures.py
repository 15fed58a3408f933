"""What rolls and changes of members do to a deployment, on one that exists in memory only."""

import asyncio

import pytest

from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.runtimes.containers.faults.faults import ContainerFaults
from harness.runtimes.containers.faults.probing import Prober
from harness.runtimes.containers.faults.site import Holds
from harness.runtimes.host.control import LinkCounters
from nemesis.plan import Effect
from nemesis.topology import MEMBERSHIP, UPGRADES, Topology
from tests.unit.runtimes.containers.fake_site import MS, N1, N2, FakeSite, step
from tests.unit.runtimes.containers.stage import Stage, run

MEMBERS = Topology(nodes=(("n1", "data"), ("n2", "data")), links={}, procedures=(MEMBERSHIP, UPGRADES))


class System:
    """A system's procedures on the nodes of a site. `refuses` has the calls that fail, each once."""

    def __init__(self, site: FakeSite) -> None:
        self.site = site
        self.listed = {N1, N2}
        self.calls: list[str] = []
        self.refuses: list[str] = []
        self.forgets = False

    def call(self, name: str, node: NodeId) -> None:
        self.calls.append(f"{name} {node}")
        if name in self.refuses:
            self.refuses.remove(name)
            raise DeployError(f"{name} is refused")

    async def promote(self, dead: NodeId) -> NodeId:
        raise AssertionError(dead)

    async def upgrade(self, node: NodeId) -> None:
        assert self.site.nodes[node].is_down
        self.call("upgrade", node)

    async def leave(self, node: NodeId, within_s: float) -> None:
        self.call("leave", node)
        self.listed.discard(node)

    async def join(self, node: NodeId, within_s: float) -> None:
        assert self.site.nodes[node].is_down
        self.call("join", node)
        self.listed |= set() if self.forgets else {node}

    async def members(self, beside: NodeId, within_s: float) -> frozenset[NodeId]:
        return frozenset(self.listed)


def staged() -> tuple[FakeSite, System, ContainerFaults]:
    site, holds = FakeSite(), Holds()
    system = System(site)
    prober = Prober(site, lambda _: LinkCounters(), holds)
    return site, system, ContainerFaults(site, MEMBERS, prober, holds, system)


def test_a_removed_node_is_away_until_the_end_and_joins_without_data() -> None:
    async def main() -> None:
        site, system, faults = staged()
        remove = step("remove", "n2")
        await faults.apply(remove)
        assert (site.nodes[N2].is_down, site.nodes[N2].may_end, system.listed) == (True, False, {N1})
        assert await faults.effect(remove) == Effect(1, "n2 left: n1 remained")
        await faults.undo(remove)
        await faults.undo(remove)
        assert (site.nodes[N2].is_down, system.listed, system.calls) == (False, {N1, N2}, ["leave n2", "join n2"])
        assert await faults.effect(remove) == Effect(2, "n2 left: n1 remained; n2 joined without data")

    run(main())


def test_a_replaced_node_joins_at_once() -> None:
    async def main() -> None:
        site, system, faults = staged()
        replace = step("replace", "n1")
        await faults.apply(replace)
        assert (site.nodes[N1].is_down, system.calls) == (False, ["leave n1", "join n1"])
        await faults.undo(replace)
        assert (await faults.effect(replace)).count == 2
        assert system.calls == ["leave n1", "join n1"]

    run(main())


def test_what_was_refused_at_first_is_done_at_the_end() -> None:
    async def main() -> None:
        for fault, refused in (("remove", "leave"), ("replace", "leave"), ("replace", "join")):
            site, system, faults = staged()
            change = step(fault, "n2")
            system.refuses = [refused]
            await faults.apply(change)
            assert site.nodes[N2].is_down
            await faults.undo(change)
            effect = await faults.effect(change)
            assert (site.nodes[N2].is_down, system.listed, effect.count) == (False, {N1, N2}, 2)
            assert effect.note.endswith(f"; it took until the end: {refused} is refused")

    run(main())


def test_a_node_that_the_others_do_not_list_has_not_joined() -> None:
    async def main() -> None:
        _, system, faults = staged()
        system.forgets = True
        remove = step("remove", "n2")
        await faults.apply(remove)
        with pytest.raises(DeployError, match="n2 runs, but the others do not list it: n1"):
            await faults.undo(remove)
        assert (await faults.effect(remove)).count == 1

    run(main())


def test_a_crash_does_not_start_a_node_that_has_left() -> None:
    async def main() -> None:
        site, system, faults = staged()
        remove, crash = step("remove", "n2"), step("crash", "n2", disk="kept")
        await faults.apply(remove)
        await faults.apply(crash)
        await faults.undo(crash)
        assert site.nodes[N2].is_down
        assert (await faults.effect(crash)).count == 0
        await faults.undo(remove)
        assert (site.nodes[N2].is_down, system.calls) == (False, ["leave n2", "join n2"])

    run(main())


def test_nodes_restart_in_turn_and_those_whose_turn_has_not_come_stay_up() -> None:
    async def main() -> None:
        stage = Stage()
        stage.site.stubborn = [N2]
        one = step("restart", "n2")
        await stage.faults.apply(one)
        await stage.faults.undo(one)
        assert await stage.faults.effect(one) == Effect(1, "n2 (which had to be killed) stopped and answered again")
        long = step("restart", "n1", "n2", until_ns=10_000 * MS)
        beginning = asyncio.create_task(stage.faults.apply(long))
        await asyncio.sleep(0.01)
        await stage.faults.undo(long)
        assert await stage.faults.effect(long) == Effect(1, "n1 stopped and answered again")
        assert [stage.site.nodes[node].is_down for node in (N1, N2)] == [False, False]
        beginning.cancel()

    run(main())


def test_an_upgrade_leaves_no_node_behind() -> None:
    async def main() -> None:
        site, system, faults = staged()
        upgrade = step("upgrade", "n2", "n1", until_ns=10_000 * MS)
        beginning = asyncio.create_task(faults.apply(upgrade))
        await asyncio.sleep(0.01)
        await faults.undo(upgrade)
        assert system.calls == ["upgrade n2", "upgrade n1"]
        assert await faults.effect(upgrade) == Effect(2, "n2, n1 answered with the next release")
        assert [site.nodes[node].is_down for node in (N1, N2)] == [False, False]
        beginning.cancel()

    run(main())
