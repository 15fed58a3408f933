"""The same commands with Spark on this machine, which judges a small history only where it is named."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness.core.record import Json
from tests.command.conftest import USUAL, Outcome, Seamark

pytestmark = pytest.mark.spark
LIMIT_S = 480


@pytest.fixture
def installed(tmp_path: Path) -> Seamark:
    """`seamark ARGUMENTS` in a process of its own: in this one a session of Spark may be open.

    Its folder holds a file with the name of a module that the workers import.
    """
    (tmp_path / "pandas.py").write_text("raise SystemExit('a file of the working folder was imported')\n", "utf-8")

    def command(*arguments: str | Path) -> Outcome:
        words = (Path(sys.executable).with_name("seamark"), *arguments)
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        return Outcome(done.returncode, done.stdout, done.stderr)

    return command


def test_spark_comes_to_the_findings_of_the_threads(installed: Seamark) -> None:
    lossy = ("--cluster", "tutorial", "--bug", "lost-ack", "--nemesis", "partition", "--time", "12", "--seed", "1")
    ran = installed("run", *lossy, "--json")
    assert ran.code == 1
    again = installed("check", str(ran.json["run"]), "--engine", "spark", "--json")
    assert again.code == 1
    assert (ran.json["engine"], again.json["engine"]) == ("local", "spark")
    for name in ("findings", "promises", "verdict", "reason", "history_sha256"):
        assert again.json[name] == ran.json[name]


def test_a_red_run_of_a_batch_is_judged_again_by_spark(installed: Seamark) -> None:
    lossy = (
        *USUAL,
        "--cluster",
        "tutorial",
        "--bug",
        "late-row",
        "--time",
        "12",
        "--seed",
        "1",
        "--count",
        "2",
        "--until-found",
    )
    batch = installed("run", *lossy, "--json")
    assert batch.code == 1
    reports = msgspec.convert(batch.json["runs"], list[dict[str, Json]])
    assert reports[0]["verdict"] == "invalid"
