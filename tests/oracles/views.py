"""Views computed again for each claim, from all updates, in plain loops: the slow twin of checkers/state/views.py."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from harness.core.promises import View


class Change(NamedTuple):
    """An update: its collection, timestamp, key, row and diff."""

    collection: str
    ts: int
    key: Hashable
    row: Any
    diff: int


def rows_of(view: View, changes: Sequence[Change], ts: int) -> dict[Hashable, list[Counter[Any]]]:
    """For each key of the view the answers that are right at that timestamp. Keys without rows are left out."""
    sides: list[Counter[tuple[Hashable, Any]]] = [Counter() for _ in view.inputs]
    for place, name in enumerate(view.inputs):
        for change in changes:
            if change.collection == name and change.ts <= ts:
                key = change.key if view.key is None else change.row[view.key]
                sides[place][key, change.row] += change.diff
    found: dict[Hashable, list[Counter[Any]]] = {}
    for key in dict.fromkeys(key for side in sides for key, _ in side):
        held = [[row for (other, row), count in side.items() if other == key for _ in range(count)] for side in sides]
        answers = _answers(view, held)
        if answers != [Counter()]:
            found[key] = answers
    return found


def _answers(view: View, held: list[list[Any]]) -> list[Counter[Any]]:
    columns = [[row if view.value is None else row[view.value] for row in side] for side in held]
    if view.operator == "rows":
        return [Counter(held[0])]
    if view.operator == "sum":
        return [Counter([sum(columns[0])]) if held[0] else Counter()]
    if view.operator == "join":
        return [Counter((left, right) for left in columns[0] for right in columns[1])]
    if view.operator == "distinct":
        return [Counter(set(columns[0]))]
    best = max(columns[0], default=None)
    tied = [row for row, value in zip(held[0], columns[0], strict=True) if value == best]
    if view.order is not None and tied:
        last = max(row[view.order] for row in tied)
        tied = [row for row in tied if row[view.order] == last]
    return [Counter([row]) for row in dict.fromkeys(tied)] or [Counter()]


def is_right(view: View, changes: Sequence[Change], ts: int, shown: Sequence[tuple[Hashable, Any]]) -> bool:
    """True if these are all rows of the view at that timestamp."""
    due = rows_of(view, changes, ts)
    by_key: dict[Hashable, Counter[Any]] = {}
    for key, row in shown:
        by_key.setdefault(key, Counter())[row] += 1
    return set(due) == set(by_key) and all(rows in due[key] for key, rows in by_key.items())
