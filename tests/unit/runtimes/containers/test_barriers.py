"""Faults of links between members: rules in the receiving member's namespace, counted, and set again after a start."""

import asyncio
from collections.abc import Sequence

import pytest

from clusters.etcd import Cluster
from harness.core.machine import NodeId
from harness.runtimes.containers.faults.barriers import Barriers, OnMembers
from harness.runtimes.containers.faults.faults import faults_on_machines
from harness.runtimes.containers.links.queues import Holding
from harness.runtimes.host.control import LinkCounters
from nemesis.plan import Effect, Plan
from nemesis.topology import Topology
from nemesis.validation import problems
from tests.unit.runtimes.containers.fake_site import MS, N1, N2, FakeSite, step

MEMBERS = Topology(
    nodes=(("n1", "member"), ("n2", "member")),
    links={("client", "member"): "fifo", ("member", "client"): "fifo", ("member", "member"): "direct"},
)
STALL = step("stall", "n1>n2")


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
        members = OnMembers(3, step("cut", "n1>n2", "n2>n1"), ["n1>n2", "n2>n1"], Barriers(site))
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
        await barriers.begin(STALL, {"one": "n1>n2"})
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
        await barriers.begin(STALL, {"one": "n1>n2"})
        assert site.filters == {}
        site.nodes[N2].is_down = False
        await barriers.again(N2)
        assert len(site.filters[N2]) == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fault", "args", "place", "action"),
    [
        ("drop", {"permille": 100}, N2, "-s 10.0.0.1 -m statistic --mode random --probability 0.1 {} -j DROP"),
        (
            "duplicate",
            {"permille": 100},
            N1,
            "-d 10.0.0.2 -m statistic --mode random --probability 0.1 {} -j TEE --gateway 10.0.0.2",
        ),
    ],
)
def test_lost_and_doubled_packets_need_a_rule_alone(
    fault: str, args: dict[str, int], place: NodeId, action: str
) -> None:
    async def main() -> None:
        site = FakeSite()
        faults = faults_on_machines(site, MEMBERS, lambda _: LinkCounters())
        struck = step(fault, "n1>n2", **args)
        await faults.apply(struck)
        assert site.filters == {place: [action.format("-m comment --comment seamark-0-n1-n2")]}
        site.packets = 5
        await faults.undo(struck)
        assert site.filters == {place: []}
        assert (await faults.effect(struck)).count == 5

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fault", "args", "holding", "done"),
    [
        ("delay", {"latency_ns": 9, "jitter_ns": 4}, Holding(9, 4), "delayed"),
        ("bandwidth", {"bytes_per_s": 900}, Holding(bytes_per_s=900), "held back"),
        ("reorder", {"permille": 9}, Holding(MS, 19 * MS, is_ordered=False), "held while others passed"),
    ],
)
def test_packets_are_held_by_a_program_which_ends_with_the_step_and_begins_again_with_its_member(
    fault: str, args: dict[str, int], holding: Holding, done: str
) -> None:
    async def main() -> None:
        site = FakeSite()
        barriers = Barriers(site)
        members = OnMembers(0, step(fault, "n1>n2", **args), ["n1>n2"], barriers)
        await members.begin()
        [queue] = site.queues
        assert (queue.node, queue.holding) == (N2, holding)
        assert site.filters[N2][0].endswith("-j NFQUEUE --queue-num 1 --queue-bypass")
        queue.count, site.packets = 4, 99  # The rule also counts packets that passed without the program.
        assert await members.effect() == Effect(4, f"4 packets between members {done}, 3.0 ms on average")
        site.filters[N2] = []  # Its namespace is new.
        await barriers.again(N2)
        assert [each.is_open for each in site.queues] == [False, True]
        await members.end()
        assert [each.is_open for each in site.queues] == [False, False]
        assert site.filters == {N2: []}

    asyncio.run(main())


def test_a_link_whose_members_start_again_at_once_is_free_when_the_step_ends() -> None:
    async def main() -> None:
        site = FakeSite()
        barriers = Barriers(site)
        await barriers.begin(STALL, {"one": "n1>n2"})
        site.filters, filter_packets = {}, site.filter_packets

        async def slow_filter(node: NodeId, arguments: Sequence[str]) -> str:
            await asyncio.sleep(0)
            return await filter_packets(node, arguments)

        site.filter_packets = slow_filter  # type: ignore[method-assign]
        await asyncio.gather(barriers.again(N2), barriers.again(N1))
        await barriers.end(["one"])
        assert site.filters == {N2: []}

    asyncio.run(main())


@pytest.mark.parametrize("fault", ["reset", "limit-data"])
def test_a_fault_that_needs_a_proxy_is_refused_on_a_direct_link(fault: str) -> None:
    args = {"bytes": 9} if fault == "limit-data" else {}
    told = problems(Plan(steps=(step(fault, "n1>n2", **args),)), MEMBERS, runtime="docker")
    assert any("'n1>n2' is a direct link: no proxy is in between; cut, stall or delay it" in line for line in told)


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
        await barriers.begin(STALL, {"one": "n1>n2", "two": "n2>n1"})
        site.filters, site.addresses[N1] = {}, "10.0.0.9"  # Both start again: the namespaces are new.
        calls, address_of, filter_packets = 0, site.address_of, site.filter_packets
        ending: list[asyncio.Task[None]] = []

        async def interrupted() -> None:
            nonlocal calls
            calls += 1
            if calls == at:
                ending.append(asyncio.create_task(barriers.end(ended)))
                await asyncio.sleep(0)

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
        await asyncio.gather(*ending)
        await barriers.end(["one", "two"])
        assert [rule for rules in site.filters.values() for rule in rules] == []

    asyncio.run(main())
