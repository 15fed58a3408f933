"""The findings of two sweeps by fingerprint: new, worse, ongoing, resolved or rare."""

from collections.abc import Sequence
from datetime import date
from typing import Final

import msgspec

from harness.campaign.calibration.document import CONFIDENCE
from harness.campaign.document import Sweep, SweepFinding
from harness.signoff.document import FindingRow, WaiverRow
from harness.signoff.exposure import judged_runs
from harness.signoff.statistics import Rate, chance_to_see, percent, rate
from harness.signoff.waivers import Waiver

BLOCKING: Final = ("new", "worse")
_ORDER: Final = ("new", "worse", "ongoing", "rare", "resolved", "observed")


def finding_rows(baseline: Sweep, candidate: Sweep, waivers: Sequence[Waiver], today: date) -> list[FindingRow]:
    """Every finding of the two sweeps, those that block first."""
    before = {each.fingerprint: each for each in baseline.findings}
    after = {each.fingerprint: each for each in candidate.findings}
    owners = {each.fingerprint: each.owner for each in waivers if not each.is_expired(today)}
    expired = {each.fingerprint: each for each in waivers if each.is_expired(today)}
    rows = [
        _row(after.get(each) or before[each], baseline, candidate, before.get(each), after.get(each), owners.get(each))
        for each in dict.fromkeys((*after, *before))
    ]
    rows = [_with_expired(row, expired.get(row.fingerprint)) for row in rows]
    return sorted(rows, key=lambda row: (not row.is_blocking, _ORDER.index(row.state), -row.candidate.value))


def _with_expired(row: FindingRow, waiver: Waiver | None) -> FindingRow:
    if waiver is None or not row.is_blocking:
        return row
    expired = f"the waiver of {waiver.owner} expired on {waiver.expires.isoformat()}"
    return msgspec.structs.replace(row, note=expired if row.note is None else f"{row.note}; {expired}")


def waiver_rows(waivers: Sequence[Waiver], rows: Sequence[FindingRow], today: date) -> list[WaiverRow]:
    """The waivers, each with its effect on these findings."""
    blocking = {row.fingerprint for row in rows if row.state in BLOCKING}
    return [
        WaiverRow(
            fingerprint=each.fingerprint,
            owner=each.owner,
            reason=each.reason,
            expires=each.expires.isoformat(),
            state="expired" if each.is_expired(today) else "counts" if each.fingerprint in blocking else "not-needed",
        )
        for each in waivers
    ]


def _row(
    shown: SweepFinding,
    baseline: Sweep,
    candidate: Sweep,
    before: SweepFinding | None,
    after: SweepFinding | None,
    owner: str | None,
) -> FindingRow:
    rates = [
        rate(0, judged_runs(sweep, shown.cluster)) if found is None else rate(found.runs, found.judged)
        for sweep, found in ((baseline, before), (candidate, after))
    ]
    state = "observed" if shown.promise is None else _state(*rates)
    is_waived = state in BLOCKING and owner is not None
    return FindingRow(
        fingerprint=shown.fingerprint,
        cluster=shown.cluster,
        anomaly=shown.anomaly,
        promise=shown.promise,
        sentence=shown.sentence,
        state=state,
        baseline=rates[0],
        candidate=rates[1],
        is_blocking=state in BLOCKING and not is_waived,
        waiver=owner if is_waived else None,
        note=_note(state, *rates),
        command=shown.command,
        first_seen=min(each.first_seen for each in (before, after) if each is not None),
    )


def _state(before: Rate, after: Rate) -> str:
    if not before.seen:
        return "new"
    if not after.seen:
        return "resolved" if chance_to_see(before.value, after.runs) >= CONFIDENCE else "rare"
    return "worse" if after.low > before.high else "ongoing"


def _note(state: str, before: Rate, after: Rate) -> str | None:
    """A note on the two rates, for example how likely the other sweep would have shown the finding."""
    if state == "new" and (chance := chance_to_see(after.value, before.runs)) < CONFIDENCE:
        likely = percent(chance)
        runs = f"{before.runs:,} baseline runs"
        return f"at this rate {runs} had a {likely} chance to show it: it may not be new"
    if state == "rare":
        least = percent(chance_to_see(before.value, after.runs))
        return f"at the baseline's rate {after.runs:,} runs show it with a chance of {least}: it may still be there"
    if state == "worse":
        return "more often than in the baseline: the intervals of the rates do not overlap"
    return None
