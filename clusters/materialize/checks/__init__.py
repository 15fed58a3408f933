"""Checks that only Materialize needs: leaders, shards, sources, created tables, timelines, needless waits."""

from typing import Final

from checkers.engine.protocol import Check
from clusters.materialize.checks import leaders, shards, sources, tables, timelines, waiting

CHECKS: Final[tuple[Check, ...]] = (
    *leaders.CHECKS,
    *shards.CHECKS,
    *sources.CHECKS,
    *tables.CHECKS,
    *timelines.CHECKS,
    *waiting.CHECKS,
)
