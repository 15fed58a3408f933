"""Whole clusters over real connections: the tutorial from a transaction to its subscribers."""

from functools import partial
from pathlib import Path

from clusters.tutorial.messages import Done, Refused, Transact
from harness.core.machine import Message, Settings
from harness.core.record import MicroOp
from harness.host.control import Delivered
from tests.unit.host.nodes import Client, Control, Nodes, run, until

NODES = ("c1", "n1", "n2", "s1", "s2")


def test_a_transaction_of_the_tutorial_reaches_both_subscribers(tmp_path: Path) -> None:
    async def scenario(nodes: Nodes) -> None:
        nodes.settings = Settings(parameters={"suspect_ms": 500, "watermark_ms": 20})
        _, _, _, *subscribers = await nodes.ready(*NODES)
        clients = [await nodes.client("n1"), await nodes.client("n2")]
        for value in range(5):
            await committed(clients, Transact((MicroOp("append", "x", value), MicroOp("append", "y", value))))
        read = await committed(clients, Transact((MicroOp("r", "x"),)))
        assert read.mops[0].value == list(range(5))
        for subscriber in subscribers:
            await until(partial(has_rows, subscriber, 10))
            assert rows(subscriber) == [(key, value) for value in range(5) for key in ("x", "y")]

    run(tmp_path, scenario, NODES, "clusters.tutorial:Cluster")


async def committed(clients: list[Client], transaction: Message) -> Done:
    """The answer of the node that leads, as soon as one does."""
    while True:
        for client in clients:
            answer = await client.call(transaction)
            if isinstance(answer, Done):
                return answer
            assert isinstance(answer, Refused)


def has_rows(subscriber: Control, count: int) -> bool:
    return len(rows(subscriber)) == count


def rows(subscriber: Control) -> list[tuple[object, object]]:
    """The rows that a subscriber has seen."""
    deliveries = [item.delivery for item in subscriber.items() if isinstance(item, Delivered)]
    return [(delivery.key, delivery.value) for delivery in deliveries if delivery.kind == "row"]
