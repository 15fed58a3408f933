"""An answer to an earlier life of a coordinator or a capture changes nothing."""

import pytest

from clusters.ticdc.oracle.messages import Timestamp, Tso
from clusters.ticdc.stream.capture import Capture
from clusters.ticdc.transactions.coordinator import Coordinator
from clusters.ticdc.transactions.messages import Transact
from harness.core.machine import Call, Machine, Message, NodeId, Received, Settings
from harness.core.record import MicroOp
from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster
from tests.unit.clusters.ndb.test_earlier_lives import EmptyDisk, Remembered

ORACLE, CLIENT = NodeId("pd"), NodeId("client")
SETTINGS = Settings(parameters={each.name: each.low for each in load_cluster(installed("ticdc")).parameters})


class Life:
    """One life of a coordinator, which began at that time, with a transaction that waits for its timestamp."""

    def __init__(self, now_ns: int) -> None:
        self.context = Remembered(NodeId("t1"), now_ns)
        self.machine: Machine = Coordinator()
        self.machine.recover(EmptyDisk(), SETTINGS, self.context)
        self.receive(CLIENT, Call(1, Transact((MicroOp("append", 1, 1),))))

    def receive(self, sender: NodeId, message: Message) -> None:
        self.machine.handle(Received(sender, message), self.context)

    @property
    def asked(self) -> list[int]:
        """The numbers of its requests for timestamps."""
        return [message.number for _, message in self.context.sent if isinstance(message, Tso)]


def test_the_timestamp_for_an_earlier_life_answers_no_request() -> None:
    earlier, later = Life(1_000_000_000), Life(2_000_000_000)
    assert earlier.asked
    assert not set(earlier.asked) & set(later.asked)
    sent = list(later.context.sent)
    for number in earlier.asked:
        later.receive(ORACLE, Timestamp(number, 5, is_new=True))
    assert later.context.sent == sent
    later.receive(ORACLE, Timestamp(later.asked[0], 7, is_new=True))
    assert later.context.sent != sent


@pytest.mark.parametrize("machine", [Coordinator, Capture])
def test_no_two_lives_number_their_requests_alike(machine: type[Coordinator] | type[Capture]) -> None:
    lives = []
    for now_ns in (1_000_000_000, 2_000_000_000):
        node = machine()
        node.recover(EmptyDisk(), SETTINGS, Remembered(NodeId("t1"), now_ns))
        lives.append(node._tasks._procedures._last_number)
    assert lives[1] - lives[0] >= 1_000_000_000
