"""Procedures: answers in the order of their requests, whatever is lost, late, refused or sent again."""

from collections.abc import Generator
from typing import cast

from clusters.parts.host import Host
from clusters.parts.procedures import PATIENCE_NS, SILENCE_NS, SWEEP_NS, Ask, Open, Procedures, Sleep
from harness.core.machine import NodeId

NODES = (NodeId("a"), NodeId("b"))
Procedure = Generator[Ask[str] | Sleep, tuple[str | None, ...], None]


class Node:
    """A node with one procedure, and its router: a request goes to the first of NODES until that fails it."""

    def __init__(self) -> None:
        self.context, self.time_ns, self.timers = self, 0, 0
        self.sent: list[tuple[int, str, NodeId]] = []
        self.got: list[tuple[str | None, ...]] = []
        self.target = NODES[0]
        self.procedures = Procedures[str, str](cast("Host", self), self)

    def now_ns(self) -> int:
        return self.time_ns

    def set_timer(self, name: str, after_ns: int) -> None:
        assert (name, after_ns) == ("tasks", SWEEP_NS)
        self.timers += 1

    def send(self, number: int, request: str) -> NodeId:
        self.sent.append((number, request, self.target))
        return self.target

    def is_final(self, number: int, opened: Open[str, str], answer: str) -> bool:
        opened.is_held = answer == "wait"
        return answer != "wait"

    def missed(self, opened: Open[str, str]) -> None:
        self.target = NODES[1]

    def asking(self, *requests: str, patience_ns: int = PATIENCE_NS) -> Procedure:
        """A procedure that asks once, and notes the answers."""
        self.got.append((yield Ask(requests, patience_ns)))

    def pass_time(self, duration_ns: int) -> None:
        """Let time pass, with a tick whenever the timer is due."""
        end_ns = self.time_ns + duration_ns
        while self.timers and self.time_ns + SWEEP_NS <= end_ns:
            self.time_ns += SWEEP_NS
            self.timers -= 1
            self.procedures.tick()
        self.time_ns = end_ns


def test_answers_come_in_the_order_of_the_requests() -> None:
    node = Node()
    node.procedures.run(node.asking("x", "y"))
    (first, *_), (second, *_) = node.sent
    node.procedures.answered(second, "Y")
    assert node.got == []
    node.procedures.answered(first, "X")
    node.procedures.answered(first, "again")  # No procedure waits for it any more.
    assert node.got == [("X", "Y")]


def test_without_an_answer_a_request_goes_elsewhere_and_then_is_given_up() -> None:
    node = Node()
    node.procedures.run(node.asking("x", patience_ns=2 * SILENCE_NS + SWEEP_NS))
    node.pass_time(SILENCE_NS + SWEEP_NS)
    assert [target for *_, target in node.sent] == [*NODES]
    node.pass_time(2 * SILENCE_NS)
    assert node.got == [(None,)]
    assert node.timers <= 1
    node.pass_time(2 * SWEEP_NS)
    assert node.timers == 0, "nothing waits, and the timer runs on"


def test_a_broken_connection_sends_a_request_again_at_the_next_tick() -> None:
    node = Node()
    node.procedures.run(node.asking("x"))
    node.procedures.closed(NODES[1])
    assert node.target == NODES[0]
    node.procedures.closed(NODES[0])
    node.pass_time(SWEEP_NS)
    assert node.sent == [(1, "x", NODES[0]), (1, "x", NODES[1])]


def test_a_node_that_answers_but_is_not_ready_is_not_suspected() -> None:
    node = Node()
    node.procedures.run(node.asking("x"))
    node.procedures.answered(1, "wait")
    node.pass_time(SILENCE_NS + SWEEP_NS)
    assert node.sent == [(1, "x", NODES[0])] * 2
    node.procedures.answered(1, "done")
    assert node.got == [("done",)]


def test_a_procedure_sleeps_for_its_time_and_no_less() -> None:
    node, woken = Node(), list[int]()

    def sleeping() -> Procedure:
        yield Sleep(3 * SWEEP_NS)
        woken.append(node.time_ns)

    node.procedures.run(sleeping())
    node.pass_time(10 * SWEEP_NS)
    assert woken == [3 * SWEEP_NS]
