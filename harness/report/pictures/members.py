"""The names of a cycle's members, transactions and watermarks."""

import re
from typing import Final

from checkers.history.names import Forms

WATERMARK: Final = re.compile(r"(?:W )?(.+)[@/](\d+)")  # The subscriber that received the watermark, and the position.
PLAIN: Final = Forms()  # The names in a history for which nothing is declared.


def member(name: str, forms: Forms) -> str:
    """The name of a cycle's member for people: T12, or "s2 at epoch 10/10" for a watermark."""
    match = WATERMARK.fullmatch(name)
    return f"{match[1]} at {forms.position(int(match[2]))}" if match else name
