"""What cannot be carried out as written: exit 64, and one line that says what to change."""

from importlib.metadata import version
from pathlib import Path

import pytest

from tests.command.conftest import Seamark


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run --sed 3", "--seed"),
        ("run --seed seven", "--seed"),
        ("run --seed -1", "seed is -1"),
        ("run --cluster tutoriel", "unknown cluster 'tutoriel'; did you mean tutorial?"),
        ("run --cluster tutorial --bug lost-akc", "lost-ack?"),
        ("run --nemesis partitoin", "partition?"),
        ("run --workload list-apend", "list-append?"),
        ("run --model serialisable", "serializable"),
        ("run --engine sprak", "spark?"),
        ("run --time 0", "time is 0"),
        ("run --time nan", "time is nan"),
        ("run --rate 0", "rate is 0"),
        ("run --clients 0", "clients is 0"),
        ("run --count 0", "count is 0"),
        ("run --jobs 0", "jobs is 0"),
        ("run --time-budget 0", "time_budget is 0"),
        ("run --runtime docker --twice", "--runtime sim"),
        ("run --plan nowhere.json", "nowhere.json"),
        ("run nowhere.toml", "nowhere.toml"),
        ("check", "'PATH...'"),
        ("check nowhere.edn", "nowhere.edn"),
        ("check . --engine local --master spark://a:1", "--engine local"),
        ("check . --master spark://a:1 --remote sc://a:1", "exclude each other"),
        ("check . --check-timeout 0", "--check-timeout"),
        ("check . --check-timeout inf", "--check-timeout"),
        (f"check {'a' * 300}", "cannot be read"),
        ("check . --html nowhere/page.html", "nowhere/page.html: cannot be written"),
        ("check . --html .", ".: is there, and no page"),
        ("check . --html /dev/null", "/dev/null: is there, and no page"),
        ("check . --model snapshoot", "did you mean snapshot-isolation?"),
        ("replay nowhere", "nowhere"),
        ("replay .", "run.json"),
        ("list --limit 0", "--limit"),
        ("clusters --jsn", "--json"),
        ("runn", "'run'"),
        ("run --isolation serializable", "ndb has no options"),
        ("run --cluster postgres-failover --runtime docker --bug lost-ack", "postgres-failover has no planted bugs"),
        ("check latest", "holds no run yet"),
        ("replay nightly/latest", "nightly holds no run yet"),
        ("hunt --cluster tutorial --baseline nowhere", "nowhere: there is no such sweep"),
        ("calibrate tutorial --compare nowhere.json", "nowhere.json: there is no such file"),
        ("calibrate tutorial --plans nowhere", "--plans nowhere: there is no such folder"),
        (f"list --store {__file__}", "a store is a folder"),
    ],
)
def test_what_a_person_mistyped_is_64_and_named(seamark: Seamark, tmp_path: Path, arguments: str, message: str) -> None:
    outcome = seamark(*arguments.split())
    assert (outcome.code, outcome.out) == (64, "")
    assert message in outcome.line
    assert list(tmp_path.iterdir()) == []  # Nothing was begun.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sede = 7", "seed?"),
        ('seed = "seven"', "nightly.toml: seed must be a whole number, and is a text"),
        ("bug = [7]", "bug"),
        ("seed = ", "TOML"),
        ("[seed]\n", "seed"),
        ('nemesis = "partitoin"', "partition?"),
        ("\x00", "TOML"),
    ],
)
def test_a_scenario_file_that_says_something_else_is_64(
    seamark: Seamark, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "nightly.toml").write_text(text, encoding="utf-8")
    outcome = seamark("run", "nightly.toml")
    assert (outcome.code, outcome.out) == (64, "")
    assert message in outcome.line
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("content", [b"[1, 2]", b"7", b"\xff\xfe", b"{", b"[" * 100_000])
def test_a_json_scenario_that_is_no_table_is_64(seamark: Seamark, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "nightly.json").write_bytes(content)
    outcome = seamark("run", "nightly.json")
    assert (outcome.code, outcome.out) == (64, "")
    assert "nightly.json" in outcome.line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "plan.json"),
        ('{"steps": 3}', "steps"),
        ('{"steps": [{"fault": "cut"}]}', "plan.json"),
        (
            '{"steps": [{"fault": "cutt", "package": "partition", "at_ns": 0, "until_ns": 9, "targets": ["n1>n2"]}]}',
            "'cut'",
        ),
        (
            '{"steps": [{"fault": "crash", "package": "crash", "at_ns": 0, "until_ns": 9, "targets": ["n7"]}]}',
            "n7",
        ),
        (
            '{"steps": [{"fault": "reorder", "package": "x", "at_ns": 0, "until_ns": 9, "targets": ["n1>n2"]}]}',
            "fifo",
        ),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_64(seamark: Seamark, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    outcome = seamark("run", "--cluster", "tutorial", "--plan", "plan.json", "--time", "6")
    assert (outcome.code, outcome.out) == (64, "")
    assert message in outcome.line
    assert not (tmp_path / "store").exists()


def test_a_run_json_repeats_one_run_only(seamark: Seamark, run_copy: Path) -> None:
    outcome = seamark("run", run_copy / "run.json", "--count", "3")
    assert (outcome.code, outcome.out) == (64, "")
    assert "--count" in outcome.line


def test_a_store_that_takes_nothing_is_64(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    for command in (("run", "--time", "6", "--engine", "local"), ("calibrate", "tutorial"), ("hunt", "--time", "6")):
        outcome = seamark(*command, "--quiet")
        assert (outcome.code, outcome.out) == (64, "")
        assert "--store" in outcome.line


def test_a_page_replaces_a_page_and_nothing_else(seamark: Seamark, tmp_path: Path) -> None:
    history, page = tmp_path / "history.edn", tmp_path / "page.html"
    history.write_text("{:type :ok, :f :txn, :value [[:append 1 1]]}")
    before = history.read_bytes()
    outcome = seamark("check", history, "--html", history)
    assert (outcome.code, outcome.out) == (64, "")
    assert "history.edn: is there, and no page" in outcome.line
    assert history.read_bytes() == before
    page.touch()
    for _ in range(2):
        assert seamark("check", history, "--html", page, "--quiet").code == 3
        assert page.read_bytes().startswith(b"<!doctype html>")


def test_an_error_points_to_the_help_of_its_own_command(seamark: Seamark) -> None:
    assert seamark("run", "--sed", "3").line.endswith("See seamark run --help.")
    assert seamark("check").line.endswith("See seamark check --help.")
    assert seamark("runn").line.endswith("See seamark --help.")


def test_no_command_is_no_pass_and_shows_the_help(seamark: Seamark) -> None:
    bare = seamark()
    assert (bare.code, bare.err) == (64, "")
    assert bare.out == seamark("-h").out == seamark("--help").out


def test_the_version_is_the_distribution_s(seamark: Seamark) -> None:
    shown = seamark("--version")
    assert (shown.code, shown.out, shown.err) == (0, f"seamark {version('seamark')}\n", "")


@pytest.mark.parametrize("command", ["run", "check", "replay", "list", "clusters", "doctor", ""])
def test_help_says_what_a_command_is_for(seamark: Seamark, command: str) -> None:
    outcome = seamark(*command.split(), "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Usage: seamark" in outcome.out
    assert "--help" in outcome.out


def test_a_working_folder_that_was_removed_is_64(
    seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    outcome = seamark("list")
    assert (outcome.code, "was removed: change into another one" in outcome.line) == (64, True)
