"""The result of one run of a hunt, and the row that the hunt keeps of it."""

from pathlib import Path

import msgspec

from harness.campaign.ledger.rows import classes_of, slimmed
from harness.core.errors import SeamarkError
from harness.core.verdict import Verdict
from harness.hunt.reach import Reach
from harness.record.bounded import Amount, Count
from harness.report.model import FindingRow, Report, error_report
from harness.report.trouble import in_one_line
from harness.scenario.consent import Code
from harness.shrink.case import Case
from harness.shrink.trial import carried_out


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run: `report` without its evidence, and the features that it reached, each with its time."""

    report: Report
    features: dict[str, int]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Run `number` of a hunt. `origin` is how it was made from the runs `parents`. `key` is the digest of its case.

    Features have numbers, in the order in which they were first reached: `reached` are those of the run, `new` the
    texts of those that no run before had reached, each with its time since the start of the load in nanoseconds. `case`
    is kept if there are any, or if the run has a finding. `elapsed_s` is the real time since the hunt began, summed
    over sessions.
    """

    number: Count
    origin: str
    parents: tuple[Count, ...]
    key: str
    report: Report
    reached: tuple[Count, ...]
    new: dict[str, int] = {}
    case: Case | None = None
    elapsed_s: Amount = 0.0

    @property
    def classes(self) -> tuple[str, ...]:
        """The fingerprints of its findings' classes."""
        return classes_of(self.report)

    def findings(self, known: frozenset[str]) -> list[FindingRow]:
        """The findings that break a promise and are not `known` by anomaly, symptom or fingerprint."""
        return [
            finding
            for finding, fingerprint in zip(self.report.findings, self.classes, strict=True)
            if finding.promise is not None and known.isdisjoint({finding.anomaly, finding.symptom, fingerprint})
        ]


def tried(code: Code, place: Path, case: Case) -> Tried:
    """Carry the case out in a temporary folder beside `place`, judge all its promises, and return the result."""
    reach = Reach()
    try:
        report = carried_out(case, code, place, None, reach)
    except (SeamarkError, ExceptionGroup) as error:
        report = error_report(
            in_one_line(error), cluster=code.name, runtime=case.scenario.runtime, seed=case.scenario.seed
        )
    reach.conclude(report)
    return Tried(report=slimmed(report), features=reach.features)


def is_trouble(report: Report) -> bool:
    """True if the run failed: by the harness, or by a machine of the cluster that raised an exception."""
    return report.verdict == Verdict.ERROR.value
