"""NATS JetStream in containers keeps its promises under faults, if servers sync before they acknowledge."""

import json
from pathlib import Path

import docker
import pytest
from pyarrow import parquet

from harness.core.record import BUSY
from tests.system.harnesses import seamark

pytestmark = pytest.mark.docker
# Its steps are late and shorter than a second: one that strikes the stream's leader, whichever that is, may stop all
# operations until an election.
PLAN = Path(__file__).with_name("plans") / "nats.json"
SEED = 5


def test_a_stream_of_three_replicas_keeps_all_promises_when_servers_lose_power_pause_and_are_cut_off(
    engine: docker.DockerClient, tmp_path: Path
) -> None:
    shape = ("--time", "8", "--rate", "60", "--seed", str(SEED), "--plan", str(PLAN), "--engine", "local")
    code, out, err = seamark(tmp_path, "run", "--cluster", "nats", "--runtime", "docker", *shape, "--json")
    assert code == 0, err + out[:2_000]
    promises = {each["id"]: each for each in json.loads(out)["promises"]}
    for name in ("NATS-1", "NATS-11", "NATS-12", "NATS-13", "NATS-14", "NATS-15"):
        assert promises[name]["verdict"] == "holds"
        assert promises[name]["witnesses"] >= 100
    [folder] = (tmp_path / "store" / "nats").iterdir()
    rows = parquet.read_table(folder / "history" / "faults.parquet").to_pylist()
    effects = [(row["kind"], row["effect"]) for row in rows if row["phase"] == "effect" and row["kind"] != BUSY]
    assert len(effects) == 3
    assert [each for each in effects if not each[1]] == []
