"""Sessions and their snapshots, spoiled at random."""

from dataclasses import replace

from harness.core.columns import BACKFILL, ROW
from tests.worlds.streams.language import Event


def spoiled(seed: int, log: list[Event]) -> list[Event]:
    """The log with snapshots that lack rows, show others, or come late."""
    result: list[Event] = []
    late: list[Event] = []
    for t, event in enumerate(log):
        same = [e for e in log[:t] if e.kind in (BACKFILL, ROW) and e.key == event.key]
        match (seed // 2 + t) % 4 if event.kind == BACKFILL else -1:
            case 0:
                pass
            case 1:
                late.append(event)
            case 2 if same:
                result.append(replace(event, value=same[0].value))
            case _:
                result.append(event)
        if event.kind == ROW and t % 3 == 0 and late:
            result.append(late.pop())
    return result
