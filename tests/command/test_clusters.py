"""`seamark clusters`: which clusters, and in which form."""

from pathlib import Path

from harness.scenario.consent import cluster_names
from tests.command.conftest import Seamark


def test_one_cluster_is_described_when_one_is_named(seamark: Seamark) -> None:
    outcome = seamark("clusters", "tutorial", "--json")
    assert (outcome.code, list(outcome.json)) == (0, ["tutorial"])
    shown = seamark("clusters", "tutorial").out
    assert "TUT-1" in shown
    assert "NDB-G1" not in shown


def test_a_cluster_that_is_named_twice_is_described_once(seamark: Seamark) -> None:
    assert seamark("clusters", "tutorial", "tutorial").out == seamark("clusters", "tutorial").out


def test_the_pages_in_markdown_are_of_the_clusters_named(seamark: Seamark, tmp_path: Path) -> None:
    outcome = seamark("clusters", "tutorial", "--markdown", "pages")
    assert (outcome.code, outcome.err) == (0, "")
    assert "## TUT-1\n" in (tmp_path / "pages" / "promises" / "tutorial.md").read_text(encoding="utf-8")
    assert "promises/tutorial.md" in (tmp_path / "pages" / "promises.md").read_text(encoding="utf-8")
    assert len(list((tmp_path / "pages").rglob("*.md"))) == 2


def test_a_folder_that_cannot_be_written_is_64(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "pages").write_text("a file")
    outcome = seamark("clusters", "tutorial", "--markdown", "pages")
    assert (outcome.code, outcome.out) == (64, "")
    assert "pages/promises.md: cannot be written (File exists): choose another folder" in outcome.line


def test_two_forms_at_once_are_64(seamark: Seamark) -> None:
    outcome = seamark("clusters", "--json", "--markdown", "pages")
    assert (outcome.code, outcome.out) == (64, "")
    assert "--json and --markdown exclude each other" in outcome.line


def test_a_cluster_that_does_not_exist_is_64_with_the_nearest(seamark: Seamark) -> None:
    outcome = seamark("clusters", "tutoriel", "--markdown", "pages")
    assert (outcome.code, outcome.out) == (64, "")
    assert "did you mean tutorial?" in outcome.line


def test_without_a_name_there_is_an_index(seamark: Seamark) -> None:
    shown = seamark("clusters").out
    names = [line.split()[0] for line in shown.splitlines() if not line.startswith(" ")]
    assert names[:-1] == sorted(cluster_names())
    assert {"ndb", "postgres"} <= set(names)
    assert "NDB-G1" not in shown
