"""The decision on a release, from two sweeps, waivers and a calibration. The first rule that applies decides:

1. NO-GO, if the candidate shows a finding that breaks a promise, which is new or worse, and no waiver covers it.
2. INSUFFICIENT EVIDENCE, if the sweeps cannot be compared, or either of them tested too little.
3. GO.

A finding that the baseline has as well is known, and does not hold a release back; it is in the document all the same.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from hashlib import file_digest
from pathlib import Path
from typing import Final

import msgspec

from checkers.verdict.titles import title
from harness.campaign.calibration.document import Calibration, calibration_at
from harness.campaign.document import Sweep
from harness.campaign.evidence import Evidence, evidence_at
from harness.campaign.ledger.orders import ORDER_FILE
from harness.campaign.ledger.rows import ROWS_FILE
from harness.core.errors import HistoryError, ScenarioError
from harness.core.wording import counted
from harness.record.documents import opened
from harness.scenario.installation import version
from harness.signoff.behaviour import behaviour_rows, promise_rows
from harness.signoff.document import Decision, Digest, FindingRow, Side, Signoff
from harness.signoff.exposure import EFFECTIVE_MIN, exposure_rows, shortfalls
from harness.signoff.findings import finding_rows, waiver_rows
from harness.signoff.power import power_rows
from harness.signoff.waivers import Waiver, read_waivers

RULES: Final = {
    Decision.NO_GO: (
        "A finding that breaks a promise, that the baseline does not have or has less often than chance explains, and "
        "that no waiver covers, is a NO-GO. It outranks everything else."
    ),
    Decision.INSUFFICIENT: (
        "Without such a finding the evidence must suffice: both sweeps ran the same matrix and have a verdict of their "
        "own; of runs, hours, operations and each kind of fault the candidate has half of the baseline's or more; each "
        f"kind took effect {EFFECTIVE_MIN} times or more in both; each promise that the test is for was exercised."
    ),
    Decision.GO: (
        "No finding of the candidate that breaks a promise is new or worse without a waiver, and both sweeps tested "
        "enough to say so."
    ),
}


ALIKE: Final = "the two releases behaved alike: each run of the candidate has the history of the baseline's"


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a sign-off."""

    baseline: Path
    candidate: Path
    waivers: Path | None = None
    calibration: Path | None = None
    signed_by: str | None = None
    ticket: str | None = None


def sign_off(inputs: Inputs, today: date) -> Signoff:
    """The sign-off, dated `today` (UTC). It rests on the rows of both sweeps, whatever their summaries say.

    Raises ScenarioError for inputs that are missing or cannot be signed off, HistoryError for damaged ones.
    """
    if inputs.baseline.resolve() == inputs.candidate.resolve():
        raise ScenarioError(f"{inputs.candidate}: is also the baseline; name the sweeps of two releases")
    baseline, candidate = evidence_at(inputs.baseline), evidence_at(inputs.candidate)
    fingerprints = [each.fingerprint for side in (baseline, candidate) for each in side.sweep.findings]
    waivers = read_waivers(inputs.waivers, fingerprints) if inputs.waivers is not None else ()
    calibration = calibration_at(inputs.calibration) if inputs.calibration is not None else None
    found = signed(baseline.sweep, candidate.sweep, waivers, calibration, today, same=list(_same(baseline, candidate)))
    return msgspec.structs.replace(
        found,
        signed_by=inputs.signed_by,
        ticket=inputs.ticket,
        baseline=msgspec.structs.replace(found.baseline, path=str(inputs.baseline)),
        candidate=msgspec.structs.replace(found.candidate, path=str(inputs.candidate)),
        digests=tuple(_digests(inputs, baseline, candidate)),
    )


def signed(
    baseline: Sweep,
    candidate: Sweep,
    waivers: Sequence[Waiver],
    calibration: Calibration | None,
    today: date,
    *,
    same: Sequence[str] = (),
) -> Signoff:
    """The sign-off of two sweeps, without the files that it rests on. `same` says what in them is one and the same."""
    findings = finding_rows(baseline, candidate, waivers, today)
    exposure = exposure_rows(baseline, candidate)
    decision, reasons = decided(findings, [*same, *shortfalls(baseline, candidate, exposure)])
    if not same and baseline.runs and baseline.history_sha256 == candidate.history_sha256:
        reasons.append(ALIKE)
    return Signoff(
        decision=decision.value,
        exit_code=decision.exit_code,
        rule=RULES[decision],
        reasons=tuple(reasons),
        signed_utc=today.isoformat(),
        seamark=version(),
        baseline=_side(baseline),
        candidate=_side(candidate),
        exposure=tuple(exposure),
        findings=tuple(findings),
        power=tuple(power_rows(calibration, candidate)),
        behaviour=tuple(behaviour_rows(baseline, candidate)),
        promises=tuple(promise_rows(baseline, candidate)),
        waivers=tuple(waiver_rows(waivers, findings, today)),
        digests=(),
    )


def _same(baseline: Evidence, candidate: Evidence) -> Iterator[str]:
    """Sentences that say why the two are not the sweeps of two releases; none if they are. Ids are drawn."""
    if baseline.order.id == candidate.order.id:
        yield f"both are one sweep, {baseline.order.id}, or copies of it: make a sweep of the candidate"
    elif shared := {row.id for row in baseline.kept.rows} & {row.id for row in candidate.kept.rows}:
        yield f"{counted(len(shared), 'run')} of the candidate are the baseline's own, by their ids"


def decided(findings: Sequence[FindingRow], short: Sequence[str]) -> tuple[Decision, list[str]]:
    """The decision, and its reasons. `short` says what was tested too little."""
    blocking = [row for row in findings if row.is_blocking]
    if blocking:
        return Decision.NO_GO, [*map(_blocked, blocking), *(f"also, too little was tested: {each}" for each in short)]
    if short:
        return Decision.INSUFFICIENT, list(short)
    return Decision.GO, [_cleared(findings)]


def _blocked(row: FindingRow) -> str:
    runs = f"in {row.candidate.seen:,} of {row.candidate.runs:,} runs"
    note = "" if row.note is None else f"; {row.note}"
    what = f"{title(row.anomaly)} is {row.state}: it breaks {row.promise} of {row.cluster}, {runs}"
    return f"{what}{note}"


def _cleared(findings: Sequence[FindingRow]) -> str:
    counts = {state: sum(row.state == state for row in findings) for state in ("ongoing", "rare", "resolved")}
    waived = sum(row.waiver is not None for row in findings)
    known = [f"{count} {state}" for state, count in (*counts.items(), ("waived", waived)) if count]
    return f"nothing new that breaks a promise; {', '.join(known) or 'no finding in either sweep'}"


def _side(sweep: Sweep) -> Side:
    return Side(
        path=sweep.folder or "",
        id=sweep.id,
        name=sweep.name,
        verdict=sweep.verdict,
        reason=sweep.reason,
        began_utc=sweep.started_utc,
        ended_utc=sweep.finished_utc,
        versions=sweep.versions,
        sut=sweep.sut,
        bugs=tuple(dict.fromkeys(bug for cell in sweep.cells for bug in cell.bugs)),
        config_sha256=sweep.config.sha256,
        history_sha256=sweep.history_sha256,
        rows_sha256=sweep.rows_sha256,
        runs=sweep.runs,
    )


def _digests(inputs: Inputs, baseline: Evidence, candidate: Evidence) -> Iterator[Digest]:
    """The hashes of the files on which the decision rests."""
    for name, side in (("baseline", baseline), ("candidate", candidate)):
        yield _digest(f"{name}, what was ordered", side.folder / ORDER_FILE)
        yield _digest(f"{name}, each run", side.folder / ROWS_FILE)
    for name, other in (("waivers", inputs.waivers), ("calibration", inputs.calibration)):
        if other is not None:
            yield _digest(name, other)


def _digest(what: str, path: Path) -> Digest:
    try:
        with opened(path) as file:
            return Digest(what=what, path=str(path), sha256=file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
