"""Earlier occurrences of a run's findings: in the other runs of the same test in its store, by release.

A finding's fingerprint names its operations, so only the same run has it again. Therefore occurrences of the anomaly
together with the promise that it breaks are counted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from harness.core.errors import HistoryError
from harness.core.verdict import Verdict
from harness.record.documents import decoded, read_plain
from harness.report.model import REPORT_FILE, FindingRow, Report
from harness.scenario.sut import release

RUNS_MAX: Final = 400  # The most runs, the latest first; each costs the reading of a file.
_BYTES_MAX: Final = 4 << 20
_TESTED: Final = (Verdict.VALID.value, Verdict.INVALID.value, Verdict.UNKNOWN.value)


class _Seen(msgspec.Struct, frozen=True):
    """A finding of another run; other fields of the report are ignored."""

    anomaly: str
    promise: str | None = None


class _Past(msgspec.Struct, frozen=True):
    """Another run."""

    verdict: str
    started_utc: str | None = None
    versions: dict[str, str] = {}
    sut: dict[str, str] = {}
    bugs: tuple[str, ...] = ()
    is_given: bool = False
    findings: tuple[_Seen, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release of the tested system: its runs, those with the finding, and the first and last of these (UTC)."""

    name: str
    seen: int
    runs: int
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRecord:
    """The record of one finding in the store. `is_all`: no older run was left out."""

    releases: tuple[Release, ...]
    is_all: bool

    @property
    def seen(self) -> int:
        """The number of runs with the finding, including this one."""
        return sum(each.seen for each in self.releases)

    @property
    def runs(self) -> int:
        """The number of runs that were not vacuous."""
        return sum(each.runs for each in self.releases)


def track_records(report: Report) -> list[TrackRecord | None]:
    """The record in the store of each finding, over runs that their seeds drew. The report need not be stored yet.

    None if the run has no store, or was not drawn: a shrunk run shows its finding because it was chosen to.
    """
    if report.run is None or report.is_given or not report.findings:
        return [None] * len(report.findings)
    run = Path(report.run)
    others = sorted((each for each in _folders(run.parent) if each.name != run.name), key=lambda each: each.name)
    past = [*_read(others[-RUNS_MAX:]), _this(report)]
    is_all = len(others) <= RUNS_MAX
    return [TrackRecord(releases=tuple(_releases(past, each)), is_all=is_all) for each in report.findings]


def _folders(test: Path) -> list[Path]:
    try:
        return [each for each in test.iterdir() if (each / REPORT_FILE).is_file()]
    except OSError:  # The store is gone.
        return []


def _read(runs: Iterable[Path]) -> Iterator[_Past]:
    """The runs that were not vacuous; unreadable reports are skipped."""
    for run in runs:
        path = run / REPORT_FILE
        try:
            found = decoded(read_plain(path, most=_BYTES_MAX), _Past)
            if found.verdict in _TESTED and not found.is_given:
                yield found
        except (HistoryError, ValueError):
            continue


def _this(report: Report) -> _Past:
    findings = tuple(_Seen(each.anomaly, each.promise) for each in report.findings)
    return _Past(
        verdict=report.verdict,
        started_utc=report.started_utc,
        versions=report.versions,
        sut=report.sut,
        bugs=report.bugs,
        findings=findings,
    )


def _releases(past: Iterable[_Past], finding: FindingRow) -> Iterator[Release]:
    """The releases in order of their first run."""
    runs: dict[str, list[_Past]] = {}
    for each in past:
        runs.setdefault(_name(each), []).append(each)
    wanted = _Seen(finding.anomaly, finding.promise)
    for name, every in runs.items():
        times = [each.started_utc or "" for each in every if wanted in each.findings]
        first, last = (min(times), max(times)) if times else ("", "")
        yield Release(name=name, seen=len(times), runs=len(every), first=first, last=last)


def _name(past: _Past) -> str:
    """The tested release: as declared, or else all versions except Python's; and the planted bugs."""
    others = (f"{name} {version}" for name, version in sorted(past.versions.items()) if name != "python")
    versions = release(past.sut) or ", ".join(others)
    return " with ".join(filter(None, (versions, ", ".join(past.bugs)))) or "unknown"
