"""A machine that is too busy is told from one node that is late by itself. In virtual time: nobody really waits."""

import asyncio
from collections.abc import Callable
from typing import Final

import pytest

from harness.core.errors import DeployError
from harness.core.record import BUSY, Fault
from harness.runtimes.containers import lateness
from harness.runtimes.containers.lateness import Lateness
from harness.runtimes.simulation.loop import VirtualLoop

MS: Final = 1_000_000
IN_TIME_S, LATE_S = 0.09, 0.11  # On either side of what is late.


class Node:
    """Answers after a while, or says that it has gone."""

    def __init__(self, after_s: float = 0.0, *, is_gone: bool = False) -> None:
        self.after_s, self.is_gone = after_s, is_gone

    async def clocks(self) -> object:
        if self.is_gone:
            raise DeployError("gone")
        await asyncio.sleep(self.after_s)
        return object()


def watched(*nodes: Node, then: Callable[[], None] = lambda: None, for_s: float = 6.0) -> list[Fault]:
    """What is recorded of those nodes in that time, `then` doing something in the middle."""
    result: list[Fault] = []
    loop = VirtualLoop()

    async def main() -> None:
        watcher = Lateness(
            lambda: nodes, result.append, lambda: int(loop.time() * 1000) * MS, targets=("n1", "n2"), step=7
        )
        watching = asyncio.create_task(watcher.watch())
        await asyncio.sleep(for_s / 2)
        then()
        await asyncio.sleep(for_s / 2)
        watching.cancel()
        await asyncio.wait([watching])

    loop.run(main())
    return result


def test_half_of_the_nodes_that_are_late_make_a_window_that_excuses() -> None:
    begin, effect, end = watched(Node(), Node(LATE_S), Node(2 * LATE_S), Node())
    assert [each.phase for each in (begin, effect, end)] == ["begin", "effect", "end"]
    assert {(each.kind, each.step, each.targets) for each in (begin, effect, end)} == {(BUSY, 7, ("n1", "n2"))}
    assert begin.time_ns < 500 * MS
    assert end.time_ns == 6000 * MS
    assert (effect.effect or 0) > 10
    assert str(effect.note).endswith("by 110 ms"), "the faster half decides"


@pytest.mark.parametrize(
    "nodes",
    [
        (),
        (Node(),),
        (Node(IN_TIME_S), Node(IN_TIME_S)),
        (Node(LATE_S), Node(), Node()),  # It may be busy with a bug of its own.
        (Node(is_gone=True), Node(is_gone=True), Node()),
    ],
)
def test_nothing_is_excused_where_fewer_than_half_are_late_or_gone(nodes: tuple[Node, ...]) -> None:
    assert watched(*nodes) == []


def test_a_node_that_never_answers_is_late() -> None:
    begin, effect, _ = watched(Node(1000))
    assert begin.time_ns == 700 * MS
    assert str(effect.note).endswith("by 500 ms")


def test_a_window_ends_when_all_was_in_time_for_a_while() -> None:
    node = Node(LATE_S)
    result = watched(node, then=lambda: setattr(node, "after_s", IN_TIME_S))
    assert [each.phase for each in result] == ["begin", "effect", "end"]
    assert 4000 * MS < result[2].time_ns < 4500 * MS


def test_the_next_window_has_a_number_of_its_own() -> None:
    node = Node(LATE_S)

    class Healing(Node):
        count = 0

        async def clocks(self) -> object:
            self.count += 1
            node.after_s = LATE_S if self.count % 20 == 1 else 0.0
            return await node.clocks()

    result = watched(Healing(), for_s=12.0)
    begun = [each.step for each in result if each.phase == "begin"]
    assert len(begun) > 1
    assert begun == list(range(7, 7 + len(begun)))


def test_a_harness_that_wakes_up_late_says_so_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep

    async def overslept(duration_s: float) -> None:
        await sleep(duration_s + (LATE_S if duration_s == lateness.EVERY_S else 0))

    monkeypatch.setattr(asyncio, "sleep", overslept)
    _, effect, _ = watched(Node())
    assert str(effect.note).endswith("by 110 ms")
