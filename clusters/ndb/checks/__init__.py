"""The checks of what only NDB has: epochs, cuts between them, replicas, arbitration, causes of gaps, backlogs."""

from typing import Final

from checkers.engine.protocol import Check
from clusters.ndb.checks import authority, backlog, causes, cuts, epochs, replicas

CHECKS: Final[tuple[Check, ...]] = (
    *cuts.CHECKS,
    *epochs.CHECKS,
    *replicas.CHECKS,
    *authority.CHECKS,
    *causes.CHECKS,
    *backlog.CHECKS,
)
