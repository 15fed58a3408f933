"""Processes of Spark, started by its own scripts: a master with two workers of one core each, or a server."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
START_S = 240
# Each Java here lives for some seconds: a better compiler and a parallel collector cost more than they save.
BRIEF = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"}


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


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """The address of a master with two workers, all of whose logs go to that folder."""
    log = folder / "master.log"
    ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    worker = ("org.apache.spark.deploy.worker.Worker", "-c", "1", "-m", "1g", *ports)
    with started(log, CLASS, "org.apache.spark.deploy.master.Master", *ports):
        master = address(log, r"Starting Spark master at (spark://\S+)")
        one, other = folder / "one.log", folder / "other.log"
        with started(one, CLASS, *worker, master), started(other, CLASS, *worker, master):
            for each in (one, other):
                address(each, "(Successfully registered with master)")
            yield master
