"""May this release go out? Both sides of each rule, over constructed sweeps."""

from datetime import date
from pathlib import Path

import pytest

from harness.campaign.document import Sweep, SweepFinding
from harness.core.errors import ScenarioError
from harness.signoff import decision
from harness.signoff.document import Signoff
from harness.signoff.waivers import Waiver, read_waivers
from tests.unit.signoff.sweeps import TORN, cell, fault, finding, promise, sweep

TODAY = date(2026, 11, 23)


def signed(folder: Path, baseline: Sweep, candidate: Sweep, waivers: str | None = None) -> Signoff:
    path, kept = folder / "waivers.toml", tuple[Waiver, ...]()
    if waivers is not None:
        path.write_text(waivers, encoding="utf-8")
        kept = read_waivers(path, [each.fingerprint for side in (baseline, candidate) for each in side.findings])
    return decision.signed(baseline, candidate, kept, None, TODAY)


def waiver(fingerprint: str = TORN, expires: str = "2026-11-23", **changed: str) -> str:
    fields = {"fingerprint": f'"{fingerprint}"', "owner": '"Ada"', "reason": '"told"', "expires": expires} | changed
    return "[[waiver]]\n" + "".join(f"{name} = {value}\n" for name, value in fields.items() if value)


def test_two_correct_sweeps_are_a_go(tmp_path: Path) -> None:
    found = signed(tmp_path, sweep(), sweep())
    assert (found.decision, found.exit_code) == ("go", 0)
    assert found.reasons == ("nothing new that breaks a promise; no finding in either sweep",)
    assert all(row.why is None for row in found.exposure)


def test_a_new_finding_that_breaks_a_promise_is_a_no_go_that_names_it(tmp_path: Path) -> None:
    found = signed(tmp_path, sweep(), sweep(finding()))
    assert (found.decision, found.exit_code) == ("no-go", 1)
    assert found.reasons[0].startswith("Torn unit is new: it breaks NDB-G8 of ndb, in 3 of 100 runs")
    assert TORN not in found.reasons[0]
    (row,) = found.findings
    assert (row.state, row.is_blocking, row.baseline.text, row.candidate.text) == (
        "new", True, "0 of 100 runs (95 %: 0 to 3 %)", "3 of 100 runs (95 %: 0.62 to 8.5 %)",
    )  # fmt: skip


def test_a_no_go_outranks_too_little_evidence(tmp_path: Path) -> None:
    found = signed(tmp_path, sweep(), sweep(finding(), faults=(fault(effective=1),)))
    assert found.decision == "no-go"
    short = [each for each in found.reasons if "took effect 1 time in the candidate" in each]
    assert [each.startswith("also, too little was tested: ") for each in short] == [True]


@pytest.mark.parametrize(
    ("expires", "decided", "state"),
    [("2026-11-23", "go", "counts"), ("2026-11-22", "no-go", "expired"), ("2999-01-01", "go", "counts")],
)
def test_a_waiver_counts_up_to_the_end_of_its_last_day(tmp_path: Path, expires: str, decided: str, state: str) -> None:
    found = signed(tmp_path, sweep(), sweep(finding()), waiver(expires=expires))
    assert (found.decision, found.waivers[0].state, found.waivers[0].owner) == (decided, state, "Ada")
    assert (found.findings[0].waiver == "Ada") == (state == "counts")
    assert ("expired on 2026-11-22" in found.reasons[0]) == (state == "expired")


def test_a_waiver_covers_its_own_finding_only(tmp_path: Path) -> None:
    found = signed(tmp_path, sweep(), sweep(finding(), finding("beef")), waiver())
    assert found.decision == "no-go"
    assert [(row.fingerprint, row.is_blocking) for row in found.findings] == [("beef", True), (TORN, False)]


def test_what_needs_no_waiver_says_so(tmp_path: Path) -> None:
    found = signed(tmp_path, sweep(finding()), sweep(finding()), waiver())
    assert (found.decision, found.waivers[0].state) == ("go", "not-needed")


@pytest.mark.parametrize(
    ("before", "after", "state", "decided"),
    [
        (3, 4, "ongoing", "go"),
        (3, 40, "worse", "no-go"),
        (40, 3, "ongoing", "go"),
        (40, 0, "resolved", "go"),
        (1, 0, "rare", "go"),
        (0, 1, "new", "no-go"),
    ],
)
def test_findings_are_told_apart_by_what_chance_explains(
    tmp_path: Path, before: int, after: int, state: str, decided: str
) -> None:
    def found(runs: int) -> tuple[SweepFinding, ...]:
        return (finding(runs=runs),) if runs else ()

    signoff = signed(tmp_path, sweep(*found(before)), sweep(*found(after)))
    assert ([row.state for row in signoff.findings], signoff.decision) == ([state], decided)


def test_what_no_promise_forbids_is_shown_and_decides_nothing(tmp_path: Path) -> None:
    found = signed(tmp_path, sweep(), sweep(finding(promise=None)))
    assert ([row.state for row in found.findings], found.decision) == (["observed"], "go")


TOO_LITTLE: list[tuple[Sweep, Sweep, str]] = [
    (sweep(), sweep(faults=(fault(effective=4), fault("crash"))), "partition took effect 4 times in the candidate"),
    (sweep(), sweep(faults=(fault(effective=99), fault("crash"))), "less than half of the baseline's 200"),
    (
        sweep(),
        sweep(faults=(fault(is_exercised=False), fault("crash"))),
        "partition was not exercised in the candidate",
    ),
    (sweep(faults=(fault(is_exercised=False), fault("crash"))), sweep(), "partition was not exercised in the baseline"),
    (sweep(), sweep(faults=(fault(),)), "crash was not planned in the candidate"),
    (sweep(faults=(fault(),)), sweep(), "crash was not planned in the baseline"),
    (sweep(), sweep(cells=(cell(counts={"valid": 44, "vacuous": 56}),)), "runs that were not vacuous: 44 in"),
    (sweep(), sweep(cells=(cell(hours=0.2),)), "hours of system time"),
    (sweep(), sweep(cells=(cell(operations={"ok": 10}),)), "operations: 10 in the candidate"),
    (sweep(), sweep(cells=(cell(workload="bank"),)), "only the baseline ran ndb list-append"),
    (sweep(), sweep(cells=(cell(), cell(faults="none"))), "only the candidate ran ndb list-append with faults none"),
    (sweep(), sweep(verdict="vacuous", reason="too few"), "the candidate is VACUOUS: too few"),
    (sweep(verdict="error", reason="it crashed"), sweep(), "the baseline is HARNESS ERROR: it crashed"),
    (sweep(), sweep(verdict="unknown"), "the candidate is UNKNOWN"),
    (sweep(), sweep(promises=(promise(verdict="not-exercised", witnesses=2),)), "NDB-G8 was not exercised"),
]


@pytest.mark.parametrize(
    ("baseline", "candidate", "message"), TOO_LITTLE, ids=[message for _, _, message in TOO_LITTLE]
)
def test_too_little_evidence_is_no_go_ahead(tmp_path: Path, baseline: Sweep, candidate: Sweep, message: str) -> None:
    found = signed(tmp_path, baseline, candidate)
    assert (found.decision, found.exit_code) == ("insufficient-evidence", 3)
    assert any(message in each for each in found.reasons), found.reasons


def test_half_of_the_exposure_suffices(tmp_path: Path) -> None:
    half = cell(counts={"valid": 45}, hours=0.25, operations={"ok": 50_000})
    found = signed(
        tmp_path, sweep(), sweep(cells=(half,), faults=(fault(effective=100), fault("crash", effective=100)))
    )
    assert found.decision == "go"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (waiver("59f48400aa5b8fbe"), f"waiver 1: unknown fingerprint '59f48400aa5b8fbe'; did you mean {TORN}?"),
        (waiver() + waiver(), "waiver 2: .* has one above"),
        (waiver(owner=""), "waiver 1: has no owner"),
        (waiver(owner='" "'), "its owner must be a text"),
        (waiver(expires='"2026-12-31"'), "must be a day without quotes"),
        (waiver(expires="2026-12-31T00:00:00Z"), "must be a day without quotes"),
        (waiver(until="2026-12-31"), ": unknown field 'until'"),
        (waiver().replace("waiver", "waivers"), "did you mean waiver?"),
        (waiver().replace("[[waiver]]", "[waiver]"), "as a separate table"),
        ("[[waiver", "not valid TOML"),
    ],
)
def test_a_waiver_with_a_mistake_is_told_so_in_a_line(tmp_path: Path, text: str, message: str) -> None:
    pattern = message.replace("(", r"\(").replace(")", r"\)").replace("?", r"\?")
    with pytest.raises(ScenarioError, match=pattern):
        signed(tmp_path, sweep(), sweep(finding()), text)
