"""Which node a client calls, and what it knows when a call fails."""

import asyncio

import pytest

from clusters.parts.client import Refused, Turns, Unclear, ended
from harness.core.machine import Message, NodeId
from harness.core.seams import CallFailed, Completion

A, B = NodeId("a"), NodeId("b")
NODES = (A, B)


class Scripted:
    """A connection on which these calls fail, in order; all others are answered."""

    def __init__(self, *failures: CallFailed) -> None:
        self._failures = [*failures]
        self.called: list[NodeId] = []

    async def call(self, node: NodeId, message: Message, timeout_ns: int) -> Message:
        self.called.append(node)
        if self._failures:
            raise self._failures.pop(0)
        return message

    async def close(self) -> None:
        pass


LOST, BROKEN = CallFailed("no way", is_definite=True), CallFailed("timed out", is_definite=False)


def called(connection: Scripted, process: int = 0, times: int = 1) -> list[tuple[NodeId, Message] | Completion]:
    turns = Turns(process, connection, NODES)
    return [asyncio.run(turns.call(Refused("asked"), 1)) for _ in range(times)]


@pytest.mark.parametrize(("process", "first"), [(0, A), (1, B), (2, A)])
def test_processes_begin_with_different_nodes_and_stay_there(process: int, first: NodeId) -> None:
    assert called(Scripted(), process, times=2) == [(first, Refused("asked"))] * 2


def test_a_call_that_certainly_failed_goes_to_the_next_node_and_the_client_stays_there() -> None:
    connection = Scripted(LOST)
    assert called(connection, times=2) == [(B, Refused("asked"))] * 2
    assert connection.called == [A, B, B]


def test_after_a_call_that_may_have_had_an_effect_no_other_node_is_asked() -> None:
    connection = Scripted(BROKEN)
    assert called(connection) == [Completion(outcome="info", error="a: timed out", node=A)]
    assert connection.called == [A]


def test_each_node_is_tried_once() -> None:
    connection = Scripted(LOST, LOST)
    assert called(connection) == [Completion(outcome="fail", error="b: no way")]
    assert connection.called == [A, B]


@pytest.mark.parametrize(
    ("answer", "outcome", "error"),
    [(Refused("no"), "fail", "a: no"), (Unclear("late"), "info", "a: late")],
)
def test_a_node_ends_an_operation_with_its_reason(answer: Message, outcome: str, error: str) -> None:
    completion = ended(A, answer)
    assert (completion.outcome, completion.error, completion.node) == (outcome, error, A)
