"""What faults of links do to a deployment, undo, and are seen to do, on one that exists in memory only."""

import msgspec
import pytest

from harness.core.machine import NodeId
from harness.runtimes.containers.faults.faults import faults_on_machines
from harness.runtimes.containers.faults.probing import LinkPath, link_path
from harness.runtimes.containers.faults.struck_links import toxics
from harness.runtimes.containers.links.links import Toxic
from harness.runtimes.host.control import LinkCounters
from nemesis.plan import Effect, LinkFault, Step
from tests.unit.runtimes.containers.fake_site import MS, N1, S1, FakeSite, step
from tests.unit.runtimes.containers.stage import TOPOLOGY, Stage, run


@pytest.mark.parametrize(
    ("fault", "target", "found"),
    [
        (step("cut", "n1>n2"), "n1>n2", []),
        (step("stall", "n1>n2"), "n1>n2", []),
        (step("stall", "client>n1"), "client>n1", [("latency", "upstream", {"latency": 86_400_000, "jitter": 0})]),
        (step("stall", "n1>client"), "n1>client", [("latency", "downstream", {"latency": 86_400_000, "jitter": 0})]),
        (
            step("delay", "n1>n2", latency_ns=200 * MS, jitter_ns=100 * MS),
            "n1>n2",
            [("latency", "upstream", {"latency": 250, "jitter": 50})],
        ),
        (
            step("reset", "n1>n2"),
            "n1>n2",
            [("reset_peer", "upstream", {"timeout": 0}), ("reset_peer", "downstream", {"timeout": 0})],
        ),
        (step("bandwidth", "n1>n2", bytes_per_s=5999), "n1>n2", [("bandwidth", "upstream", {"rate": 5})]),
        (
            step("bandwidth", "n1>n2", bytes_per_s=300),
            "n1>n2",
            [("slicer", "upstream", {"average_size": 15, "size_variation": 0, "delay": 50_000})],
        ),
        (
            step("bandwidth", "n1>n2", bytes_per_s=7),
            "n1>n2",
            [("slicer", "upstream", {"average_size": 1, "size_variation": 0, "delay": 142_857})],
        ),
        (step("limit-data", "n1>client", bytes=9), "n1>client", [("limit_data", "downstream", {"bytes": 9})]),
    ],
)
def test_a_step_is_these_toxics(fault: Step, target: str, found: list[tuple[str, str, dict[str, int]]]) -> None:
    assert [
        tuple(toxic)[1:]
        for toxic in toxics("step-1", msgspec.convert(fault.fault, LinkFault), fault, link_path(target))
    ] == found


def test_what_goes_to_clients_goes_down_the_proxy_that_they_dial() -> None:
    assert link_path("client>n1").proxy == link_path("n1>client").proxy == "client>n1"
    assert (link_path("client>n1").stream, link_path("n1>client").stream) == ("upstream", "downstream")
    assert link_path("n1>n2") == LinkPath("n1>n2", "n1", "n2", "n1>n2", "upstream", is_shared=False)


@pytest.mark.parametrize(
    ("fault", "note"),
    [
        (step("cut", "n1>s1"), "1 connections closed or refused; probed n1>s1: did not arrive (refused)"),
        (step("reset", "n1>s1"), "1 connections reset or refused; probed n1>s1: did not arrive (refused)"),
        (step("stall", "n1>s1"), "10 messages held back, 14 packets dropped; probed n1>s1: did not arrive (nothing"),
        (step("delay", "n1>s1", latency_ns=20 * MS), "10 messages delayed; probed n1>s1: took "),
    ],
)
def test_a_fault_of_a_link_bites_one_way_and_ends(fault: Step, note: str) -> None:
    async def main() -> None:
        stage = Stage()
        await stage.faults.apply(fault)
        assert stage.site.obstacle("s1", "n1") is None
        assert stage.site.latency_s("s1", "n1") == 0
        await stage.faults.undo(fault)
        effect = await stage.carried_out(fault)
        assert effect.note.startswith(note)
        assert effect.count == int(note.split(maxsplit=1)[0])
        assert stage.site.obstacle("n1", "s1") is None
        assert stage.site.latency_s("n1", "s1") == 0
        assert stage.site.proxies.in_force() == {}

    run(main())


@pytest.mark.parametrize("fault", [step("cut", "n1>s1"), step("stall", "n1>s1"), step("delay", "n1>s1", latency_ns=MS)])
def test_a_fault_on_a_link_without_traffic_had_no_effect(fault: Step) -> None:
    async def main() -> None:
        effect = await Stage().carried_out(fault, source=S1, target=N1)
        assert effect.count == 0

    run(main())


def test_connections_that_only_probes_opened_or_were_refused_are_no_effect() -> None:
    async def main() -> None:
        stage = Stage()
        control = stage.site.nodes[N1].control
        probe = control.probe

        async def opening(to: NodeId, timeout_s: float) -> str | None:
            reason = await probe(to, timeout_s)
            if reason is None:
                control.count(to, opened=1)
            return reason

        control.probe = opening  # type: ignore[method-assign]  # A host that dials for a probe.
        cut = step("cut", "n1>s1")
        await stage.faults.apply(cut)
        control.count("s1", closed=1)  # The connection that the first probe had opened.
        assert (await stage.faults.effect(cut)).count == 0
        control.count("s1", refused=1)
        assert (await stage.faults.effect(cut)).count == 1

    run(main())


def test_a_fault_that_no_probe_shows_counts_nothing_and_says_what_was_probed() -> None:
    async def main() -> None:
        stage = Stage()
        stage.site.iptables_works = False
        effect = await stage.carried_out(step("stall", "n1>s1"))
        assert effect.count == 0
        assert "not shown on n1>s1: a probe took" in effect.note

    run(main())


def test_a_link_that_carried_nothing_before_shows_nothing() -> None:
    async def main() -> None:
        stage = Stage()
        stage.site.stuck = ["n1>s1"]
        effect = await stage.carried_out(step("stall", "n1>s1"))
        assert effect.count == 0
        assert "not shown on n1>s1" in effect.note

    run(main())


def test_where_messages_still_arrive_nothing_is_silent_even_if_the_probe_is_late() -> None:
    async def main() -> None:
        stage = Stage()
        stage.site.iptables_works = False
        stall = step("stall", "n1>s1")
        control = stage.site.nodes[N1].control

        async def behind_a_queue(to: NodeId, timeout_s: float) -> str | None:
            stage.site.talk(N1, S1, 3)
            return "nothing arrived within 300 ms"

        control.probe = behind_a_queue  # type: ignore[method-assign]  # Its probes stand behind much else.
        effect = await stage.carried_out(stall)
        assert effect.count == 0
        assert "3 messages arrived" in effect.note
        stage.site.iptables_works = True
        assert (await stage.carried_out(stall)).count >= 10, "what arrived before, and not after, shows it as well"

    run(main())


def test_what_two_steps_want_is_done_once_and_undone_with_the_last() -> None:
    async def main() -> None:
        stage = Stage()
        one, other, reset = step("cut", "client>n1"), step("cut", "n1>client"), step("reset", "client>n1", "n1>client")
        stage.site.client_ports = dict.fromkeys(stage.site.client_ports, 1)
        await stage.faults.apply(one)
        await stage.faults.apply(other)
        await stage.faults.apply(reset)
        await stage.faults.undo(reset)
        assert stage.site.proxies.disabled == ["client>n1"], "a reset has ended a cut"
        await stage.faults.undo(one)
        assert stage.site.proxies.disabled == ["client>n1"]
        await stage.faults.undo(other)
        assert stage.site.proxies.disabled == []
        assert stage.site.proxies.in_force() == {}

    run(main())


def test_equal_stalls_leave_one_rule_each_way_until_the_last_ends() -> None:
    async def main() -> None:
        stage = Stage()
        stall = step("stall", "n1>s1")
        await stage.faults.apply(stall)
        await stage.faults.apply(stall)
        assert stage.site.nodes[N1].rules == ["OUTPUT --dport 20002", "INPUT --sport 20002"]
        await stage.faults.undo(stall)
        assert stage.site.obstacle("n1", "s1") is not None
        await stage.faults.undo(stall)
        assert stage.site.nodes[N1].rules == []

    run(main())


def test_a_node_that_starts_anew_is_as_silent_as_before() -> None:
    async def main() -> None:
        stage = Stage()
        stall, crash = step("stall", "n1>s1", "n2>s1"), step("crash", "n1", disk="kept")
        await stage.faults.apply(stall)
        await stage.faults.apply(crash)
        assert stage.site.nodes[N1].rules == []
        await stage.faults.undo(crash)
        assert stage.site.obstacle("n1", "s1") is not None
        await stage.faults.undo(stall)
        assert stage.site.obstacle("n1", "s1") is None

    run(main())


def test_a_stall_that_begins_while_a_node_is_down_is_laid_where_it_can_be_and_there_at_its_start() -> None:
    async def main() -> None:
        stage = Stage()
        crash, stall = step("crash", "n1", disk="kept"), step("stall", "n1>s1", "n2>s1")
        await stage.faults.apply(crash)
        await stage.faults.apply(stall)
        assert stage.site.obstacle("n2", "s1") is not None
        await stage.faults.undo(crash)
        assert stage.site.obstacle("n1", "s1") is not None
        await stage.faults.undo(stall)
        assert stage.site.obstacle("n1", "s1") is None
        assert stage.site.obstacle("n2", "s1") is None

    run(main())


def test_what_cannot_be_brought_about_did_nothing_and_is_undone_in_peace() -> None:
    async def main() -> None:
        stage = Stage()
        stage.site.removed = [N1]
        for fault in (
            step("stall", "n1>s1"),
            step("crash", "n1"),
            step("disk-full", "n1"),
            step("clock", "n1", freeze=1),
        ):
            await stage.faults.apply(fault)
            assert await stage.faults.effect(fault) == Effect(0, "it could not be brought about: no container n1")
            stage.site.nodes[N1].control.life = 1
            await stage.faults.undo(fault)

    run(main())


def test_names_of_toxics_differ_where_two_ways_share_a_proxy() -> None:
    fault = step("delay", "client>n1", "n1>client", latency_ns=MS)
    site = FakeSite()

    async def main() -> None:
        await faults_on_machines(site, TOPOLOGY, lambda _: LinkCounters()).apply(fault)

    run(main())
    found: list[Toxic] = site.proxies.toxics["client>n1"]
    assert len({toxic.name for toxic in found}) == 2
