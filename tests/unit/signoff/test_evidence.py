"""A sign-off rests on rows: no summary, no copy and no row from elsewhere makes it greener."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from functools import partial
from pathlib import Path

import msgspec
import pytest

from harness.campaign.document import Sweep, SweepPromise, read_sweep, sweep_to_json
from harness.campaign.evidence import evidence_at, kept_in
from harness.campaign.ledger.orders import digest_of, write_order
from harness.campaign.ledger.rows import ROWS_FILE, Row, RowsFile, read_rows
from harness.campaign.outcome import sweep_of
from harness.campaign.sweep import resumed
from harness.campaign.task import Task
from harness.core.errors import HistoryError, ScenarioError, SeamarkError
from harness.signoff.decision import ALIKE, Inputs, sign_off
from harness.signoff.document import Signoff, to_json
from tests.unit.campaign.made import carried_out, made
from tests.unit.campaign.reports import finding, promise, report
from tests.unit.signoff.folders import RED, RUNS, green, red

TODAY = date(2026, 11, 23)


def signed(baseline: Path, candidate: Path, waivers: Path | None = None) -> Signoff:
    return sign_off(Inputs(baseline=baseline, candidate=candidate, waivers=waivers), TODAY)


def summary(folder: Path, **changes: object) -> None:
    """Write another sweep.json."""
    changed = msgspec.structs.replace(read_sweep(folder), **changes)
    (folder / "sweep.json").write_bytes(sweep_to_json(changed))


def gone_on_with(folder: Path) -> Sweep:
    """Resume the sweep. No run of it is carried out."""

    def work(task: Task) -> Row:
        raise AssertionError(f"a run of seed {task.scenario.seed}")

    return carried_out(resumed(folder, folder), work)


def rewritten(folder: Path, rows: list[Row]) -> None:
    """Write other rows, with a chain that holds, and the summary that follows from them: as Seamark could."""
    order, _ = kept_in(folder)
    (folder / ROWS_FILE).unlink()
    with RowsFile(folder, Row, digest_of(order)) as file:
        for row in rows:
            file.append(row)
    kept = read_rows(folder, Row, digest_of(order))
    with suppress(IndexError):  # Rows of cells that there are not have no summary.
        (folder / "sweep.json").write_bytes(sweep_to_json(sweep_of(order, kept, folder=folder)))


def test_two_sweeps_in_folders_are_decided_by_their_rows(tmp_path: Path) -> None:
    before, after, broken = green(tmp_path / "a"), green(tmp_path / "b"), red(tmp_path / "c")
    assert signed(before, after).decision == "go"
    found = signed(before, broken)
    assert found.decision == "no-go"
    assert found.findings[0].candidate.seen == 3
    assert (found.candidate.path, found.candidate.id) == (str(broken), kept_in(broken)[0].id)


SUMMARIES: list[dict[str, object]] = [
    {"findings": ()},
    {"verdict": "valid", "exit_code": 0},
    {"verdict": "valid", "exit_code": 0, "findings": (), "counts": {"valid": RUNS}},
    {"promises": ()},
    {"runs": 9},
    {"name": "another"},
    {"faults": ()},
    {"hours": 1000.0},
]


@pytest.mark.parametrize("changes", SUMMARIES, ids=[",".join(each) for each in SUMMARIES])
def test_a_summary_that_differs_from_the_rows_is_named_and_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    before, broken = green(tmp_path / "a"), red(tmp_path / "c")
    summary(broken, **changes)
    with pytest.raises(HistoryError, match=r"sweep\.json: \S+ is .*, and by its rows .*: one of the two was changed"):
        signed(before, broken)


def test_a_promise_taken_out_of_a_summary_is_named(tmp_path: Path) -> None:
    before, broken = green(tmp_path / "a"), red(tmp_path / "c")
    (only,) = read_sweep(broken).findings
    summary(broken, findings=(msgspec.structs.replace(only, promise=None),))
    with pytest.raises(HistoryError, match=r'findings\[0\]\.promise is null, and by its rows "P1"'):
        signed(before, broken)


def kept(promise: SweepPromise) -> SweepPromise:
    return msgspec.structs.replace(promise, verdict="kept")


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        (lambda sweep: {"runs": -1}, r"at `\$\.runs`"),
        (lambda sweep: {"verdict": "green"}, r"at `\$\.verdict`"),
        (lambda sweep: {"hours": -1.0}, r"at `\$\.hours`"),
        (
            lambda sweep: {"promises": (msgspec.structs.replace(sweep.promises[0], verdict="kept"),)},
            r"at `\$\.promises",
        ),
    ],
)
def test_a_summary_out_of_bounds_is_told_by_its_field(
    tmp_path: Path, what: Callable[[Sweep], dict[str, object]], problem: str
) -> None:
    before, after = green(tmp_path / "a"), green(tmp_path / "c")
    summary(after, **what(read_sweep(after)))
    with pytest.raises(HistoryError, match=problem):
        signed(before, after)


def relabelled(row: Row, verdict: str, **changes: object) -> Row:
    code = {"valid": 0, "vacuous": 3, "error": 4}[verdict]
    changed = msgspec.structs.replace(row.report, verdict=verdict, exit_code=code, **changes)
    return msgspec.structs.replace(row, report=changed)


def other(row: Row, **changes: object) -> Row:
    return msgspec.structs.replace(row, id="0123456789abcdef", **changes)


WHITEWASHED: dict[str, tuple[Callable[[list[Row]], list[Row]], str]] = {
    "valid beside a finding": (lambda rows: [relabelled(rows[0], "valid"), *rows[1:]], "its verdict is valid, and a"),
    "vacuous beside a finding": (lambda rows: [relabelled(rows[0], "vacuous"), *rows[1:]], "its verdict is vacuous"),
    "valid without its finding": (
        lambda rows: [relabelled(rows[0], "valid", findings=()), *rows[1:]],
        "P1 is violated, and no finding breaks it",
    ),
    "valid with a finding that breaks nothing": (
        lambda rows: [relabelled(rows[0], "valid", findings=(finding(promise=None),)), *rows[1:]],
        "P1 is violated, and no finding breaks it",
    ),
    "a promise that holds beside its finding": (
        lambda rows: [relabelled(rows[0], "valid", promises=(promise("P1"),)), *rows[1:]],
        "a finding breaks P1, and its promises do not say so",
    ),
    "valid without a promise": (
        lambda rows: [relabelled(rows[0], "valid", findings=(), promises=()), *rows[1:]],
        "by its own facts it is vacuous at best",
    ),
    "a second row for a red run": (lambda rows: [*rows, other(rows[-1], cell=0, seed=0)], "this run has a row above"),
    "a row for a cell that is not planned": (lambda rows: [*rows, other(rows[-1], cell=7)], "no such run is planned"),
    "a row for a seed that is not planned": (lambda rows: [*rows, other(rows[-1], seed=99)], "no such run is planned"),
    "a row twice": (lambda rows: [*rows, rows[-1]], "its id .* is that of a row above"),
    "a second attempt without a first": (
        lambda rows: [other(rows[0], attempt=2), *rows[1:]],
        "attempt 2 is not the next one",
    ),
    "the report of another run": (
        lambda rows: [msgspec.structs.replace(rows[0], report=rows[-1].report), *rows[1:]],
        "its report is on another run",
    ),
}


@pytest.mark.parametrize("what", WHITEWASHED)
def test_rows_that_contradict_themselves_or_the_plan_are_refused_even_if_their_chain_holds(
    tmp_path: Path, what: str
) -> None:
    before, broken = green(tmp_path / "a"), red(tmp_path / "c")
    change, problem = WHITEWASHED[what]
    rewritten(broken, change(kept_in(broken)[1].rows))
    for read in (partial(signed, before, broken), partial(gone_on_with, broken)):
        with pytest.raises(HistoryError, match=rf"rows\.jsonl:\d+: .*{problem}.*; restore the file from a copy"):
            read()


def test_red_rows_made_green_in_place_are_refused(tmp_path: Path) -> None:
    broken = red(tmp_path / "c")
    rows = broken / ROWS_FILE
    rows.write_bytes(rows.read_bytes().replace(b'"verdict":"invalid"', b'"verdict":"valid"'))
    with pytest.raises(HistoryError, match=r"rows\.jsonl:1: does not follow from the order of this folder"):
        gone_on_with(broken)


def test_an_order_with_other_cells_or_fewer_runs_is_refused(tmp_path: Path) -> None:
    before, broken = green(tmp_path / "a"), red(tmp_path / "c")
    order, _ = kept_in(broken)
    write_order(broken, msgspec.structs.replace(order, design=msgspec.structs.replace(order.design, min_runs=1)))
    with pytest.raises(HistoryError, match=r"rows\.jsonl:1: does not follow from the order of this folder"):
        signed(before, broken)


def test_rows_whose_end_was_cut_off_are_refused_and_a_torn_line_after_them_is_not(tmp_path: Path) -> None:
    before, broken = green(tmp_path / "a"), red(tmp_path / "c", 8, min_runs=1)
    lines = (broken / ROWS_FILE).read_bytes().splitlines(keepends=True)
    (broken / ROWS_FILE).write_bytes(b"".join(lines) + lines[0][:50])
    assert signed(before, broken).decision == "no-go"
    for cut in (b"".join(lines[:-1]), b"".join(lines)[:-1], b""):
        (broken / ROWS_FILE).write_bytes(cut)
        with pytest.raises(HistoryError, match=r"rows\.jsonl: lacks rows that sweep\.json counts"):
            signed(before, broken)
        with pytest.raises(HistoryError, match=r"rows\.jsonl: lacks rows that sweep\.json counts"):
            gone_on_with(broken)


def test_empty_sweeps_are_no_evidence(tmp_path: Path) -> None:
    before = made(tmp_path / "a", *[report()] * RUNS, time_budget=0.000001, min_runs=1)
    after = made(tmp_path / "b", *[report()] * RUNS, time_budget=0.000001, min_runs=1)
    assert read_sweep(before).runs == 0
    found = signed(before, after)
    assert (found.decision, found.exit_code) == ("insufficient-evidence", 3)
    assert ALIKE not in found.reasons


def test_a_copy_of_the_baseline_is_no_candidate(tmp_path: Path) -> None:
    before, copy = green(tmp_path / "a"), tmp_path / "copy"
    shutil.copytree(before, copy)
    found = signed(before, copy)
    assert found.decision == "insufficient-evidence"
    assert found.reasons[0].startswith("both are one sweep, ")


def test_runs_of_the_baseline_in_the_candidate_are_counted_and_no_evidence(tmp_path: Path) -> None:
    before, after = green(tmp_path / "a"), green(tmp_path / "b")
    rewritten(after, [*kept_in(before)[1].rows[:2], *kept_in(after)[1].rows[2:]])
    found = signed(before, after)
    assert found.decision == "insufficient-evidence"
    assert found.reasons[0] == "2 runs of the candidate are the baseline's own, by their ids"


def test_two_releases_that_behave_alike_are_judged_and_the_document_says_so(tmp_path: Path) -> None:
    before, after = red(tmp_path / "a"), red(tmp_path / "b")
    found = signed(before, after)
    assert found.decision == "go"
    assert found.reasons[-1] == ALIKE
    assert ALIKE not in signed(before, green(tmp_path / "c")).reasons


def test_no_command_for_readers_names_code_in_a_file_that_a_row_names(tmp_path: Path) -> None:
    evil = msgspec.structs.replace(
        RED, code="/home/x/evil.py:Cluster", anywhere="seamark run --cluster evil.py:Cluster"
    )
    runs = [msgspec.structs.replace(evil, run=f"store/tutorial/{number}") for number in range(RUNS)]
    broken = made(tmp_path / "c", *runs)
    (row,) = evidence_at(broken).sweep.findings
    assert row.command == "seamark run --cluster tutorial --workload list-append --seed 0 --time 60"
    assert b"evil" not in b"".join(path.read_bytes() for path in broken.iterdir())


def test_all_that_it_rests_on_has_a_digest_and_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    before, after, waivers = green(tmp_path / "a"), red(tmp_path / "b"), tmp_path / "waivers.toml"
    (only,) = read_sweep(after).findings
    waivers.write_text(
        f'[[waiver]]\nfingerprint = "{only.fingerprint}"\nowner = "A"\nreason = "R"\nexpires = 2999-01-01\n'
    )
    found = signed(before, after, waivers)
    names = [each.what for each in found.digests]
    sides = [f"{side}, {what}" for side in ("baseline", "candidate") for what in ("what was ordered", "each run")]
    assert (found.decision, names) == ("go", [*sides, "waivers"])
    assert to_json(signed(before, after, waivers)) == to_json(found)
    assert msgspec.json.decode(to_json(found), type=Signoff) == found


def test_what_is_no_sweep_is_told_so_in_a_line(tmp_path: Path) -> None:
    good, cut, bare = green(tmp_path / "good"), green(tmp_path / "cut"), green(tmp_path / "bare")
    (tmp_path / "empty").mkdir()
    (cut / "sweep.json").unlink()
    (bare / ROWS_FILE).unlink()
    for path, told in (
        (tmp_path / "nowhere", "there is no such sweep"),
        (tmp_path / "empty", "is no sweep's folder"),
        (cut, "has not ended: seamark sweep --resume"),
        (bare / "sweep.json", r"\(no rows.jsonl in it\): copy the whole folder"),
        (good, "is also the baseline"),
    ):
        with pytest.raises(ScenarioError, match=told):
            signed(good, path)
    (cut / "sweep.json").write_text('{"name": "x')
    with pytest.raises(HistoryError, match="not a sweep"):
        signed(cut, good)
    with pytest.raises(ScenarioError, match="there is no such file"):
        sign_off(Inputs(baseline=good, candidate=green(tmp_path / "g2"), calibration=tmp_path / "no"), TODAY)


@pytest.mark.parametrize("name", ["order.json", "rows.jsonl", "sweep.json"])
def test_a_document_that_is_a_link_is_refused(tmp_path: Path, name: str) -> None:
    before, after = green(tmp_path / "a"), green(tmp_path / "b")
    (after / name).rename(tmp_path / name)
    (after / name).symlink_to(tmp_path / name)
    with pytest.raises(SeamarkError, match="is a link or no file"):
        signed(before, after)
