"""Logs of several subscribers, spoiled at random."""

from dataclasses import replace

from harness.core.columns import ROW, WATERMARK
from tests.worlds.streams.language import Event


def spoiled(seed: int, log: list[Event]) -> list[Event]:
    """The log with what these rules look for: other content at an offset, older owners, watermarks of the whole."""
    result: list[Event] = []
    for t, event in enumerate(log):
        rows = [e for e in log[:t] if e.kind == ROW]
        match (seed // 2 + t) % 5:
            case 0 if event.kind == ROW and rows:
                result.append(replace(event, key=rows[-1].key, value=rows[-1].value))
            case 1 if event.kind == ROW:
                result.append(replace(event, epoch=1))
            case 2 if event.kind == WATERMARK:
                result.append(replace(event, position=event.position + 2))
            case 3 if event.kind == WATERMARK and event.span != -1:
                result += [event, replace(event, span=-1, position=event.position + t % 2)]
            case _:
                result.append(event)
    return result
