"""A standalone cluster of Spark and a Connect server come to the verdict and the fingerprints of the threads.

Both are started here by Spark's own scripts: a master with two workers of one core each, and a server.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from harness.core.record import Json
from tests.bench import generated
from tests.worlds.spark_cluster import BRIEF, START_S, SUBMIT, address, standalone, started

pytestmark = pytest.mark.spark

SAME = ("verdict", "findings", "promises", "facts", "history_sha256", "operations")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted") / "history"
    shape = generated.Shape(count=30_000, stale_permille=1, planted=1)
    generated.write_slices(folder, generated.slices(shape, slice_ops=6_000))
    return folder


def judged(history: Path, *options: str) -> dict[str, Json]:
    """What the installed command says: each in a process of its own, as sessions of Spark do not agree in one."""
    command = [str(Path(sys.executable).with_name("seamark")), "check", str(history), "--json", *options]
    env = os.environ | BRIEF
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * START_S, env=env)
    assert done.returncode == 1, done.stderr
    report = msgspec.json.decode(done.stdout, type=dict[str, Json])
    return {name: report[name] for name in SAME}


def test_a_standalone_cluster_comes_to_the_findings_of_the_threads(history: Path, tmp_path: Path) -> None:
    with standalone(tmp_path) as master:
        assert judged(history, "--master", master) == judged(history, "--engine", "local")


@pytest.mark.skipif(find_spec("grpc") is None, reason="Spark Connect needs grpcio, grpcio-status and zstandard")
def test_a_connect_server_comes_to_the_findings_of_the_threads(history: Path, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]")
    settings = ("spark.connect.grpc.binding.port=0", "spark.ui.enabled=false", f"spark.local.dir={tmp_path}")
    options = [word for setting in settings for word in ("--conf", setting)]
    with started(log, SUBMIT, *server, *options, "spark-internal"):
        port = address(log, r"Spark Connect server started at: \S*?:(\d+)")
        assert judged(history, "--remote", f"sc://127.0.0.1:{port}") == judged(history, "--engine", "local")
