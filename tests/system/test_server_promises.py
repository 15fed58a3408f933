"""Servers of NATS JetStream, Redis and Valkey keep their promises under faults, if they sync before they answer."""

import json
from pathlib import Path

import docker
import pytest
from pyarrow import parquet

from harness.core.record import BUSY
from tests.system.harnesses import seamark

pytestmark = pytest.mark.docker
# Their steps are late and shorter than a second: one that strikes the leader of a stream, whichever that is, may stop
# all operations until an election.
PLANS = Path(__file__).with_name("plans")
SEED = 5
NATS = ("NATS-1", "NATS-11", "NATS-12", "NATS-13", "NATS-14", "NATS-15")
REDIS = ("REDIS-1", "REDIS-2", "REDIS-3", "REDIS-11", "REDIS-12", "REDIS-13", "REDIS-16")
SENTINEL = ("REDIS-4", "REDIS-15")
KEPT = "NATS-13"
OK = 0


def is_of_an_unread_consumer(finding: dict[str, str]) -> bool:
    """True for the defect in docs/findings/nats-consumer-info.md, which one in twenty restarts may show."""
    return finding["promise"] == KEPT and finding["sentence"].startswith("The watermark at offset 0 was announced to ")


@pytest.mark.parametrize(
    ("cluster", "options", "names"),
    [
        ("nats", (), NATS),
        ("redis", ("--option", "server=redis"), REDIS),
        ("redis-sentinel", ("--option", "server=valkey"), SENTINEL),
    ],
    ids=["nats", "redis", "valkey with Sentinels"],
)
def test_all_promises_hold_when_servers_lose_power_pause_and_are_cut_off(
    engine: docker.DockerClient, tmp_path: Path, cluster: str, options: tuple[str, ...], names: tuple[str, ...]
) -> None:
    shape = ("--time", "8", "--rate", "60", "--seed", str(SEED), "--plan", str(PLANS / f"{cluster}.json"), *options)
    code, out, err = seamark(
        tmp_path, "run", "--cluster", cluster, "--runtime", "docker", *shape, "--engine", "local", "--json"
    )
    report = json.loads(out)
    unread = [each for each in report["findings"] if is_of_an_unread_consumer(each)]
    assert report["findings"] == unread, err + out[:2_000]
    assert code == bool(unread)
    promises = {each["id"]: each for each in report["promises"]}
    for name in names:
        assert promises[name]["verdict"] == ("violated" if unread and name == KEPT else "holds")
        assert promises[name]["witnesses"] >= 50
    [folder] = (tmp_path / "store" / cluster).iterdir()
    if names == SENTINEL:  # A replica took the place of the master that lost power.
        ops = parquet.read_table(folder / "history" / "ops.parquet", columns=["node", "outcome"]).to_pylist()
        assert len({each["node"] for each in ops if each["outcome"] == OK}) >= 2
    rows = parquet.read_table(folder / "history" / "faults.parquet").to_pylist()
    effects = [(row["kind"], row["effect"]) for row in rows if row["phase"] == "effect" and row["kind"] != BUSY]
    assert len(effects) == 3
    assert [each for each in effects if not each[1]] == []
