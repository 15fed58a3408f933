"""The checks of what only Pravega has: epochs, the order of events over them, and a group of readers."""

from typing import Final

from checkers.engine.protocol import Check
from clusters.pravega.checks import checkpoints, ends, epochs, order, processing, readers

CHECKS: Final[tuple[Check, ...]] = (
    *epochs.CHECKS,
    *order.CHECKS,
    *processing.CHECKS,
    *ends.CHECKS,
    *readers.CHECKS,
    *checkpoints.CHECKS,
)
