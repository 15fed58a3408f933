"""What faults of nodes do to a deployment, undo, and are seen to do, on one that exists in memory only."""

import asyncio

import pytest

from harness.core.errors import ScenarioError
from harness.core.machine import NodeId
from harness.runtimes.containers.faults.struck_clocks import HEAL, command
from harness.runtimes.host.control import LinkCounters
from nemesis.plan import Effect, Step
from tests.unit.runtimes.containers.fake_site import MS, N1, N2, S1, step
from tests.unit.runtimes.containers.stage import Stage, run


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


def test_a_crash_waits_for_a_node_that_is_coming_back() -> None:
    async def main() -> None:
        stage = Stage()
        first, second = step("crash", "n1"), step("crash", "n1", "n2", disk="kept")
        stage.site.start_s = 0.05
        await stage.faults.apply(first)
        undoing = asyncio.create_task(stage.faults.undo(first))
        await asyncio.sleep(0.01)
        assert stage.site.nodes[N1].is_down
        await stage.faults.apply(second)
        assert await stage.faults.effect(second) == Effect(2, "n1, n2 went down, 0 unsynced writes lost")
        assert stage.site.nodes[N1].is_down
        await undoing

    run(main())


def test_a_pause_waits_for_a_node_that_is_coming_back() -> None:
    async def main() -> None:
        stage = Stage()
        crash, pause = step("crash", "n1"), step("pause", "n1")
        stage.site.start_s = 0.05
        await stage.faults.apply(crash)
        undoing = asyncio.create_task(stage.faults.undo(crash))
        await asyncio.sleep(0.01)
        await stage.faults.apply(pause)
        assert not stage.site.nodes[N1].is_down
        assert stage.site.paused == [N1]
        await undoing

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


@pytest.mark.parametrize("ends", [False, True])
def test_a_node_that_ends_while_its_disk_is_filled_was_struck(ends: bool) -> None:
    async def main() -> None:
        stage = Stage()
        stage.site.fails_when_full, stage.site.ends_when_full = True, ends
        full = step("disk-full", "n1")
        await stage.faults.apply(full)
        stage.site.nodes[N1].control.life += 1
        effect = await stage.faults.effect(full)
        assert effect.count == ends
        assert ("n1 ended while its disk was filled" if ends else "it could not be brought about") in effect.note

    run(main())


def test_a_server_that_ended_on_a_full_disk_counts_as_down_until_it_is_started() -> None:
    async def main() -> None:
        stage = Stage()
        place, full = stage.site.nodes[N1], step("disk-full", "n1")
        place.control.is_foreign = True
        await stage.faults.apply(full)
        stage.site.removed.append(N1)  # It has ended, which nothing has noticed yet.
        seen: list[tuple[bool, bool]] = []

        async def start(node: NodeId) -> None:
            seen.append((place.is_down, place.may_end))

        stage.site.start = start  # type: ignore[method-assign]
        await stage.faults.undo(full)
        assert seen == [(True, False)]  # So the watch does not report it, and the start must succeed.

    run(main())


def test_a_server_that_must_be_started_anew_after_a_full_disk_is() -> None:
    async def main() -> None:
        stage = Stage()
        place, full, done = stage.site.nodes[N1], step("disk-full", "n1"), list[str]()
        place.control.is_foreign, place.control.serves_after_full_disk = True, False

        async def kill(node: NodeId) -> None:
            done.append(f"kill {node}")

        async def start(node: NodeId) -> None:
            done.append(f"start {node}")

        stage.site.kill, stage.site.start = kill, start  # type: ignore[method-assign]
        await stage.faults.apply(full)
        await stage.faults.undo(full)
        assert done == ["kill n1", "start n1"]

    run(main())


# Clocks.


def test_a_clock_that_is_wrong_is_counted_and_one_that_is_right_is_told() -> None:
    async def main() -> None:
        stage = Stage()
        skew = step("clock", "n1", "n2", step_ns=-5200 * MS)
        stage.site.nodes[N1].control.clock_error_ns = -5200 * MS
        await stage.faults.apply(skew)
        effect = await stage.faults.effect(skew)
        assert effect == Effect(2, "2 readings of a clock that was up to 5.2 s wrong; the clock of n2 was right")
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
        (step("drop", "n1>n2", permille=1), "a connection cannot drop messages; cut, stall or delay it"),
        (step("melt", "n1"), "fault 'melt' is unknown"),
        (step("crash", "n9"), "target 'n9' is not a node"),
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
