"""The checks of what only NDB has: epochs, cuts, replicas, arbitration, causes of gaps, backlogs, binlogs, backups."""

from typing import Final

from checkers.engine.protocol import Check
from clusters.ndb.checks import authority, backlog, binlogs, causes, cuts, epochs, merges, replicas, restores

CHECKS: Final[tuple[Check, ...]] = (
    *cuts.CHECKS,
    *epochs.CHECKS,
    *replicas.CHECKS,
    *authority.CHECKS,
    *causes.CHECKS,
    *backlog.CHECKS,
    *binlogs.CHECKS,
    *merges.CHECKS,
    *restores.CHECKS,
)
