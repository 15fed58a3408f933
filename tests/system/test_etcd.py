"""etcd in containers: Debian's version keeps its promises under faults, but for the one of progress notifications."""

import json
from pathlib import Path

import docker
import pytest
from pyarrow import parquet

from harness.core.record import BUSY
from tests.system.harnesses import seamark

pytestmark = pytest.mark.docker
PLAN = Path(__file__).with_name("plans") / "etcd.json"
SEED = 5
LATE = {"late-event", "late-event-boundary", "state-mismatch", "torn-unit"}


def test_early_notifications_are_all_that_may_be_wrong_with_3_4_23_when_members_fail_are_replaced_and_restart(
    engine: docker.DockerClient, tmp_path: Path
) -> None:
    shape = ("--time", "14", "--rate", "100", "--seed", str(SEED), "--plan", str(PLAN), "--engine", "local")
    code, out, err = seamark(tmp_path, "run", "--cluster", "etcd", "--runtime", "docker", *shape, "--json")
    assert code in (0, 1), err + out[:2_000]
    report = json.loads(out)
    promises = {each["id"]: each for each in report["promises"]}
    # https://github.com/etcd-io/etcd/issues/15220: a notification was announced before events that it covers.
    # So the state at that notification lacks them (ETCD-19). Nothing else is broken.
    violated = {name for name, each in promises.items() if each["verdict"] == "violated"}
    found = {each["anomaly"] for each in report["findings"]}
    # A busy machine may hide it: docs/track-record.md counts how often it is found.
    assert violated <= {"ETCD-16", "ETCD-19"}
    assert {each for each in found if not each.endswith("-watermark")} <= LATE
    for name in ("ETCD-1", "ETCD-2", "ETCD-13"):
        assert promises[name]["verdict"] == "holds"
        assert promises[name]["witnesses"] >= 100
    [folder] = (tmp_path / "store" / "etcd").iterdir()
    rows = parquet.read_table(folder / "history" / "faults.parquet").to_pylist()
    effects = [(row["kind"], row["effect"]) for row in rows if row["phase"] == "effect" and row["kind"] != BUSY]
    assert len(effects) == 5
    assert [each for each in effects if not each[1]] == []
