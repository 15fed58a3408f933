"""Power: the chance that the candidate's runs would have shown a bug of a known kind, from the calibration."""

from harness.campaign.calibration.document import BugCell, Calibration
from harness.campaign.document import Sweep
from harness.signoff.document import PowerRow
from harness.signoff.exposure import judged_runs
from harness.signoff.statistics import chance_to_see


def power_rows(calibration: Calibration | None, candidate: Sweep) -> list[PowerRow]:
    """A row for each planted bug of the candidate's clusters, those most likely to be missed first."""
    clusters = {cell.cluster for cell in candidate.cells}
    bugs = calibration.bugs if calibration is not None else ()
    rows = [_row(each, judged_runs(candidate, each.cluster)) for each in bugs if each.cluster in clusters]
    return sorted(rows, key=lambda row: (-1.0 if row.least is None else row.least, row.cluster, row.bug))


def _row(bug: BugCell, runs: int) -> PowerRow:
    return PowerRow(
        cluster=bug.cluster,
        bug=bug.bug,
        description=bug.description,
        promise=bug.promise,
        anomaly=bug.anomaly,
        hits=bug.hits,
        drawn=bug.runs,
        runs=runs,
        chance=chance_to_see(bug.rate, runs) if bug.hits else None,
        least=chance_to_see(bug.interval.low, runs) if bug.hits else None,
    )
