"""Power: the chance that the candidate's runs would have shown a bug of a known kind, from the calibration."""

from pathlib import Path

import msgspec

from harness.campaign.document import Sweep
from harness.core.errors import HistoryError, ScenarioError
from harness.record.store import read_plain
from harness.signoff.document import PowerRow
from harness.signoff.exposure import judged_runs
from harness.signoff.statistics import chance_to_see, rate


class Calibrated(msgspec.Struct, frozen=True, kw_only=True):
    """A planted bug in the calibration: `hits` of `runs` drawn runs showed it; other fields are ignored."""

    cluster: str
    bug: str
    hits: int
    runs: int
    promise: str | None = None


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """What a sign-off needs of a calibration.json."""

    bugs: tuple[Calibrated, ...]


def read_calibration(path: Path) -> Calibration:
    """The calibration in a file. Raises ScenarioError if there is none, HistoryError if it is damaged."""
    if not path.is_file():
        raise ScenarioError(f"{path}: there is no such file; give the JSON that seamark calibrate has written")
    try:
        found = msgspec.json.decode(read_plain(path), type=Calibration)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise HistoryError(f"{path}: not a calibration ({error})") from None
    for each in found.bugs:
        if not 0 <= each.hits <= each.runs:
            raise HistoryError(f"{path}: {each.cluster}/{each.bug} has {each.hits} hits in {each.runs} runs")
    return found


def power_rows(calibration: Calibration | None, candidate: Sweep) -> list[PowerRow]:
    """A row for each planted bug of the candidate's clusters, the most likely to be missed first."""
    clusters = {cell.cluster for cell in candidate.cells}
    bugs = calibration.bugs if calibration is not None else ()
    rows = [_row(each, judged_runs(candidate, each.cluster)) for each in bugs if each.cluster in clusters]
    return sorted(rows, key=lambda row: (row.least if row.least is not None else -1.0, row.cluster, row.bug))


def _row(bug: Calibrated, runs: int) -> PowerRow:
    known = rate(bug.hits, bug.runs)
    is_seen = known.seen > 0
    return PowerRow(
        cluster=bug.cluster,
        bug=bug.bug,
        promise=bug.promise,
        rate=known,
        runs=runs,
        chance=chance_to_see(known.value, runs) if is_seen else None,
        least=chance_to_see(known.low, runs) if is_seen else None,
    )

