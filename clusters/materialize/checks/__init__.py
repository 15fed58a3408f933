"""Checks that only Materialize needs: epochs of leaders, uppers of shards, sources with their acknowledgements."""

from typing import Final

from checkers.engine.protocol import Check
from clusters.materialize.checks import leaders, shards, sources

CHECKS: Final[tuple[Check, ...]] = (*leaders.CHECKS, *shards.CHECKS, *sources.CHECKS)
