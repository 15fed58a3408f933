"""A standalone cluster of Spark and a Connect server come to the verdict and the fingerprints of the threads.

Both are started here by Spark's own scripts: a master with two workers of one core each, and a server.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pyspark
import pytest

from harness.core.record import Json
from tests.bench import generated

pytestmark = pytest.mark.spark

CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
START_S = 240
# Each Java here lives for some seconds: a better compiler and a parallel collector cost more than they save.
BRIEF = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"}
SAME = ("verdict", "findings", "promises", "facts", "history_sha256", "operations")


@contextmanager
def started(log: Path, *command: str | Path) -> Iterator[None]:
    """A process of Spark, as long as the context lasts."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    env |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    env |= {"PYSPARK_PYTHON": sys.executable, "SPARK_WORKER_DIR": str(log.parent / "work"), **BRIEF}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env, cwd=log.parent)
        try:
            yield
        finally:
            process.terminate()
            process.wait(START_S)


def address(log: Path, pattern: str) -> str:
    """What a process says about its address, once it says so."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.2)
    raise AssertionError(log.read_text(errors="replace")[-2000:])


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
    log = tmp_path / "master.log"
    ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    worker = ("org.apache.spark.deploy.worker.Worker", "-c", "1", "-m", "1g", *ports)
    with started(log, CLASS, "org.apache.spark.deploy.master.Master", *ports):
        master = address(log, r"Starting Spark master at (spark://\S+)")
        one, other = tmp_path / "one.log", tmp_path / "other.log"
        with started(one, CLASS, *worker, master), started(other, CLASS, *worker, master):
            for each in (one, other):
                address(each, "(Successfully registered with master)")
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
