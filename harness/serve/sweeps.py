"""The batches, sweeps and hunts of a store: many runs that were judged as one."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.campaign.document import SWEEP_FILE, SWEEPS
from harness.campaign.page import PAGE_FILE as PAGE_OF_SWEEP
from harness.core.command import seamark
from harness.core.errors import HistoryError
from harness.hunt.document import HUNT_FILE
from harness.hunt.page import PAGE_FILE as PAGE_OF_HUNT
from harness.hunt.search import HUNTS
from harness.record.store import began_utc
from harness.report.model import REPORT_FILE
from harness.run.batch import BATCHES
from harness.run.single import PAGE_FILE
from harness.scenario.sut import release
from harness.serve.index import STATES, UNJUDGED, UNREADABLE, Known, short
from harness.serve.places import plain_folders


class _Class(msgspec.Struct, frozen=True):
    """A class of findings in a sweep.json; other fields are ignored."""

    fingerprint: str
    anomaly: str
    promise: str | None = None
    runs: int = 0
    judged: int = 0


class _Document(msgspec.Struct, frozen=True):
    """The fields that the list needs of a batch's report.json, of a sweep.json or a hunt.json."""

    verdict: str
    reason: str
    planned: int
    counts: dict[str, int]
    sut: dict[str, str] = {}
    seconds: float = 0.0
    findings: tuple[_Class, ...] = ()


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    """A batch, a sweep or a hunt, by `kind`: the sweep called `name`, or the hunt in that cluster.

    `place` is its folder below the store, `state` a key of index.STATES.
    """

    kind: str
    name: str
    place: str
    state: str
    reason: str
    began: str | None
    release: str = ""  # The declared release of the system under test, in words; may be empty.
    planned: int = 0
    counts: tuple[tuple[str, int], ...] = ()  # Runs by verdict, the worst first; none without a run.
    seconds: float = 0.0
    findings: tuple[_Class, ...] = ()
    page: str | None = None  # The address of its page.

    @property
    def runs(self) -> int:
        """The number of judged runs."""
        return sum(count for _, count in self.counts)


class Campaigns:
    """All campaigns of a store, the latest first. Each version of a document is read once."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self._documents = Known(_Document)

    def all(self) -> list[Campaign]:
        """All campaigns that have a folder, with those that did not end marked."""
        found = [*self._in("batch", BATCHES, REPORT_FILE, PAGE_FILE)]
        for sweep in plain_folders(self.store / SWEEPS):
            found += self._in("sweep", f"{SWEEPS}/{sweep.name}", SWEEP_FILE, PAGE_OF_SWEEP)
        for hunt in plain_folders(self.store / HUNTS):
            found += self._in("hunt", f"{HUNTS}/{hunt.name}", HUNT_FILE, PAGE_OF_HUNT)
        return sorted(found, key=lambda each: (each.began or "", each.place), reverse=True)

    def _in(self, kind: str, place: str, document: str, html: str) -> Iterator[Campaign]:
        for entry in plain_folders(self.store / place):
            folder = Path(entry.path)
            page = f"/store/{place}/{entry.name}/{html}" if (folder / html).is_file() else None
            row = Campaign(
                kind=kind,
                name=place.partition("/")[2],
                place=f"{place}/{entry.name}",
                state=UNREADABLE,
                reason="",
                began=began_utc(folder),
                page=page,
            )
            if not os.path.lexists(f"{folder}/{document}"):
                resume = (
                    ""
                    if kind == "batch"
                    else f"; if it was stopped, {seamark(kind, '--resume', folder)} goes on with it"
                )
                yield msgspec.structs.replace(row, state=UNJUDGED, reason=f"has not ended{resume}")
                continue
            try:
                found = self._documents.read(f"{folder}/{document}")
            except HistoryError as error:
                yield msgspec.structs.replace(row, reason=f"is damaged: {error}")
                continue
            yield msgspec.structs.replace(
                row,
                state=found.verdict if found.verdict in STATES else UNREADABLE,
                reason=found.reason,
                release=short(release(found.sut)),
                planned=found.planned,
                counts=tuple((each, found.counts[each]) for each in STATES if found.counts.get(each)),
                seconds=found.seconds,
                findings=found.findings,
            )
