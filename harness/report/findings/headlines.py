"""The title of a finding: its sentence, or a short form for a long cycle."""

import re
from typing import Final

from checkers.history.names import Forms
from harness.report.model import FindingRow
from harness.report.pictures.members import PLAIN, member

HEADLINE_MAX: Final = 260  # The most characters of a title: a longer sentence goes below it.
_INFERENCE: Final = re.compile(r"(?<=counts as later) \([^()]*\)")  # Why a version is later: the steps have it.
NAMED_MAX: Final = 4  # The most members of a cycle in a headline; of more, one fewer is named.


def headline(finding: FindingRow, forms: Forms = PLAIN, *, most: int = HEADLINE_MAX) -> str:
    """The sentence of the finding; for a cycle at most `most` characters: without its inferences, or its members."""
    if not finding.cycle or len(finding.sentence) <= most:
        return finding.sentence
    if len(brief := _INFERENCE.sub("", finding.sentence)) <= most:
        return brief
    names = list(dict.fromkeys(member(step.source, forms) for step in finding.cycle))
    rest = len(names) - (NAMED_MAX - 1)
    named = [*names[: NAMED_MAX - 1], f"{rest} more"] if len(names) > NAMED_MAX else names
    listed = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else f"{named[0]}"
    return f"{listed} form a cycle: so each comes before itself, a contradiction."
