"""A config says all that is wrong with it in one line, before anything runs."""

from pathlib import Path

import pytest

from harness.campaign.config import read_config
from harness.core.errors import ScenarioError

GOOD = """
name = "nightly"
seed = 7
count = 20
time = 10.0
[[matrix]]
clusters = ["ndb", "tutorial"]
workloads = ["list-append", "bank"]
faults = ["usual", "partition, crash", "none"]
[[matrix]]
clusters = ["tutorial"]
count = 3
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "nightly.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_matrix_is_a_product_and_the_top_has_its_defaults(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, GOOD.replace('"ndb", ', "")))
    assert [(cell.workload, cell.faults, cell.count, cell.scenario.time_s) for cell in config.cells] == [
        ("list-append", "usual", 20, 10.0),
        ("list-append", "partition, crash", 20, 10.0),
        ("list-append", "none", 20, 10.0),
        ("bank", "usual", 20, 10.0),
        ("bank", "partition, crash", 20, 10.0),
        ("bank", "none", 20, 10.0),
        ("any", "usual", 3, 10.0),
    ]
    assert (config.planned, config.min_runs, config.seed) == (123, 123, 7)
    assert [cell.scenario.nemesis for cell in config.cells[:3]] == [None, ("partition", "crash"), ()]


def test_another_first_seed_is_another_config(tmp_path: Path) -> None:
    path = written(tmp_path, 'clusters = ["tutorial"]')
    one, other = read_config(path), read_config(path, seed=100)
    assert (one.name, other.seed) == ("nightly", 100)
    assert one.sha256 != other.sha256


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("cluster = ['ndb']", "{path}: unknown option 'cluster'; did you mean clusters?"),
        ("[[matrix]]\nseed = 3", "{path}: unknown option of a matrix 'seed'; choose from"),
        ("clusters = ['ndbb']", "unknown cluster 'ndbb'; did you mean ndb?"),
        (
            "clusters = ['tutorial']\nworkloads = ['bnk']",
            "{path}: unknown workload of tutorial 'bnk'; did you mean bank?",
        ),
        ("clusters = ['tutorial']\nfaults = ['partion']", "{path}: unknown fault of tutorial 'partion'; did you mean"),
        (
            "clusters = ['tutorial']\nbug = ['lost-ak']",
            "{path}: unknown bug of tutorial 'lost-ak'; did you mean lost-ack",
        ),
        ("runtimes = ['dcker']", "{path}: unknown runtimes 'dcker'; did you mean docker?"),
        ("keep = 'green'", "{path}: unknown keep 'green'; did you mean red?"),
        ("clusters = ['ndb']\ncount = 0", "{path}: count is 0: it must be from 1"),
        ("count = 'many'", "{path}: count must be a whole number, and is a text"),
        ("clusters = []", '{path}: clusters are not named, or none: write, for instance, clusters = ["ndb"]'),
        ("", "{path}: clusters are not named"),  # A file that was cut short tests nothing, and must not pass.
        ("clusters = 'ndb'", "{path}: clusters must be a list, and is a text"),
        ("clusters = ['nbd']", "{path}: unknown cluster 'nbd'; did you mean ndb?"),
        ("clusters = ['ndb']\ntime_budget = 60", "{path}: time_budget may end the sweep early: say with min_runs"),
        ("clusters = ['ndb']\nmin_runs = 51", "{path}: min_runs is 51: it must be from 1 to the 50 runs of the sweep"),
        ("clusters = ['ndb']\nname = '../up'", "{path}: name is '../up': use letters"),
        ("clusters = ['ndb']\ntime = 0", "{path}: time is 0.0: it must be from 1 to 86400"),
        ("clusters = ['postgres']", "{path}: postgres is made of real servers, which cannot be simulated"),
        ("matrix = 3", "{path}: matrix must be tables"),
        ("clusters = [", "{path}: not valid TOML"),
        ("clusters = ['mine.py:Mine']", "{path}: its cluster is code in a file: if that may be run, add --cluster"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, line: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ScenarioError) as raised:
        read_config(path)
    assert line.format(path=path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_code_in_a_file_needs_the_consent_of_the_command_line(tmp_path: Path) -> None:
    own = tmp_path / "mine.py"
    own.write_text("from clusters.tutorial import Cluster as Mine\nmine = Mine()\n", encoding="utf-8")
    path = written(tmp_path, f"clusters = ['{own}:mine']")
    config = read_config(path, allowed=[f"{own}:mine"])
    assert config.code_of(config.cells[0]).place is not None
    own.write_text("from clusters.tutorial import Cluster as Mine\nmine = Mine()\n\n", encoding="utf-8")
    assert read_config(path, allowed=[f"{own}:mine"]).sha256 != config.sha256
