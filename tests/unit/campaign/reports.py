"""Reports of runs that never took place, for what is made of them."""

import msgspec

from harness.core.verdict import Step, Verdict
from harness.report.model import Exposed, FaultRow, FindingRow, PromiseRow, Report


def fault(kind: str, *, effective: int = 1, met: int = 100) -> FaultRow:
    return FaultRow(kind=kind, planned=1, begun=1, effective=effective, ok=met, fail=0, info=0)


def promise(name: str, *, verdict: str = "holds", witnesses: int = 50) -> PromiseRow:
    return PromiseRow(id=name, verdict=verdict, witnesses=witnesses, text=f"{name} is kept.", source="a page")


def finding(anomaly: str = "late-event", *relations: str, promise: str | None = "P1") -> FindingRow:
    steps = [Step(source="T1", target="T2", relation=each, sentence="so") for each in relations]  # type: ignore[arg-type]  # Only ours are written.
    return FindingRow(
        fingerprint="0",
        anomaly=anomaly,
        checker="streams",
        sentence="It came late.",
        cycle=tuple(steps),
        promise=promise,
    )


def report(
    verdict: Verdict = Verdict.VALID,
    *,
    faults: tuple[FaultRow, ...] = (fault("pause"), fault("partition")),
    is_long: bool = True,
    **changes: object,
) -> Report:
    """A run that passed, but for the changes. As many operations were open in a fault as completed in it."""
    passed = Report(
        verdict=verdict.value,
        exit_code=verdict.exit_code,
        reason="as it is",
        cluster="tutorial",
        workload="list-append",
        runtime="sim",
        seed=0,
        promises=(promise("P1"), promise("P2", witnesses=1)),
        faults=faults,
        goals={"a subscriber resumed": 1},
        exposure=Exposed(
            ok_by_type={"txn": 400},
            met={row.kind: row.ok for row in faults if row.effective},
            long=tuple(row.kind for row in faults) if is_long else (),
            purposes=("P1",),
            known_versions=1000,
            all_versions=1000,
        ),
        operations={"ok": 400, "fail": 10, "info": 2},
        duration_s=7.0,
    )
    return msgspec.structs.replace(passed, **changes)
