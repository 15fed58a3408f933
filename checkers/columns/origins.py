"""Where the events of a foreign stream come from: the lines of its file, and its own texts for positions and units."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from checkers.columns.files import read_columns

ORIGINS: Final = "origins.parquet"
# The line of an event, by its place in the history; the text of a position and of a unit, by number; and with number 0
# that the file has no times.
LINE, POSITION, UNIT, UNTIMED = range(4)


class Origins:
    """The origins of a history's events. A history that was recorded here has none."""

    def __init__(self, history: Path | None = None) -> None:
        self._path = None if history is None or not (history / ORIGINS).is_file() else history / ORIGINS

    def texts(self, kind: int) -> Callable[[int], str | None] | None:
        """The function of a number that gives its text; None if the history has no such texts."""
        return None if self._path is None else partial(self.text, kind)

    def text(self, kind: int, number: int) -> str | None:
        """The text of that line, position or unit; None if there is none. The file is read each time."""
        if self._path is None:
            return None
        found = read_columns(self._path, ("text", "kind"), id=[number]).to_pydict()
        return next((text for text, of in zip(found["text"], found["kind"], strict=True) if of == kind), None)
