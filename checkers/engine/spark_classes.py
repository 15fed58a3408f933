"""An archive of the Java classes that Spark needs, with which Spark starts in half of the time.

`python -m harness.judging.spark_archive` makes it. Java writes the archive, 160 MB, when it ends. It belongs to one
version of Java and of PySpark, and is stored in the environment of this Python. Java compares it with its classes, and
ignores it if it does not fit.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

from checkers.engine.datasets import Engine

_QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"  # Do not print the classes that Java leaves out.
_DUMP_S: Final = 300


def java_program() -> Path | None:
    """The Java that Spark starts; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    return None if found is None else Path(found)


def archive() -> Path | None:
    """The path of the archive, even if it does not exist yet; None if there is no Java."""
    java = java_program()
    if java is None:
        return None
    real = java.resolve()
    from importlib.metadata import version  # noqa: PLC0415  To find Java needs none.

    name = f"{real} {real.stat().st_mtime_ns} {version('pyspark')}"
    return Path(sys.prefix, "share", "seamark", f"spark-{sha256(name.encode()).hexdigest()[:16]}.jsa")


def java_options() -> str:
    """The options with which Java uses the archive; empty if there is none."""
    file = archive()
    # Java splits its options at blanks.
    if file is None or not file.is_file() or " " in str(file):
        return ""
    return f"-XX:SharedArchiveFile={file} {_QUIET}"


def write_archive(check: Callable[[Engine], object]) -> Path | None:
    """Start Spark, run a check on it, and return the path of the new archive; None if it cannot be written."""
    from checkers.engine import spark  # noqa: PLC0415  It imports this module.

    file = archive()
    if file is None or " " in str(file) or not os.access(sys.prefix, os.W_OK):
        return None
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="seamark-classes-", ignore_cleanup_errors=True) as folder:
        session = spark.start_session(Path(folder), java_options=f"-XX:ArchiveClassesAtExit={new} {_QUIET}")
        check(spark.SparkEngine(session))
        spark.stop_java(session, _DUMP_S)
    if not new.is_file():
        return None
    for old in file.parent.glob("spark-*.jsa"):
        old.unlink()
    return new.replace(file)
