"""`seamark hunt`: one new finding, made small, with its page; and what it refuses."""

from pathlib import Path

import pytest

from harness.campaign.ledger.rows import ROWS_FILE
from tests.command.conftest import Seamark

LOST_ACK = ("--cluster", "tutorial", "--bug", "lost-ack", "--nemesis", "partition", "--time", "8", "--rate", "30")


def test_a_hunt_finds_what_is_new_keeps_it_and_goes_on_from_its_rows(seamark: Seamark, tmp_path: Path) -> None:
    command = ("hunt", *LOST_ACK, "--seed", "4", "--count", "40", "--jobs", "2", "--no-shrink")
    outcome = seamark(*command, "--json", "--quiet")
    assert (outcome.code, outcome.err) == (1, "")
    found, folder = outcome.json["found"], Path(str(outcome.json["folder"]))
    assert isinstance(found, dict)
    assert found["promise"] is not None
    assert (tmp_path / str(found["run"]) / "report.html").exists()
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert str(found["symptom"]) in page
    rows = (folder / ROWS_FILE).read_bytes()
    assert rows.count(b"\n") == outcome.json["runs"]

    again = seamark("hunt", "--resume", "latest", "--jobs", "1", "--no-shrink", "--json", "--quiet")
    assert again.code == 1
    assert again.json["corpus"] == outcome.json["corpus"]
    assert (folder / ROWS_FILE).read_bytes() == rows
    assert [found["run"]] == [str(each.relative_to(tmp_path)) for each in (tmp_path / "store" / "tutorial").iterdir()]

    screen = seamark("hunt", "--resume", "latest", "--no-shrink", "--count", "40")
    assert f"NEW     {found['symptom']}" in screen.out
    assert "seamark replay store/tutorial/" in screen.out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--cluster", "tutorial", "--runtime", "docker"), "No such option: --runtime"),
        (("--cluster", "postgres"), "docker"),
        (("--cluster", "tutorial", "--nemesis", "none"), "--nemesis must name some"),
        (("--resume", "nowhere"), "not a hunt's folder"),
        (("--resume", "latest"), "holds no hunt yet"),
        (("--resume", "latest", "--seed", "3"), "leave out the options that describe a hunt"),
        (("--baseline", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_hunted_is_one_line(seamark: Seamark, arguments: tuple[str, ...], line: str) -> None:
    outcome = seamark("hunt", *arguments)
    assert outcome.code in {4, 64}
    assert line in outcome.line
