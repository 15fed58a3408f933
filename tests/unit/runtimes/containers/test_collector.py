"""What nodes tell becomes records, each once."""

from harness.core.machine import Delivery, Dump, NodeId
from harness.core.record import Evidence, Probe, State, StreamEvent
from harness.runtimes.containers.collector import Collector
from harness.runtimes.host.control import Delivered, Probed, Stated
from harness.runtimes.host.control import Evidence as Told

S1, S2 = NodeId("s1"), NodeId("s2")


def told(sequence: int, *items: Delivered | Probed | Stated) -> Told:
    return Told(sequence, items, 0)


def watermark(session: int, position: int) -> Delivered:
    return Delivered(Delivery(session=session, kind="watermark", position=position))


def test_events_are_numbered_by_session_and_stamped_here() -> None:
    records: list[Evidence] = []
    collector = Collector(records.append, lambda: 500)
    collector.take(S1, told(1, watermark(1, 10), watermark(1, 20)))
    collector.take(S1, told(2, watermark(2, 20)))
    collector.take(S2, told(1, watermark(1, 10)))
    events = [record for record in records if isinstance(record, StreamEvent)]
    assert [(each.subscriber, each.session, each.number, each.position, each.time_ns) for each in events] == [
        ("s1", 1, 0, 10, 500),
        ("s1", 1, 1, 20, 500),
        ("s1", 2, 0, 20, 500),
        ("s2", 1, 0, 10, 500),
    ]


def test_what_a_node_tells_again_is_recorded_once() -> None:
    records: list[Evidence] = []
    collector = Collector(records.append, lambda: 0)
    first = told(1, watermark(1, 10))
    collector.take(S1, first)
    collector.take(S1, first)
    collector.take(S1, told(2, watermark(1, 20)))
    assert [record.position for record in records if isinstance(record, StreamEvent)] == [10, 20]


def test_metrics_and_states_are_records_of_their_node() -> None:
    records: list[Evidence] = []
    collector = Collector(records.append, lambda: 7)
    collector.take(S1, told(1, Probed("buffered", 3), Stated(Dump(object="row", key="x", value=[1], position=4))))
    assert records == [Probe(7, "s1", "buffered", 3), State(7, "s1", "row", "x", [1], 4)]
