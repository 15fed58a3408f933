"""Faults of links between members: rules in the receiving member's namespace, counted, and set again after a start."""

import asyncio
from collections.abc import Sequence

import pytest

from clusters.etcd import Cluster
from harness.core.machine import NodeId
from harness.runtimes.containers.faults.barriers import Barriers, OnMembers
from harness.runtimes.containers.faults.faults import faults_on_machines
from harness.runtimes.host.control import LinkCounters
from nemesis.plan import Plan
from nemesis.topology import Topology
from nemesis.validation import problems
from tests.unit.runtimes.containers.fake_site import N1, N2, FakeSite, step

MEMBERS = Topology(
    nodes=(("n1", "member"), ("n2", "member")),
    links={("client", "member"): "fifo", ("member", "client"): "fifo", ("member", "member"): "direct"},
)


def test_a_barrier_stands_at_the_receiver_counts_its_packets_and_goes() -> None:
    async def main() -> None:
        site = FakeSite()
        faults = faults_on_machines(site, MEMBERS, lambda _: LinkCounters())
        stall = step("stall", "n1>n2")
        await faults.apply(stall)
        assert site.filters == {N2: ["-s 10.0.0.1 -m comment --comment seamark-0-n1-n2 -j DROP"]}
        assert (await faults.effect(stall)).count == 0
        site.packets = 7
        await faults.undo(stall)
        await faults.undo(stall)
        assert site.filters == {N2: []}
        effect = await faults.effect(stall)
        assert (effect.count, effect.note) == (7, "7 packets between members dropped")

    asyncio.run(main())


def test_a_step_that_met_no_packet_had_no_effect_and_says_where() -> None:
    async def main() -> None:
        site = FakeSite()
        members = OnMembers(3, "cut", ["n1>n2", "n2>n1"], Barriers(site))
        await members.begin()
        assert "--reject-with tcp-reset" in site.filters[N1][0]
        await members.end()
        assert await members.effect() == (await members.effect())
        assert (await members.effect()).note == "0 packets between members rejected; none came on n1>n2, n2>n1"

    asyncio.run(main())


@pytest.mark.parametrize("node", [N1, N2])
def test_a_member_that_starts_again_is_behind_the_barrier_also_under_another_address(node: str) -> None:
    async def main() -> None:
        site = FakeSite()
        barriers = Barriers(site)
        await barriers.begin("stall", {"one": "n1>n2"})
        if node == N2:
            site.filters[N2] = []  # Its namespace is new.
        else:
            site.addresses[N1] = "10.0.0.9"
        assert barriers.concerns(N1)
        assert barriers.concerns(N2)
        await barriers.again(N1 if node == N1 else N2)
        address = "10.0.0.9" if node == N1 else "10.0.0.1"
        assert site.filters == {N2: [f"-s {address} -m comment --comment one -j DROP"]}
        await barriers.end(["one"])
        assert site.filters == {N2: []}
        assert not barriers.concerns(N1)

    asyncio.run(main())


def test_a_member_that_is_down_gets_its_barrier_when_it_starts() -> None:
    async def main() -> None:
        site = FakeSite()
        barriers = Barriers(site)
        site.nodes[N2].is_down = True
        await barriers.begin("stall", {"one": "n1>n2"})
        assert site.filters == {}
        site.nodes[N2].is_down = False
        await barriers.again(N2)
        assert len(site.filters[N2]) == 1

    asyncio.run(main())


@pytest.mark.parametrize("fault", ["delay", "bandwidth", "reset", "limit-data"])
def test_a_fault_that_needs_a_proxy_is_refused_on_a_direct_link(fault: str) -> None:
    args = {"delay": {"latency_ns": 1}, "bandwidth": {"bytes_per_s": 9}, "limit-data": {"bytes": 9}}.get(fault, {})
    told = problems(Plan(steps=(step(fault, "n1>n2", **args),)), MEMBERS, runtime="docker")
    assert any("'n1>n2' is a direct link: no proxy is in between; cut or stall it" in line for line in told)


def test_servers_have_direct_links_unless_they_have_doors() -> None:
    system = Cluster()
    assert system.links["member", "member"] == "direct"
    system.dials = (("client", "member"), ("member", "member"))
    system.__post_init__()
    assert system.links["member", "member"] == "fifo"


@pytest.mark.parametrize("ended", [["one", "two"], ["one"], ["two"]], ids=" ".join)
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_barrier_that_is_taken_away_while_its_member_starts_leaves_no_rule(ended: list[str], at: int) -> None:
    async def main() -> None:
        site = FakeSite()
        barriers = Barriers(site)
        await barriers.begin("stall", {"one": "n1>n2", "two": "n2>n1"})
        site.filters, site.addresses[N1] = {}, "10.0.0.9"  # Both start again: the namespaces are new.
        calls, address_of, filter_packets = 0, site.address_of, site.filter_packets

        async def interrupted() -> None:
            nonlocal calls
            calls += 1
            if calls == at:
                await barriers.end(ended)

        async def slow_address(node: NodeId) -> str:
            await interrupted()
            return await address_of(node)

        async def slow_filter(node: NodeId, arguments: Sequence[str]) -> str:
            if arguments[0] == "-I":
                await interrupted()
            elif " ".join(list(arguments)[2:]) not in site.filters.get(node, []):
                return ""  # iptables would complain; the namespace is new.
            return await filter_packets(node, arguments)

        site.address_of, site.filter_packets = slow_address, slow_filter  # type: ignore[method-assign]
        await barriers.again(N1)
        await barriers.end(["one", "two"])
        assert [rule for rules in site.filters.values() for rule in rules] == []

    asyncio.run(main())
