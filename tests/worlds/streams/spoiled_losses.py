"""Logs that lost a write as a whole, and that often have nothing but later rows to show it."""

from harness.core.columns import BACKFILL, ROW, WATERMARK
from harness.core.draw import Draw
from tests.worlds.streams.language import Event


def lossy(seed: int, log: list[Event]) -> list[Event]:
    """The log without the rows of one value of a key, for everybody or for one subscriber; often without watermarks."""
    draw = Draw(seed).stream("losses")
    rows = [event for event in log if event.kind == ROW]
    if not rows:
        return log
    lost = draw.choice(rows)
    is_for_all = draw.chance(1, 2)
    kept = [
        event
        for event in log
        if event.kind not in (ROW, BACKFILL)
        or (event.key, event.value) != (lost.key, lost.value)
        or not (is_for_all or event.subscriber == lost.subscriber)
    ]
    return kept if draw.chance(1, 3) else [event for event in kept if event.kind != WATERMARK]
