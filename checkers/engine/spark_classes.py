"""An archive of Java's classes as Spark needs them: with it Spark starts in half of the time.

`python -m harness.spark_archive` makes it. Java writes the archive when it ends, and takes 160 MB for it. It belongs to
one Java and one PySpark, and lies in the environment of this Python. Java itself holds it against its classes, and goes
on without it if it does not fit.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

from checkers.engine.datasets import Engine

_QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"  # What it leaves out, and why, is of no interest to anybody.
_DUMP_S: Final = 300


def archive() -> Path | None:
    """Where the archive is, or would be; None if there is no Java."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if java is None:
        return None
    real = Path(java).resolve()
    name = f"{real} {real.stat().st_mtime_ns} {version('pyspark')}"
    return Path(sys.prefix, "share", "seamark", f"spark-{sha256(name.encode()).hexdigest()[:16]}.jsa")


def java_options() -> str:
    """What Java is to be told, so that it uses the archive; nothing if there is none."""
    file = archive()
    # Java splits its options at blanks.
    if file is None or not file.is_file() or " " in str(file):
        return ""
    return f"-XX:SharedArchiveFile={file} {_QUIET}"


def write_archive(check: Callable[[Engine], object]) -> Path | None:
    """Start Spark, let it run a check, and keep the classes; where they are, or None if that cannot be."""
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
