"""The changes of the stream's records, one after the other: checks judge the processor by them."""

from typing import Final

from clusters.parts.cas_store import Write
from clusters.pravega.controller.marks import mark_of
from clusters.pravega.records import (
    COMMITTING,
    HISTORY,
    MARK,
    STATE,
    TRANSITION,
    TRUNCATION,
    committing_of,
    history_of,
    state_of,
    truncation_of,
)
from harness.core.machine import Shown

CHANGED: Final = frozenset((STATE, HISTORY, COMMITTING, TRANSITION, TRUNCATION, MARK))


def shown(change: Write) -> Shown:
    """A change as a list: what changed, and its value."""
    value = change.value
    match change.name:
        case str(name) if name == STATE:
            return ["state", state_of(value or b"").name]
        case str(name) if name == HISTORY:
            return ["epoch", history_of(value or b"").current]
        case str(name) if name == COMMITTING:
            if not value:
                return ["committed"]
            committing = committing_of(value)
            return ["committing", committing.epoch, [*committing.txns]]
        case str(name) if name == TRANSITION:
            return ["scale-planned" if value else "scale-done"]
        case str(name) if name == TRUNCATION:
            cut = truncation_of(value or b"").done
            offsets = [[each.number, each.epoch, offset] for each, offset in cut.offsets] if cut else []
            return ["truncated", cut.epoch if cut else -1, offsets]
        case _:
            mark = mark_of(value or b"")
            cut_at = [[each.number, each.epoch, offset] for each, offset in mark.cut]
            return ["mark", mark.time_ns, cut_at, [*mark.writers]]
