"""What is wrong with what a subscriber was shown, by comparison with what was committed: slow, and obvious."""

from collections import Counter

from harness.core.machine import Delivery, NodeId
from tests.unit.clusters.ndb.stream_world import StreamWorld


def anomalies(world: StreamWorld, subscriber: NodeId) -> Counter[str]:
    """How often what is wrong: missing, phantom, duplicate, order, skipped, stall."""
    found: Counter[str] = Counter()
    covered: int | None = None  # Up to which epoch everything has been shown, or declared missing.
    session = 0
    rows: list[Delivery] = []
    lost: set[int] = set()
    for event in world.delivered(subscriber):
        assert event.session >= session, "sessions are shown one after the other"
        session = event.session
        match event.kind:
            case "open":
                assert covered is None or event.position is None or event.position >= covered
                covered = event.position
            case "row":
                assert covered is not None, "a row outside of coverage"
                rows.append(event)
            case "watermark":
                assert event.position is not None
                assert covered is not None, "a watermark outside of coverage"
                skipped = [epoch for epoch in world.begun if covered < epoch < event.position]
                found["skipped"] += len(skipped)
                assert event.position > covered or event.position in lost
                if event.position not in lost:
                    found += _compared(world, event.position, rows)
                else:
                    assert not rows
                covered, rows = event.position, []
            case "gap":
                assert not rows, "an epoch was torn by a gap"
                if event.value == "inconsistent" and event.position is not None:
                    lost.add(event.position)
                elif event.value != "inconsistent":
                    covered = None
            case "close":
                covered = None
    if covered is None or covered < world.begun[-2]:
        found["stall"] += 1
    return found


def _compared(world: StreamWorld, epoch: int, rows: list[Delivery]) -> Counter[str]:
    found: Counter[str] = Counter()
    expected = world.rows.get(epoch, [])
    shown = [(row.unit, row.key, row.value) for row in rows]
    assert all(row.position == epoch for row in rows)
    found["missing"] += sum(row not in shown for row in expected)
    found["phantom"] += sum(row not in expected for row in shown)
    found["duplicate"] += len(shown) - len(set(shown))
    for key in {key for _, key, _ in expected}:
        source = [row for row in expected if row[1] == key]
        seen = [row for row in dict.fromkeys(shown) if row[1] == key and row in source]
        found["order"] += seen != [row for row in source if row in seen]
    return +found
