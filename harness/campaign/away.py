"""Runs on the executors of an existing Spark cluster: one run is one task, and its result is a row.

All code of Seamark travels there as one archive. A task unpacks it into a temporary folder, carries the run out in a
process of its own, and sends the row, with the run's folder if that is to be kept; the driver puts it into the store.
The executors need Python and the packages that Seamark needs, and nothing of ours.
"""

import io
import os
import pickle
import subprocess
import sys
import tarfile
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import harness
from harness.record.ownership import temporary_folder

PACKAGES: Final = ("harness", "nemesis", "checkers", "clusters")
SUFFIXES: Final = (".py", ".html")
LOG_MAX: Final = 2_000  # The number of last characters quoted from a process that failed.


def archive(folder: Path) -> Path:
    """A zip file of all our code and the names of our clusters, named by its content."""
    root = Path(harness.__file__ or "").parents[1]
    own = distribution("seamark")
    info = f"seamark-{own.version}.dist-info"
    files = [(f"{info}/{name}", (own.read_text(name) or "").encode()) for name in ("METADATA", "entry_points.txt")]
    for package in PACKAGES:
        found = sorted(path for path in (root / package).rglob("*") if path.suffix in SUFFIXES)
        files += [(path.relative_to(root).as_posix(), path.read_bytes()) for path in found]
    digest = sha256(b"".join(name.encode() + b"\0" + content for name, content in files)).hexdigest()[:16]
    target = folder / f"seamark-all-{digest}.zip"
    with ZipFile(target, "w", ZIP_DEFLATED) as packed:
        for name, content in files:
            packed.writestr(ZipInfo(name), content)
    return target


def there(message: bytes) -> bytes:
    """Carry out a pickled task on an executor, in a child process.

    Returns a pickled pair: the row and the run's archive, or None and the reason why there is no row.
    """
    with temporary_folder("away") as folder:
        place = Path(harness.__file__ or "").parents[1]
        code = place
        if place.is_file():
            code = folder / "code"
            with ZipFile(place) as packed:
                packed.extractall(code)  # noqa: S202  Our own, and a zip file's names stay below the folder.
        env = os.environ | {"PYTHONPATH": str(code)}
        command = [sys.executable, "-P", "-m", "harness.campaign.away", str(folder)]
        done = subprocess.run(command, input=message, capture_output=True, env=env, check=False, cwd=folder)  # noqa: S603  Our own module.
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode(errors="replace").strip()[-LOG_MAX:].splitlines()
    reason = said[-1] if said and done.returncode > 0 else f"it was killed by signal {-done.returncode}"
    return pickle.dumps((None, f"on an executor: {reason}"))


def _carry_out(folder: Path) -> None:
    """Carry out the task on standard input. Its answer goes to standard output."""
    from harness.campaign.task import away  # noqa: PLC0415  A worker of Spark only forwards, and need not load it.
    from harness.runtimes.child import die_with_parent  # noqa: PLC0415  Likewise.

    die_with_parent()
    answers = os.dup(1)
    os.dup2(2, 1)  # Everything else that is printed goes to the log.
    task = pickle.loads(sys.stdin.buffer.read())  # noqa: S301  The driver's own.
    row, run = away(task, folder)
    content = _packed(run) if run is not None else b""
    with os.fdopen(answers, "wb") as output:
        output.write(pickle.dumps((row, content)))


def _packed(run: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as packed:
        packed.add(run, arcname=f"{run.parent.name}/{run.name}")
    return buffer.getvalue()


if __name__ == "__main__":
    _carry_out(Path(sys.argv[1]))
