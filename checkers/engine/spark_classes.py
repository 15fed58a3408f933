"""An archive of Java's classes as Spark needs them: with it Spark starts in half of the time.

Run: python -m checkers.engine.spark_classes. Java writes the archive when it ends, and takes 160 MB for it. It belongs
to one Java and one PySpark, and lies in the environment of this Python. Java itself holds it against its classes, and
goes on without it if it does not fit.
"""

import os
import shutil
import sys
import tempfile
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

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


def write_archive() -> Path | None:
    """Start Spark, let it do what a check does, and keep the classes; where they are, or None if that cannot be."""
    from checkers.engine import spark  # noqa: PLC0415  It imports this module.
    from checkers.history.transactions import Append, Operation, Read, to_transactions  # noqa: PLC0415  Likewise.
    from checkers.transactions.check import check  # noqa: PLC0415  Likewise.

    file = archive()
    if file is None or " " in str(file) or not os.access(sys.prefix, os.W_OK):
        return None
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    stale = [Operation(0, 0, 0, 1, (Append(0, 1),)), Operation(1, 0, 0, 2, (Read(0, ()),))]
    with tempfile.TemporaryDirectory(prefix="seamark-classes-", ignore_cleanup_errors=True) as folder:
        session = spark.start_session(Path(folder), java_options=f"-XX:ArchiveClassesAtExit={new} {_QUIET}")
        check([to_transactions(stale[:1]), to_transactions(stale[1:])], spark.SparkEngine(session))
        spark.stop_java(session, _DUMP_S)
    if not new.is_file():
        return None
    for old in file.parent.glob("spark-*.jsa"):
        old.unlink()
    return new.replace(file)


if __name__ == "__main__":
    print(write_archive() or "no archive: Spark will start without it")  # noqa: T201  A command.
