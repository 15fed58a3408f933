"""History records from the reports of nodes' control channels: each once, with its time of arrival here.

The harness's clock stamps them, so that operations and events of one history share a clock. An event's stamp is never
earlier than its receipt.
"""

from collections.abc import Callable
from typing import assert_never

from harness.core.machine import Delivery, NodeId
from harness.core.record import Evidence, Probe
from harness.core.shown import state, stream_event
from harness.runtimes.host.control import Delivered, Probed, Stated
from harness.runtimes.host.control import Evidence as Report


class Collector:
    """A collector of the evidence of all nodes."""

    def __init__(self, record: Callable[[Evidence], None], now_ns: Callable[[], int]) -> None:
        self._record, self._now_ns = record, now_ns
        self._taken: dict[NodeId, int] = {}  # The last sequence number, which grows over all lives of a node.
        self._delivered: dict[tuple[NodeId, int], int] = {}  # (subscriber, session) -> events so far.

    def take(self, node: NodeId, report: Report) -> None:
        """Record the new items of a report: a node that reconnects repeats what was not acknowledged."""
        if report.sequence <= self._taken.get(node, -1):
            return
        for item in report.items:
            match item:
                case Delivered(delivery=delivery):
                    self.deliver(node, delivery)
                case Probed(name=name, value=value):
                    self._record(Probe(self._now_ns(), node, name, value))
                case Stated(dump=dump):
                    self._record(state(self._now_ns(), node, dump))
                case _:
                    assert_never(item)
        self._taken[node] = report.sequence

    def deliver(self, node: NodeId, delivery: Delivery) -> None:
        """Record the next event that a subscriber received in its session."""
        number = self._delivered.get((node, delivery.session), 0)
        self._delivered[node, delivery.session] = number + 1
        self._record(stream_event(self._now_ns(), node, number, delivery))
