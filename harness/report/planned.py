"""The fault plan and its execution: the planned and actual times of each step, and its effect."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.record.exposure import FOREVER, Window
from harness.record.formats.parquet.tables import read_table
from harness.report.pictures.scale import moment
from nemesis.plan import Plan, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A step of the plan, with its times on the run's clock.

    `window` is None if it never began; `refusal` is the reason.
    """

    kind: str
    fault: str
    targets: str
    begin_ns: int
    end_ns: int
    window: Window | None
    refusal: str | None

    @property
    def planned(self) -> str:
        """The planned time in force, as text."""
        return f"{moment(self.begin_ns)} to {moment(self.end_ns)}"

    @property
    def happened(self) -> str:
        """The actual time in force, as text."""
        if self.window is None:
            return f"never: {self.refusal}" if self.refusal else "never"
        until = "the end, never healed" if self.window.end_ns == FOREVER else moment(self.window.end_ns)
        return f"{moment(self.window.begin_ns)} to {until}"

    @property
    def effect(self) -> str:
        """The measured effect."""
        if self.window is None:
            return "none"
        if self.window.effect is None:
            return "not measured"
        return self.window.note or str(self.window.effect)

    @property
    def title(self) -> str:
        """The whole step in one line."""
        return f"{self.kind} of {self.targets}, planned {self.planned}; was in force {self.happened}; {self.effect}"


def planned_steps(plan: Plan, windows: Sequence[Window], refusals: dict[int, str], load_ns: int) -> tuple[Planned, ...]:
    """The steps of a plan. Plan times count from the beginning of the load."""
    by_step = {window.step: window for window in windows}
    return tuple(
        _planned(step, by_step.get(number), refusals.get(number), load_ns) for number, step in enumerate(plan.steps)
    )


def _planned(step: Step, window: Window | None, refusal: str | None, load_ns: int) -> Planned:
    return Planned(
        kind=step.package,
        fault=step.fault,
        targets=", ".join(step.targets),
        begin_ns=load_ns + step.at_ns,
        end_ns=load_ns + step.until_ns,
        window=window,
        refusal=refusal,
    )


def read_refusals(history: Path) -> dict[int, str]:
    """The reasons why steps were refused, by their number in the plan."""
    rows = read_table(history, "faults", ["step", "phase", "note"]).to_pylist()
    return {row["step"]: row["note"] or "refused" for row in rows if row["phase"] == "refused"}
