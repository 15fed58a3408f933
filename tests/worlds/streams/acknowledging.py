"""Streams whose subscribers acknowledge what they received."""

from dataclasses import replace

from harness.core.columns import CHECKPOINT, NEVER
from harness.core.draw import Draw
from tests.worlds.streams.language import Event


def acknowledging(seed: int, log: list[Event]) -> list[Event]:
    """The log with acknowledgements behind some of its events, of what came and of other positions."""
    draw = Draw(seed).stream("acknowledged")
    result: list[Event] = []
    for event in log:
        result.append(event)
        if event.position != NEVER and draw.chance(1, 3):
            result.append(replace(event, kind=CHECKPOINT, key=NEVER, position=event.position + draw.below(3)))
    return result
