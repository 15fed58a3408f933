"""Checks that only Drizzle needs: contents of the logs, their form, agreement of logs and rows, commits that wait."""

from typing import Final

from checkers.engine.protocol import Check
from clusters.drizzle.checks import agreement, contents, form, waiting

CHECKS: Final[tuple[Check, ...]] = (*contents.CHECKS, *form.CHECKS, *agreement.CHECKS, *waiting.CHECKS)
