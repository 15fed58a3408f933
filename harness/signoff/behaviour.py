"""Behaviour under faults, cell by cell, and the promises with their evidence: baseline and candidate."""

from collections.abc import Iterator
from typing import Final

from harness.campaign.document import Sweep, SweepCell
from harness.signoff.document import BehaviourRow, PromiseRow

WORSE: Final = 1.5  # A measure is worse at this many times the baseline's, or at the inverse if more is better.
_LEAST_S: Final = 0.05  # Smaller changes, in seconds, do not count.
_LEAST_SHARE: Final = 0.005
MEASURES: Final = (
    ("recovery_s_median", "recovery, median", "s"),
    ("recovery_s_worst", "recovery, worst", "s"),
    ("watermark_stall_s_median", "watermark stall, median", "s"),
    ("watermark_stall_s_worst", "watermark stall, worst", "s"),
    ("unknown_share", "operations of unknown outcome", "%"),
    ("failed_share", "operations that failed", "%"),
    ("ok_per_s", "operations ok", "/s"),
)


def behaviour_rows(baseline: Sweep, candidate: Sweep) -> list[BehaviourRow]:
    """The measures of the cells that both sweeps have, in the order of the candidate's."""
    before = {_title(cell): cell for cell in baseline.cells}
    pairs = [(before[_title(cell)], cell) for cell in candidate.cells if _title(cell) in before]
    return [row for first, second in pairs for row in _measured(first, second)]


def promise_rows(baseline: Sweep, candidate: Sweep) -> list[PromiseRow]:
    """Every promise of either sweep, those that are broken first."""
    before = {(each.cluster, each.id): each for each in baseline.promises}
    after = {(each.cluster, each.id): each for each in candidate.promises}
    rows = []
    for place in dict.fromkeys((*after, *before)):
        first, second = before.get(place), after.get(place)
        shown = second or before[place]
        rows.append(
            PromiseRow(
                cluster=shown.cluster,
                id=shown.id,
                text=shown.text,
                source=shown.source,
                baseline=first.verdict if first else None,
                candidate=second.verdict if second else None,
                baseline_witnesses=first.witnesses if first else 0,
                witnesses=second.witnesses if second else 0,
                runs=sum(second.counts.values()) if second else 0,
            )
        )
    order = ("violated", "unknown", "not-exercised", "holds")
    return sorted(rows, key=lambda row: order.index(row.candidate) if row.candidate in order else -1)


def _measured(baseline: SweepCell, candidate: SweepCell) -> Iterator[BehaviourRow]:
    for name, what, unit in MEASURES:
        before, after = (getattr(cell.numbers, name) for cell in (baseline, candidate))
        if before is not None or after is not None:
            yield BehaviourRow(
                cell=_title(candidate),
                what=what,
                unit=unit,
                baseline=before,
                candidate=after,
                is_worse=before is not None and after is not None and _is_worse(unit, before, after),
            )


def _is_worse(unit: str, before: float, after: float) -> bool:
    if unit == "/s":
        return after * WORSE < before
    return after > before * WORSE and after - before > (_LEAST_S if unit == "s" else _LEAST_SHARE)


def _title(cell: SweepCell) -> str:
    return f"{cell.cluster} {cell.workload}, faults {cell.faults}, {cell.runtime}"
