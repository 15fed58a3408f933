"""A sign-off follows from what it rests on, or the difference is named."""

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import msgspec
import pytest

from harness.core.errors import HistoryError, SeamarkError
from harness.signoff.decision import Inputs, sign_off
from harness.signoff.document import Signoff, to_json
from harness.signoff.verification import Request, lines, verified
from tests.unit.signoff.folders import RUNS, green, red


@pytest.fixture
def signed(tmp_path: Path) -> Path:
    """A sign-off that is NO-GO, with its two sweeps beside it."""
    inputs = Inputs(baseline=green(tmp_path / "a"), candidate=red(tmp_path / "b"))
    path = tmp_path / "signoff.json"
    path.write_bytes(to_json(sign_off(inputs, date(2026, 11, 23))))
    return path


def changed(path: Path, change: Callable[[Signoff], dict[str, object]]) -> None:
    document = msgspec.json.decode(path.read_bytes(), type=Signoff)
    path.write_bytes(to_json(msgspec.structs.replace(document, **change(document))))


def test_a_document_that_follows_says_what_remains_believed(signed: Path) -> None:
    found = verified(Request(document=signed))
    assert (found.exit_code, found.differences, found.decision) == (0, (), "no-go")
    assert [(each.runs, each.judged, each.believed) for each in found.sides] == [(RUNS, 0, RUNS)] * 2
    assert list(lines(found))[-1] == "  believed  16 of 16 runs: only their rows say what they showed"


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda _: {"decision": "go"}, 'decision is "go" in the document, and "no-go" by what it rests on'),
        (lambda _: {"findings": ()}, "findings is a list of 0 in the document, and a list of 1"),
        (lambda one: {"candidate": msgspec.structs.replace(one.candidate, runs=9)}, "candidate.runs is 9"),
        (lambda one: {"digests": one.digests[1:]}, "digests is a list of 3"),
        (
            lambda one: {"digests": (msgspec.structs.replace(one.digests[0], sha256="0" * 64), *one.digests[1:])},
            'digests[0].sha256 is "0000',
        ),
    ],
)
def test_what_differs_is_named(signed: Path, change: Callable[[Signoff], dict[str, object]], difference: str) -> None:
    changed(signed, change)
    found = verified(Request(document=signed))
    assert found.exit_code == 1
    assert any(each.startswith(difference) for each in found.differences), found.differences
    assert any(line.startswith("  differs   ") for line in lines(found))


def test_sweeps_that_were_moved_are_named_on_the_command_line(signed: Path, tmp_path: Path) -> None:
    document = msgspec.json.decode(signed.read_bytes(), type=Signoff)
    moved = [
        Path(shutil.move(side.path, tmp_path / name))
        for name, side in (("x", document.baseline), ("y", document.candidate))
    ]
    with pytest.raises(SeamarkError, match="there is no such sweep"):
        verified(Request(document=signed))
    assert verified(Request(document=signed, baseline=moved[0], candidate=moved[1])).exit_code == 0


def test_runs_that_cannot_be_carried_out_again_are_no_confirmation(
    signed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.campaign.ledger.orders.code_digest", lambda codes: "0" * 64)
    found = verified(Request(document=signed, replay=3))
    assert (found.exit_code, found.differences) == (3, ())
    assert all("has changed since" in str(each.unrepeatable) for each in found.sides)


def test_a_run_that_is_another_one_when_it_is_carried_out_again_differs(signed: Path) -> None:
    """These rows were made up: no run of the cluster left them."""
    found = verified(Request(document=signed, replay=1))
    assert found.exit_code == 1
    assert "carried out again: its history is " in "".join(found.differences)


@pytest.mark.parametrize(
    ("name", "value"),
    [("decision", "maybe"), ("signed_utc", "2026-02-31"), ("signed_utc", "today"), ("exit_code", "x")],
)
def test_a_document_out_of_bounds_is_told_by_its_field(signed: Path, name: str, value: str) -> None:
    document = msgspec.json.decode(signed.read_bytes(), type=dict[str, object]) | {name: value}
    signed.write_bytes(msgspec.json.encode(document))
    with pytest.raises(HistoryError, match=rf"signoff\.json: .*{name}"):
        verified(Request(document=signed))
