"""The checks of what only NDB has: epochs, the cuts between them, replicas, arbitration, and causes of gaps."""

from typing import Final

from checkers.engine.protocol import Check
from clusters.ndb.checks import authority, causes, cuts, epochs, replicas

CHECKS: Final[tuple[Check, ...]] = (
    *cuts.CHECKS,
    *epochs.CHECKS,
    *replicas.CHECKS,
    *authority.CHECKS,
    *causes.CHECKS,
)
