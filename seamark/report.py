"""A report that displays itself: as a line in a script, as tables in a notebook."""

from typing import Self

import msgspec

from harness.core.verdict import Verdict
from harness.report import model
from harness.report.markdown import summary
from harness.report.screen import visible


class Report(model.Report, frozen=True, kw_only=True):
    """report.json as a value: verdict, promises, findings, faults, operations. docs/api.md has all fields."""

    @classmethod
    def of(cls, report: model.Report) -> Self:
        """The same report, as one that displays itself."""
        return cls(**{name: getattr(report, name) for name in report.__struct_fields__})

    @property
    def is_pass(self) -> bool:
        """True if every promise that is the purpose of the test had witnesses, and none was broken.

        A vacuous run is no pass.
        """
        return self.verdict == Verdict.VALID.value

    @property
    def symptoms(self) -> tuple[str, ...]:
        """The distinct symptoms of the findings: anomaly, promise, and the shape of the cycle."""
        return tuple(dict.fromkeys(finding.symptom for finding in self.findings))

    def explain(self, symptom: str) -> str:
        """The sentences of the findings with that symptom, and the path of the page."""
        said = [finding.sentence for finding in self.findings if finding.symptom == symptom]
        return "\n".join(map(visible, [*said, f"run: {self.run}"]))

    def to_json(self) -> str:
        """The text of report.json."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted").decode(), indent=1)

    def __str__(self) -> str:
        return visible(f"{Verdict(self.verdict).word}  {self.reason} (exit {self.exit_code})")

    def _repr_markdown_(self) -> str:
        return summary(self)
