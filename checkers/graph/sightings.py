"""Reports of kernels besides edges: anomalies seen, and how often each could have been seen."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import Struct

from harness.core.columns import Int64s

NONE = -1  # A field that an example does not have.
LISTED: Final = 1_000  # The number of instances that are kept of an anomaly of which each one is to be named.


class Example(Struct, frozen=True, order=True):
    """One instance of an anomaly: operations by index, key and element by id. Examples sort by `op` first.

    `versions` are values of a register, each of which precedes the next and the last one the first.
    """

    op: int
    key: int = NONE
    element: int = NONE
    other: int = NONE
    versions: tuple[int, ...] = ()


class Sighting(Struct, frozen=True):
    """An anomaly that was seen `count` times, and its least example, which does not depend on the chunking.

    `listed` are the LISTED least instances, in order, if each one is to be named.
    """

    anomaly: str
    count: int
    example: Example
    listed: tuple[Example, ...] = ()


class Report(Struct, frozen=True):
    """All sightings of a kernel.

    `tally` has witness counts under the anomaly's name, and sizes under names of their own.
    """

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
            listed = tuple(sorted(old.listed + new.listed)[:LISTED])
            by_name[new.anomaly] = Sighting(new.anomaly, old.count + new.count, min(old.example, new.example), listed)
    return Report(tuple(by_name[name] for name in sorted(by_name)), tally)


def seen(
    anomaly: str,
    count: int,
    *,
    op: Int64s,
    key: Int64s,
    element: Int64s | None = None,
    other: Int64s | None = None,
    is_listed: bool = False,
) -> tuple[Sighting, ...]:
    """The sighting whose example is the least of the given rows; empty if there are no rows."""
    if op.size == 0:
        return ()
    missing = np.full(op.size, NONE, np.int64)
    element, other = missing if element is None else element, missing if other is None else other
    least = np.lexsort((other, element, key, op))[: LISTED if is_listed else 1]
    rows = (column[least].tolist() for column in (op, key, element, other))
    examples = tuple(Example(*row) for row in zip(*rows, strict=True))
    return (Sighting(anomaly, count, examples[0], examples if is_listed else ()),)
