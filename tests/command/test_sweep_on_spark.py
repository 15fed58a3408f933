"""A sweep on a standalone cluster of Spark comes to the verdicts and the histories of one in processes here."""

from pathlib import Path

import pytest

from harness.campaign.document import read_sweep
from harness.campaign.evidence import kept_in
from tests.command.conftest import Seamark
from tests.worlds.spark_cluster import standalone

pytestmark = pytest.mark.spark

CONFIG = """
name = "nightly"
seed = 9
time = 8.0
count = 1
clusters = ["tutorial"]
bug = ["late-row"]
"""


def test_a_standalone_cluster_makes_the_same_histories(tmp_path: Path, seamark: Seamark) -> None:
    config = tmp_path / "nightly.toml"
    config.write_text(CONFIG, encoding="utf-8")
    assert seamark("sweep", config, "--store", "here", "--jobs", "1", "--quiet").code == 1
    with standalone(tmp_path) as master:
        outcome = seamark("sweep", config, "--store", "there", "--on", master, "--quiet")
    assert outcome.code == 1, outcome.err
    (here,), (there,) = ((tmp_path / name / "sweeps" / "nightly").iterdir() for name in ("here", "there"))
    assert read_sweep(there).trouble == ()
    assert read_sweep(there).history_sha256 == read_sweep(here).history_sha256
    red = [row.report for row in kept_in(there)[1].rows if row.report.verdict == "invalid"]
    assert red
    for report in red:
        assert report.run is not None
        assert seamark("check", report.run, "--engine", "local").code == 1
        assert (tmp_path / report.run / "report.html").is_file()
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["sweeps", "tutorial"]


def test_an_address_at_which_no_spark_answers_is_refused_before_anything_is_made(seamark: Seamark) -> None:
    outcome = seamark("sweep", "nightly.toml", "--on", "yarn")
    assert outcome.code == 64
    assert "must be spark://HOST:PORT, or sc://HOST:PORT" in outcome.line
    outcome = seamark("calibrate", "ndb", "--on", "spark://127.0.0.1:1")
    assert outcome.code == 4
    assert "no Spark answers there (127.0.0.1:1: Connection refused); start it, or leave --on out" in outcome.line
    assert not Path("store").exists()
