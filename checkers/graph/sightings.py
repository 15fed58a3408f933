"""Reports of kernels besides edges: anomalies seen, and counts of the chances to see them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harness.core.columns import Int64s

NONE = -1  # The missing field of an example.


@dataclass(frozen=True, slots=True, order=True)
class Example:
    """One instance of an anomaly: operations by index, key and element by id. Examples are ordered by `op` first.

    `versions` are the values of a register that precede each other in a cycle.
    """

    op: int
    key: int = NONE
    element: int = NONE
    other: int = NONE
    versions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Sighting:
    """An anomaly that was seen `count` times, and the least example, which does not depend on the chunking."""

    anomaly: str
    count: int
    example: Example


@dataclass(frozen=True, slots=True)
class Report:
    """All sightings of a kernel. `tally` counts by name: witnesses under the anomaly's name, sizes under their own."""

    sightings: tuple[Sighting, ...]
    tally: Counter[str]


def union(reports: Iterable[Report]) -> Report:
    """One report with the sightings and counts of all."""
    by_name: dict[str, Sighting] = {}
    tally: Counter[str] = Counter()
    for report in reports:
        tally.update(report.tally)
        for new in report.sightings:
            old = by_name.get(new.anomaly, Sighting(new.anomaly, 0, new.example))
            by_name[new.anomaly] = Sighting(new.anomaly, old.count + new.count, min(old.example, new.example))
    return Report(tuple(by_name[name] for name in sorted(by_name)), tally)


def seen(
    anomaly: str, count: int, *, op: Int64s, key: Int64s, element: Int64s | None = None, other: Int64s | None = None
) -> tuple[Sighting, ...]:
    """The sighting whose example is the least of the given rows; empty without rows."""
    if op.size == 0:
        return ()
    missing = np.full(op.size, NONE, np.int64)
    element, other = missing if element is None else element, missing if other is None else other
    least = np.lexsort((other, element, key, op))[0]
    example = Example(int(op[least]), int(key[least]), int(element[least]), int(other[least]))
    return (Sighting(anomaly, count, example),)
