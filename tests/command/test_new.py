"""`seamark new` writes what loads as it stands, and leaves alone what is there."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.scenario.consent import on_command_line
from harness.scenario.registry import load_cluster
from tests.command.conftest import Seamark


def test_what_is_written_is_a_cluster_under_its_name_and_the_next_command_is_told(
    seamark: Seamark, tmp_path: Path
) -> None:
    outcome = seamark("new", "book_shop")
    assert (outcome.code, outcome.err) == (0, "")
    assert "seamark run --cluster book_shop.py:book_shop --runtime docker" in outcome.out
    cluster = load_cluster(on_command_line(f"{tmp_path / 'book_shop.py'}:book_shop"))
    assert (cluster.name, [promise.id for promise in cluster.promises]) == ("book_shop", ["BOOK-SHOP-1"])
    text = (tmp_path / "book_shop.py").read_text(encoding="utf-8")
    assert "yours" not in text.replace("your own", "").replace("yours in its", "")
    assert "noqa" not in text
    assert "BOOK-SHOP-1" in seamark("clusters", "book_shop.py:book_shop").out


def test_a_file_that_is_there_stays_as_it_is(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("mine", encoding="utf-8")
    outcome = seamark("new", "shop")
    assert (outcome.code, outcome.line) == (
        64,
        "seamark: shop.py: already exists; not overwritten: choose another name",
    )
    assert (tmp_path / "shop.py").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["my-shop", "../shop", "class", "Shop", "1st", ""])
def test_what_cannot_name_a_file_and_a_function_is_refused(seamark: Seamark, tmp_path: Path, name: str) -> None:
    outcome = seamark("new", name)
    assert outcome.code == 64
    assert "is not a valid name" in outcome.line
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_an_installed_cluster_is_refused(seamark: Seamark) -> None:
    assert "'ndb' is installed already" in seamark("new", "ndb").line


def test_the_lesson_has_a_bug_that_its_own_words_mend(seamark: Seamark, tmp_path: Path) -> None:
    assert "the lesson" in seamark("new", "toy", "--tutorial").out
    file = tmp_path / "toy.py"
    text = file.read_text(encoding="utf-8")
    # The first line of the lesson's runs, with the seed that finds the bug.
    run = ("run", "--cluster", "toy.py:toy", "--time", "10", "--seed", "2", "--engine", "local")
    found = seamark(*run, "--json")
    assert found.code == 1
    assert "stale-acknowledged" in {each["anomaly"] for each in found.json["findings"]}  # type: ignore[index, call-overload, union-attr]
    wrong, better = "context.send(client, answer)\n", "self.waiting[self.count] = (client, answer)\n"
    assert (text.count(f"    {wrong}"), text.count(f"#     {better}")) == (1, 1)
    file.write_text(text.replace(f"                {wrong}", f"                {better}"), encoding="utf-8")
    assert seamark(*run).code == 0


def test_what_is_written_passes_the_type_checker(seamark: Seamark, tmp_path: Path) -> None:
    assert (seamark("new", "shop").code, seamark("new", "toy", "--tutorial").code) == (0, 0)
    files = [str(tmp_path / "shop.py"), str(tmp_path / "toy.py")]
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *files]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)
