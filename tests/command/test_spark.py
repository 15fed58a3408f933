"""The same commands with the engine that is the default."""

import msgspec
import pytest

from harness.core.record import Json
from tests.command.conftest import Seamark

pytestmark = pytest.mark.spark


def test_spark_comes_to_the_findings_of_the_threads(seamark: Seamark) -> None:
    lossy = ("--cluster", "tutorial", "--bug", "lost-ack", "--nemesis", "partition", "--time", "12", "--seed", "1")
    ran = seamark("run", *lossy, "--json")
    assert ran.code == 1
    again = seamark("check", str(ran.json["run"]), "--engine", "local", "--json")
    assert again.code == 1
    for name in ("findings", "promises", "verdict", "reason", "history_sha256"):
        assert again.json[name] == ran.json[name]


def test_a_red_run_of_a_batch_is_judged_again_by_spark(seamark: Seamark) -> None:
    lossy = (
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
    batch = seamark("run", *lossy, "--json")
    assert batch.code == 1
    reports = msgspec.convert(batch.json["runs"], list[dict[str, Json]])
    assert reports[0]["verdict"] == "invalid"
