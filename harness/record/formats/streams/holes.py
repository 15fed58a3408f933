"""Transactions that lack a row: a row's number among those of its table jumps, on the only partition of that table.

A topic that was compacted has honest holes. From the first key on that came twice it was not: the earlier row of the
key would be gone.
"""

from collections.abc import Iterator

import msgspec

from harness.core.record import Json
from harness.record.formats.streams.line import Content


class Holes:
    """What a first pass over the file collects about the numbers of rows in their transactions."""

    def __init__(self) -> None:
        self._keys: dict[str, set[bytes] | None] = {}  # By partition; None once a key came twice.
        self._is_judged: dict[tuple[Json, str], bool] = {}  # By transaction and table.
        self._highest: dict[tuple[Json, str], int] = {}
        self._spans: dict[str, set[str]] = {}
        self._found: dict[tuple[Json, str], str] = {}

    def take(self, content: Content, place: str) -> None:
        """Note a row whose transaction numbers the rows of each table, if its line names the partition."""
        table, span, number = content.collection, content.span, content.table_ordinal
        if table is None or span is None:
            return
        self._spans.setdefault(table, set()).add(span)
        if number is not None and content.unit is not None:
            unit = (content.unit, table)
            is_judged = self._is_judged.setdefault(unit, self._keys.get(span, ()) is None)
            highest = self._highest.get(unit, 0)
            if is_judged and number > highest + 1:
                self._found.setdefault(unit, place)
            self._highest[unit] = max(highest, number)
        self._note_key(span, content.key)

    def _note_key(self, span: str, key: Json) -> None:
        keys = self._keys.setdefault(span, set())
        if keys is None:
            return
        name = msgspec.json.encode(key)
        if name in keys:
            self._keys[span] = None
        else:
            keys.add(name)

    def found(self) -> Iterator[tuple[str, Json]]:
        """The place of the row behind each hole, and the transaction."""
        for (unit, table), place in self._found.items():
            if len(self._spans[table]) == 1:
                yield place, unit
