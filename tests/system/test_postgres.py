"""PostgreSQL in containers: it keeps its promises under faults, shows what they leave open, and a bug is found."""

import json
import subprocess
import sys
from pathlib import Path

import docker
import pytest
from pyarrow import parquet

from harness.core.record import Json
from harness.runtimes.containers.disks.loop import obstacle

pytestmark = pytest.mark.docker
PLANS = Path(__file__).with_name("plans")
LIMIT_S = 120
SEED = 5


@pytest.fixture(autouse=True)
def _engine(engine: docker.DockerClient) -> None:
    """Skipped without one."""


def run(store: Path, cluster: str, *options: str) -> dict[str, Json]:
    """The report of a run."""
    seamark = str(Path(sys.executable).with_name("seamark"))
    command = [seamark, "run", "--cluster", cluster, "--runtime", "docker", "--engine", "local", "--seed", str(SEED)]
    command += ["--store", str(store), "--rate", "150", "--clients", "6", *options]
    print(f"seed {SEED}:", *command)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    [folder] = (store / cluster).iterdir()
    assert (folder / "report.json").exists(), done.stdout + done.stderr
    report: dict[str, Json] = json.loads((folder / "report.json").read_text())
    return report | {"folder": str(folder)}


def planned(name: str) -> tuple[str, ...]:
    return "--plan", str(PLANS / f"{name}.json")


def found(report: dict[str, Json]) -> set[str]:
    findings = report["findings"]
    assert isinstance(findings, list)
    return {each["anomaly"] for each in findings}  # type: ignore[misc, call-overload, index]  # As in its schema.


def promises(report: dict[str, Json]) -> dict[str, tuple[str, int]]:
    """Of each promise its verdict and its witnesses."""
    listed = report["promises"]
    assert isinstance(listed, list)
    return {each["id"]: (each["verdict"], each["witnesses"]) for each in listed}  # type: ignore[misc, call-overload, index]  # As in its schema.


# A commit may be visible before one that is ahead of it in the log, so a watermark and a reader may disagree: the cycle
# has the reader's rw. clusters/postgres/promises.py has the reason, beside the promise.
LEGAL = {"G-single-watermark", "G-nonadjacent-watermark"}


@pytest.mark.alone
def test_serializable_transactions_and_their_stream_survive_kills_cuts_and_pauses(tmp_path: Path) -> None:
    report = run(tmp_path, "postgres", "--time", "8", *planned("postgres"))
    assert found(report) <= LEGAL
    result = promises(report)
    assert [name for name, (verdict, _) in result.items() if verdict == "violated"] == []
    for purpose in ("PG-1", "PG-12", "PG-13", "PG-14"):
        assert result[purpose][0] == "holds"
        assert result[purpose][1] >= 100
    faults = parquet.read_table(f"{report['folder']}/history/faults.parquet").to_pylist()
    effects = [(row["kind"], row["effect"], row["note"]) for row in faults if row["phase"] == "effect"]
    assert [each for each in effects if not each[1]] == []
    ops = parquet.read_table(f"{report['folder']}/history/ops.parquet").to_pylist()
    written = [row for row in ops if row["txn"] is not None and row["error"] is None]
    assert sum(row["commit_ts"] is None for row in written) * 100 <= len(written)


@pytest.mark.skipif(obstacle() is not None, reason=obstacle() or "")
def test_what_was_acknowledged_is_there_after_the_primary_has_lost_its_power(tmp_path: Path) -> None:
    report = run(tmp_path, "postgres", "--time", "7", *planned("postgres-power"))
    assert found(report) <= LEGAL
    assert promises(report)["PG-4"][0] == "holds"
    faults = parquet.read_table(f"{report['folder']}/history/faults.parquet").to_pylist()
    [effect] = [row for row in faults if row["phase"] == "effect" and row["kind"] == "power"]
    assert effect["effect"] == 1
    assert "n1: the unsynced file is gone, the synced one is there" in effect["note"]


def test_repeatable_read_shows_write_skew_and_no_more_where_serializable_is_asked_for(tmp_path: Path) -> None:
    # The workload makes neighbours overlap: 19 to 37 skews in 3 s. Drawn transactions have none on some machines.
    options = ("--isolation", "repeatable-read", "--workload", "write-skew", "--nemesis", "none", "--time", "3")
    report = run(tmp_path, "postgres", *options, "--model", "serializable")
    assert {"G2-item", "write-skew"} <= found(report)
    of_transactions = {name for name in found(report) if not name.endswith("-watermark")}  # Cuts in the same cycles.
    assert of_transactions <= {"write-skew", "G2-item", "G2-item-process", "G2-item-realtime"}
    assert report["exit_code"] == 1


def test_a_subscriber_that_confirms_before_it_keeps_loses_events_and_is_found(tmp_path: Path) -> None:
    options = ("--time", "4", "--bug", "confirm-before-store", *planned("postgres-subscribers"))
    report = run(tmp_path, "postgres", *options)
    assert "missing-event" in found(report)
    assert promises(report)["PG-13"][0] == "violated"
    assert promises(report)["PG-22"][0] == "violated"
    assert promises(report)["PG-1"][0] == "holds"


def test_a_failover_to_an_asynchronous_standby_shows_what_was_lost_and_blames_nobody(tmp_path: Path) -> None:
    report = run(tmp_path, "postgres-failover", "--time", "8", *planned("postgres-failover"))
    assert "lost-acknowledged" in found(report)
    assert promises(report)["PG-7"][0] == "holds"
    assert report["exit_code"] == 0
