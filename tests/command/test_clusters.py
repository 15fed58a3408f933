"""`seamark clusters`: which clusters, and in which form."""

from tests.command.conftest import Seamark


def test_one_cluster_is_described_when_one_is_named(seamark: Seamark) -> None:
    outcome = seamark("clusters", "tutorial", "--json")
    assert (outcome.code, list(outcome.json)) == (0, ["tutorial"])
    shown = seamark("clusters", "tutorial").out
    assert "TUT-1" in shown
    assert "NDB-G1" not in shown


def test_a_cluster_that_is_named_twice_is_described_once(seamark: Seamark) -> None:
    assert seamark("clusters", "tutorial", "tutorial").out == seamark("clusters", "tutorial").out


def test_the_page_in_markdown_is_of_the_clusters_named(seamark: Seamark) -> None:
    outcome = seamark("clusters", "tutorial", "--markdown")
    assert (outcome.code, outcome.err) == (0, "")
    assert "### TUT-1\n" in outcome.out
    assert "NDB-G1" not in outcome.out


def test_two_forms_at_once_are_64(seamark: Seamark) -> None:
    outcome = seamark("clusters", "--json", "--markdown")
    assert (outcome.code, outcome.out) == (64, "")
    assert "--json and --markdown exclude each other" in outcome.line


def test_a_cluster_that_does_not_exist_is_64_with_the_nearest(seamark: Seamark) -> None:
    outcome = seamark("clusters", "tutoriel", "--markdown")
    assert (outcome.code, outcome.out) == (64, "")
    assert "did you mean tutorial?" in outcome.line
