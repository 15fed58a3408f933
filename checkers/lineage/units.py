"""Units in logs: together in each, and in one order over all.

Each log is judged by the positions of its rows, from all subscribers. The contract's `unit_layout` demands the first
(`together`), or both (`one-order`).
1. `split-unit`: a row of another unit, or of none, stands between rows of one unit in a log. A witness is a unit in a
   log with several rows there, or with a neighbour.
2. `unit-order`: a unit comes before another one in one log, and after it in another one, directly or through further
   units; a log comes before its successors. A witness is a unit in several logs.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

import numpy as np

from checkers.graph.paths import labels_of
from checkers.history.troubles import Trouble
from checkers.lineage.logs import Lineage
from checkers.words.anomalies import Anomaly, Cause

SPLIT: Final = "split-unit"
ORDER: Final = "unit-order"
ANOMALIES: Final = {
    SPLIT: Anomaly(meaning="Rows of a unit stand apart in a log, with others between them.", cause=Cause.TORN),
    ORDER: Anomaly(meaning="Two units come in opposite orders in two logs.", cause=Cause.ORDER),
}
Placed = list[tuple[int, int | None, int]]  # Rows of a log by position: position, unit, journal position.


def judge(found: Lineage, layout: str) -> tuple[dict[str, int], list[Trouble]]:
    """The witnesses and the violations under the contract's `unit_layout`."""
    logs = _logs(found) if layout != "mixed" else {}
    ordered = logs if layout == "one-order" else {}
    return (
        {
            SPLIT: sum(unit is not None for rows in logs.values() for unit in dict.fromkeys(row[1] for row in rows)),
            ORDER: _shared(ordered),
        },
        [*(each for name, rows in logs.items() for each in _split(name, rows)), *_disordered(found, ordered)],
    )


def _logs(found: Lineage) -> dict[str, Placed]:
    """The rows of each log, each once."""
    logs: dict[str, dict[tuple[int, int], tuple[int, int | None, int]]] = {}
    for row in found.events:
        if row["kind"] == "row" and row["span"] is not None and row["position"] is not None:
            place = (row["position"], row["key"])
            logs.setdefault(row["span"], {}).setdefault(place, (row["position"], row["unit"], row["seq"]))
    return {name: sorted(rows.values(), key=lambda row: (row[0], row[2])) for name, rows in logs.items()}


def _shared(logs: Mapping[str, Placed]) -> int:
    """The number of units in several logs."""
    counts: dict[int, int] = {}
    for rows in logs.values():
        for unit in dict.fromkeys(row[1] for row in rows if row[1] is not None):
            counts[unit] = counts.get(unit, 0) + 1
    return sum(count > 1 for count in counts.values())


def _split(name: str, rows: Placed) -> Iterator[Trouble]:
    """1."""
    last: dict[int, int] = {}  # The place of each unit's last row.
    for at, (_, unit, seq) in enumerate(rows):
        if unit is None:
            continue
        if unit in last and last[unit] < at - 1:
            between = rows[last[unit] + 1]
            other = "a row of no unit" if between[1] is None else "a row of another unit"
            sentence = f"In log {name} {other} stands between two rows of a unit, at position {between[0]}."
            yield Trouble(SPLIT, sentence, (name, between[0]), events=(rows[last[unit]][2], between[2], seq))
        last[unit] = at


def _disordered(found: Lineage, logs: Mapping[str, Placed]) -> Iterator[Trouble]:
    """2: units that follow each other both ways are on a cycle of the order that the logs show."""
    steps: dict[tuple[int, int], str] = {}
    for name, rows in logs.items():
        units = [row[1] for row in rows if row[1] is not None]
        for one, other in pairwise(units):
            if one != other:
                steps.setdefault((one, other), name)
        log = found.logs.get(name)
        for parent in log.parents if log is not None and units else ():
            before = [row[1] for row in logs.get(parent, ()) if row[1] is not None]
            if before and before[-1] != units[0]:
                steps.setdefault((before[-1], units[0]), name)
    numbers = {unit: at for at, unit in enumerate(dict.fromkeys(unit for step in steps for unit in step))}
    if not numbers:
        return
    source = np.array([numbers[one] for one, _ in steps], np.int64)
    target = np.array([numbers[other] for _, other in steps], np.int64)
    component = labels_of(source, target, len(numbers))
    reported: set[int] = set()
    for (one, other), name in steps.items():
        place = int(component[numbers[one]])
        if place == component[numbers[other]] and place not in reported:
            reported.add(place)
            size = int(np.count_nonzero(component == place))
            yield _cycle(name, size)


def _cycle(name: str, size: int) -> Trouble:
    how = "Two units have" if size == 2 else f"{size} units have"
    sentence = f"{how} no one order: log {name} has one of them before another, and other logs the other way round."
    return Trouble(ORDER, sentence, (name, size))
