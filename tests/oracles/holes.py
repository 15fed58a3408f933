"""Rows behind holes in transactions, found row after row."""

from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """A row of a change stream; None for what its line does not have. `number`: its place in its unit and table."""

    unit: int | None
    table: int | None
    span: int | None
    key: int
    number: int | None


def holes(rows: Sequence[Row]) -> list[int]:
    """The first row behind a hole of each unit and table, if the table has one partition, and that was not compacted.

    A partition was compacted, as far as rows show, until a key came again in it.
    """
    keys: dict[int, set[int]] = {}
    came_again: set[int] = set()
    is_judged: dict[tuple[int, int], bool] = {}
    highest: dict[tuple[int, int], int] = {}
    found: dict[tuple[int, int], int] = {}
    spans: dict[int, set[int]] = {}
    for at, row in enumerate(rows):
        if row.table is None or row.span is None:
            continue
        spans.setdefault(row.table, set()).add(row.span)
        if row.unit is not None and row.number is not None:
            unit = row.unit, row.table
            if unit not in is_judged:
                is_judged[unit] = row.span in came_again
            if is_judged[unit] and row.number > highest.get(unit, 0) + 1 and unit not in found:
                found[unit] = at
            highest[unit] = max(highest.get(unit, 0), row.number)
        if row.key in keys.setdefault(row.span, set()):
            came_again.add(row.span)
        keys[row.span].add(row.key)
    return [at for (_, table), at in found.items() if len(spans[table]) == 1]
