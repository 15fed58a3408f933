"""The engine on Spark: the same kernels, one message at a time.

Classic Spark runs them by RDDs (checkers/engine/spark_rdd.py), Spark Connect by data frames (spark_frames.py).
"""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, Final, TypeAlias, TypeVar
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from pyspark import SparkConf, SparkContext, SparkFiles, java_gateway
from pyspark.sql import SparkSession

import checkers
import harness.core
from checkers.engine import spark_classes, spark_daemon, spark_frames, spark_rdd
from checkers.engine.datasets import Dataset

T = TypeVar("T")
Session: TypeAlias = SparkContext | SparkSession  # Classic Spark, or Spark Connect.

_SPREAD: Final = "spark.sql.shuffle.partitions"
_PUBLIC: Final = "seamark/__init__.py"
# A package whose other modules stay where they are installed.
_PARENT: Final = b"__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
_POPEN: Final[Any] = java_gateway.Popen
_JAVAS: Final[list[Any]] = []  # Processes started here.
_CONTEXT_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.maxResultSize": "0",
    "spark.driver.memory": "1g",
    "spark.serializer.objectStreamReset": "1",  # Else Java keeps the last hundred records, each of many megabytes.
}
# Short jobs: a better compiler and a parallel collector cost more than they save.
_JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_CONNECT_SETTINGS: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",  # A record may hold tens of megabytes.
    "spark.sql.adaptive.enabled": "false",
}


def start_session(
    work_dir: Path,
    master: str | None = None,
    remote: str | None = None,
    *,
    loaded: Sequence[str] = (),
    java_options: str | None = None,
    package: Path | None = None,
) -> Session:
    """A Spark session with our code on its workers. Spark's own files go below `work_dir`.

    `package` is the archive of that code, by default that of the checkers. `loaded` names the modules of the kernels
    to come: local workers are forked from a process that has imported them.

    Without `master` (spark://...) and `remote` (sc://...) Spark runs here on all cores, on the loopback interface, and
    ignores any installation or configuration of the user's. `java_options` replace the options for the class archive.
    Java's output goes to spark.log. Raises whatever Spark raises if it cannot start.
    """
    work_dir.mkdir(parents=True, exist_ok=True)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master is None and remote is None:
        _require_our_own()
    if remote is not None:
        return _connected(remote, package or packed(work_dir))
    conf = SparkConf().setAppName("seamark").setMaster(master or "local[*]")
    conf.setAll(list(_CONTEXT_SETTINGS.items()))
    if master is None:
        options = spark_classes.java_options() if java_options is None else java_options
        conf.setAll(list(_local_settings(work_dir, options, loaded).items()))
    with (work_dir / "spark.log").open("ab") as log:
        java_gateway.Popen = _launched
        # pyspark has no other way to keep Java's own output off the screen.
        try:
            gateway = SparkContext._gateway or java_gateway.launch_gateway(conf, {"stderr": log})
        except Exception:
            give_up()
            raise
    context = SparkContext(conf=conf, gateway=gateway)
    context.setLogLevel("ERROR")
    context.addPyFile(str(package or packed(work_dir)))
    if master is None:
        ThreadPoolExecutor(1).submit(_begin_forking, context)
    else:
        _begin_forking(context)  # After it Spark knows the cluster's executors, and so how many tasks run at once.
    return context


def _require_our_own() -> None:
    """Set the environment so that Spark is the one that came with pyspark, and stays on this machine."""
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS"):
        os.environ.pop(name, None)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYTHONSAFEPATH"] = "1"  # Else workers would import files of the folder where the command was given.
    # For the first Java process, which only computes the command line of the second.
    os.environ["SPARK_LAUNCHER_OPTS"] = _JAVA_OPTIONS


def give_up() -> None:
    """Kill every Java process started here, and its children: one that is still starting would go on without us."""
    while _JAVAS:
        java = _JAVAS.pop()
        if java.poll() is None:  # The process id of one that has ended may belong to another process by now.
            with suppress(ProcessLookupError):
                os.killpg(java.pid, signal.SIGKILL)
            java.wait()
        if java.stdin is not None:
            java.stdin.close()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None


def _launched(*arguments: Any, **named: Any) -> Any:
    """A `Popen` that pyspark calls in place of its own.

    It keeps the process, which pyspark hides until Java answers.
    """
    # A group of its own: until the script becomes Java, it has children.
    java = _POPEN(*arguments, **named, process_group=0)
    _JAVAS.append(java)
    return java


def _begin_forking(context: SparkContext) -> None:
    """Start the process that forks workers: it imports for half a second, while this one sends the first items."""
    with suppress(Exception):  # The first check's job meets the same trouble, and reports it.
        context.parallelize([0], 1).map(abs).collect()


def _connected(remote: str, package: Path) -> SparkSession:
    """A session on a Connect server, which gets our code as an artifact."""
    builder = SparkSession.builder.remote(remote)
    for key, value in _CONNECT_SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.addArtifacts(str(package), pyfile=True)
    session.conf.set(_SPREAD, str(_task_count(session)))
    return session


def _task_count(session: SparkSession) -> int:
    """The number of tasks that the cluster is known to run at once: it cuts a range into that many partitions."""
    return 1 + max(int(row[0]) for row in session.range(1 << 12).selectExpr("spark_partition_id()").collect())


def stop_java(session: Session, timeout_s: float) -> None:
    """Stop a local session and its Java process, which would otherwise live as long as this process."""
    java = session._gateway.proc
    session.stop()
    java.stdin.close()
    java.wait(timeout_s)
    SparkContext._gateway = SparkContext._jvm = None  # The next session starts a new one.


def stop(session: Session) -> None:
    """Stop a local session. Its Java process ends with this process, which ends soon."""
    # Stopping the thread of accumulators, which we do not use, takes up to a second: it is left running.
    session._accumulatorServer = None
    session.stop()


def warm_up(session: Session) -> None:
    """Run a job that loads everything a check needs, so that the first check does not wait for it."""
    engine = SparkEngine(session)
    engine.over(range(engine.parallelism)).shuffle(_echo, _count, partitions=engine.parallelism).collect()


def packed(folder: Path) -> Path:
    """A zip file of harness/core, checkers, and seamark's names, called by its content: one name means one code."""
    files = [file for module in (harness.core, checkers) for file in _files(module)]
    public = Path(checkers.__file__ or "").parents[1] / _PUBLIC  # Modules of checks may import from it.
    return _zipped([*files, ("harness/__init__.py", b""), (_PUBLIC, public.read_bytes())], folder)


def _zipped(files: Sequence[tuple[str, bytes]], folder: Path) -> Path:
    target = folder / _package_name(files)
    with ZipFile(target, "w", ZIP_STORED) as archive:
        for name, content in files:
            archive.writestr(ZipInfo(name), content)
    return target


def _package_name(files: Sequence[tuple[str, bytes]]) -> str:
    digest = sha256(b"".join(name.encode() + b"\0" + content for name, content in files))
    return f"seamark-{digest.hexdigest()[:16]}.zip"


def _with_parents(files: Mapping[str, bytes]) -> list[tuple[str, bytes]]:
    """The files, with an empty package for each that they are in: the real one may import all of a system."""
    parents = {f"{parent}/__init__.py": _PARENT for name in files for parent in PurePosixPath(name).parents}
    parents.pop("./__init__.py", None)
    return sorted({**parents, **files}.items())


def _files(module: ModuleType) -> Iterator[tuple[str, bytes]]:
    """The files of a package or module: each one's name in an archive that Python can import from, and its bytes."""
    source = Path(module.__file__ or "")
    is_package = source.name == "__init__.py"
    depth = module.__name__.count(".") + is_package
    top = source.parents[depth]
    for path in sorted(source.parent.rglob("*.py")) if is_package else [source]:
        yield path.relative_to(top).as_posix(), path.read_bytes()


class SparkEngine:
    """Kernels in the tasks of a Spark session, classic or Connect."""

    name = "spark"
    checks_at_once = 2  # While one computes in the driver, the other one's jobs run.

    def __init__(self, session: Session) -> None:
        self._session = session
        self._carried: set[str] = set()

    @property
    def parallelism(self) -> int:
        """The number of kernels that run at once."""
        if isinstance(self._session, SparkContext):
            return int(self._session.defaultParallelism)
        return int(str(self._session.conf.get(_SPREAD)))  # Connect has no context that knows it.

    def over(self, items: Sequence[T]) -> Dataset[T]:
        """The items as a dataset with one partition per item."""
        if isinstance(self._session, SparkContext):
            return spark_rdd.over(self._session, items)
        return spark_frames.over(self._session, items, self.parallelism)

    def carry(self, files: Mapping[str, bytes]) -> None:
        """Send these modules to the executors, once, in a zip file that is named by its content."""
        found = _with_parents(files)
        name = _package_name(found)
        if name not in self._carried:
            _send(self._session, found)
            self._carried.add(name)


def _send(session: Session, files: Sequence[tuple[str, bytes]]) -> None:
    if not isinstance(session, SparkContext):
        with tempfile.TemporaryDirectory(prefix="seamark-carried-") as folder:
            session.addArtifacts(str(_zipped(files, Path(folder))), pyfile=True)
        return
    carried = Path(SparkFiles.getRootDirectory(), "carried")  # Executors fetch it later.
    carried.mkdir(exist_ok=True)
    session.addPyFile(str(_zipped(files, carried)))


def _local_settings(work_dir: Path, java_options: str, loaded: Sequence[str]) -> dict[str, str]:
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(work_dir),
        # Our blobs are narrow, and go no further than to this machine's disk.
        "spark.shuffle.compress": "false",
        "spark.driver.extraJavaOptions": f"{_JAVA_OPTIONS} {java_options}",
        # When it forks a worker, it has imported all that kernels need.
        "spark.python.daemon.module": spark_daemon.__name__,
        f"spark.executorEnv.{spark_daemon.LOADED}": " ".join(loaded),
    }


def _echo(item: int) -> list[tuple[int, int]]:
    return [(item, item)]


def _count(items: Sequence[int]) -> int:
    return len(items)
