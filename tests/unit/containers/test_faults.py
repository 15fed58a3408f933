"""What faults do to a deployment, undo, and are seen to do, on one that exists in memory only."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from harness.containers.faults import ContainerFaults
from harness.containers.links import Toxic
from harness.containers.probing import way
from harness.containers.struck_clocks import HEAL, command
from harness.containers.struck_links import toxics
from harness.core.errors import ScenarioError
from harness.core.machine import NodeId
from harness.host.control import LinkCounters
from nemesis.plan import Effect, Step
from nemesis.topology import Topology
from tests.unit.containers.fake_site import MS, N1, N2, S1, FakeSite, step

TOPOLOGY = Topology(
    nodes=(("n1", "data"), ("n2", "data"), ("s1", "subscriber")),
    links={
        ("data", "data"): "fifo",
        ("data", "subscriber"): "fifo",
        ("subscriber", "data"): "fifo",
        ("client", "data"): "fifo",
        ("data", "client"): "fifo",
    },
    points=("before-answer",),
)


class Stage:
    def __init__(self) -> None:
        self.site = FakeSite()
        self.clients = LinkCounters()
        self.faults = ContainerFaults(self.site, TOPOLOGY, lambda _: self.clients)

    async def carried_out(self, fault: Step, source: NodeId = N1, target: NodeId = S1, count: int = 10) -> Effect:
        """Its effect, if so many messages are sent on that link meanwhile."""
        await self.faults.apply(fault)
        self.site.talk(source, target, count)
        before = await self.faults.effect(fault)
        await self.faults.undo(fault)
        await self.faults.undo(fault)
        after = await self.faults.effect(fault)
        assert after.count == before.count, "the count went on after the end"
        return after


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


# Links.


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
    assert [tuple(toxic)[1:] for toxic in toxics("step-1", fault, way(target))] == found


def test_what_goes_to_clients_goes_down_the_proxy_that_they_dial() -> None:
    assert way("client>n1").proxy == way("n1>client").proxy == "client>n1"
    assert (way("client>n1").stream, way("n1>client").stream) == ("upstream", "downstream")
    assert way("n1>n2") == ("n1>n2", "n1", "n2", "n1>n2", "upstream")


@pytest.mark.parametrize(
    ("fault", "note"),
    [
        (step("cut", "n1>s1"), "1 connections closed or refused; probed n1>s1: did not arrive (refused)"),
        (step("reset", "n1>s1"), "1 connections reset or refused; probed n1>s1: did not arrive (refused)"),
        (step("stall", "n1>s1"), "10 messages held back, 14 packets dropped; probed n1>s1: did not arrive (nothing"),
        (step("delay", "n1>s1", latency_ns=20 * MS), "10 messages delayed; probed n1>s1: took 2"),
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


# Nodes.


def test_a_crash_loses_what_it_should_and_counts_what_was_up() -> None:
    async def main() -> None:
        stage = Stage()
        crash = step("crash", "n1", "n2", disk="torn")
        stage.site.nodes[N2].is_down = True
        await stage.faults.apply(crash)
        assert stage.site.nodes[N1].is_down
        assert await stage.faults.effect(crash) == Effect(1, "n1 went down, 0 unsynced writes lost")
        stage.site.nodes[N1].control.lost_records = 3
        await stage.faults.undo(crash)
        assert stage.site.files[0] == (N1, "/var/lib/seamark/crash-mode", b"torn")
        assert not stage.site.nodes[N1].is_down
        assert await stage.faults.effect(crash) == Effect(1, "n1 went down, 3 unsynced writes lost")

    run(main())


def test_a_crash_that_keeps_the_disk_writes_no_order() -> None:
    async def main() -> None:
        stage = Stage()
        await stage.carried_out(step("crash", "n1", disk="kept"))
        assert stage.site.files == []

    run(main())


@pytest.mark.parametrize("fault", ["crash", "pause"])
def test_the_first_node_at_the_failpoint_is_struck_and_the_others_are_let_go(fault: str) -> None:
    async def main() -> None:
        stage = Stage()
        lurking = step(fault, "n1", "n2", point="before-answer")
        await stage.faults.apply(lurking)
        one, other = stage.site.nodes[N1].control, stage.site.nodes[N2].control
        assert (await stage.faults.effect(lurking)).count == 0
        other.reach()
        await asyncio.sleep(0)
        assert not one.armed
        assert one.released == [1], "it may have got there while it was disarmed"
        other.deferred += 5
        effect = await stage.faults.effect(lurking)
        assert stage.site.nodes[N2].is_down == (fault == "crash")
        assert effect == (Effect(1, "n2 went down, 0 unsynced writes lost") if fault == "crash" else effect)
        assert not stage.site.paused, "it stands at the failpoint: that is enough"
        assert other.released == []
        await stage.faults.undo(lurking)
        assert other.released == [1]

    run(main())


def test_if_no_node_reaches_the_failpoint_the_first_is_struck_at_half_of_the_window() -> None:
    async def main() -> None:
        stage = Stage()
        lurking = step("crash", "n2", "n1", until_ns=40 * MS, point="before-answer")
        await stage.faults.apply(lurking)
        assert not stage.site.nodes[N2].is_down
        await asyncio.sleep(0.04)
        assert (await stage.faults.effect(lurking)).note == "n2 went down, 0 unsynced writes lost"
        await stage.faults.undo(lurking)
        assert not stage.site.nodes[N2].is_down

    run(main())


def test_a_failpoint_that_nobody_reached_is_forgotten() -> None:
    async def main() -> None:
        stage = Stage()
        lurking = step("pause", "n1", "n2", until_ns=10 * MS, point="before-answer")
        await stage.faults.apply(lurking)
        await stage.faults.undo(lurking)
        await asyncio.sleep(0.02)
        assert not stage.site.nodes[N1].control.armed
        assert not stage.site.paused
        assert await stage.faults.effect(lurking) == Effect(0, "no node stood still")

    run(main())


def test_a_pause_counts_what_others_sent_meanwhile() -> None:
    async def main() -> None:
        stage = Stage()
        stage.site.talk(N1, N2, 100)
        pause = step("pause", "n2")
        await stage.faults.apply(pause)
        assert stage.site.paused == [N2]
        stage.site.talk(N1, N2, 3)
        stage.site.talk(S1, N2, 4)
        stage.clients = LinkCounters(sent=5)
        assert await stage.faults.effect(pause) == Effect(12, "12 events had to wait")
        await stage.faults.undo(pause)
        stage.site.talk(N1, N2, 50)
        assert (await stage.faults.effect(pause)).count == 12
        assert stage.site.paused == []

    run(main())


def test_a_node_that_was_unpaused_by_hand_is_healed_in_peace() -> None:
    async def main() -> None:
        stage = Stage()
        pause = step("pause", "n2")
        await stage.faults.apply(pause)
        stage.site.paused.clear()
        await stage.faults.undo(pause)

    run(main())


def test_a_slow_consumer_is_told_so_and_counts_its_messages() -> None:
    async def main() -> None:
        stage = Stage()
        slow = step("consumer", "s1", delay_ns=20 * MS)
        control = stage.site.nodes[S1].control
        control.delayed = 100
        await stage.faults.apply(slow)
        assert control.slow_ns() == 20 * MS
        control.delayed += 9
        assert await stage.faults.effect(slow) == Effect(9, "9 messages took longer")
        await stage.faults.undo(slow)
        assert control.slow_ns() == 0
        control.delayed += 1
        assert (await stage.faults.effect(slow)).count == 9

    run(main())


def test_a_disk_is_filled_only_if_it_is_a_small_one() -> None:
    async def main() -> None:
        stage = Stage()
        full = step("disk-full", "n1")
        stage.site.disk_kb = 10**8
        await stage.faults.apply(full)
        assert not [line for _, line in stage.site.commands if "dd " in line]
        assert "it is no small volume" in (await stage.faults.effect(full)).note
        await stage.faults.undo(full)
        stage.site.disk_kb = 65536
        await stage.faults.apply(full)
        stage.site.nodes[N1].control.life += 2
        effect = await stage.faults.effect(full)
        assert effect.count == 2
        assert effect.note.startswith("2 writes found no room")
        await stage.faults.undo(full)
        assert stage.site.commands[-1][1] == "/var/lib/seamark/ballast"

    run(main())


def test_a_disk_on_which_there_is_still_room_is_not_full() -> None:
    async def main() -> None:
        stage = Stage()
        stage.site.has_room = True
        full = step("disk-full", "n1")
        await stage.faults.apply(full)
        stage.site.nodes[N1].control.life += 2
        effect = await stage.faults.effect(full)
        assert effect.count == 0
        assert "found room on n1" in effect.note

    run(main())


# Clocks.


def test_a_clock_that_is_wrong_is_counted_and_one_that_is_right_is_told() -> None:
    async def main() -> None:
        stage = Stage()
        skew = step("clock", "n1", "n2", step_ns=-5200 * MS)
        stage.site.nodes[N1].control.clock_error_ns = -5200 * MS
        await stage.faults.apply(skew)
        effect = await stage.faults.effect(skew)
        assert effect == Effect(2, "2 readings of a clock that was up to 5.2 s wrong; that of n2 was right")
        stage.site.nodes[N1].control.clock_error_ns = 0
        await stage.faults.undo(skew)
        assert (await stage.faults.effect(skew)).count == 2
        assert {line for _, line in stage.site.commands[-2:]} == {HEAL}

    run(main())


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (step("clock", "n1", step_ns=-5200 * MS), "echo '-5.200000' >"),
        (step("clock", "n1", step_ns=1), "echo '+0.000000' >"),
        (step("clock", "n1", freeze=1), "echo '1970-01-01 00:00:05.000000007' >"),
        (step("clock", "n1", freeze=1, step_ns=-1000 * MS), "echo '1970-01-01 00:00:04.000000007' >"),
        (step("clock", "n1", drift_ppm=-200_000, step_ns=MS), "awk -v step=0.001000 -v rate=-0.200000 '"),
        (step("clock", "n1", freeze=0, drift_ppm=5), "awk -v step=0.000000 -v rate=0.000005 '"),
    ],
)
def test_a_clock_is_made_wrong_by_this_line(fault: Step, words: str) -> None:
    assert command(fault, 5_000_000_007).startswith(words)


# The seam.


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (step("drop", "n1>n2", permille=1), "links between containers are connections: use --runtime sim"),
        (step("melt", "n1"), "fault 'melt' is unknown"),
        (step("crash", "n9"), "target 'n9' is no node"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(fault: Step, why: str) -> None:
    faults = Stage().faults
    assert why in str(faults.refusal(fault))
    with pytest.raises(ScenarioError, match=why.replace("'", ".")):
        run(faults.apply(fault))


def test_all_kinds_that_connections_and_nodes_can_have_are_accepted() -> None:
    faults = Stage().faults
    for fault in (step("reset", "n1>n2"), step("limit-data", "client>n1", bytes=5), step("disk-full", "s1")):
        assert faults.refusal(fault) is None


def test_a_step_that_was_never_applied_had_no_effect() -> None:
    async def main() -> None:
        stage = Stage()
        await stage.faults.undo(step("crash", "n1"))
        assert await stage.faults.effect(step("crash", "n1")) == Effect(0, "it was never applied")

    run(main())


def test_names_of_toxics_differ_where_two_ways_share_a_proxy() -> None:
    fault = step("delay", "client>n1", "n1>client", latency_ns=MS)
    site = FakeSite()

    async def main() -> None:
        await ContainerFaults(site, TOPOLOGY).apply(fault)

    run(main())
    found: list[Toxic] = site.proxies.toxics["client>n1"]
    assert len({toxic.name for toxic in found}) == 2
