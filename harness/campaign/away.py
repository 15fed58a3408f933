"""Runs on the executors of an existing Spark cluster: one run is one task, and its result is a row.

All code of Seamark travels there as one archive. A process beside each worker carries out the worker's runs, each in a
temporary folder. A task returns the row, and the run's folder if that is to be kept: the driver puts it into the store.
The executors need Python and the packages that Seamark needs, and nothing of ours.
"""

import io
import os
import pickle
import shutil
import subprocess
import sys
import tarfile
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryFile, mkdtemp
from typing import IO, Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import harness
from harness.record.ownership import temporary_folder

PACKAGES: Final = ("harness", "nemesis", "checkers", "clusters")
SUFFIXES: Final = (".py", ".html")
LENGTH: Final = 8  # The bytes of a message's length.
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
    """Carry out a pickled task on an executor.

    Returns a pickled pair: the row and the run's archive, or None and the reason why there is no row.
    """
    try:
        return _child().answer(message)
    except ChildProcessError as error:
        _child.cache_clear()
        return pickle.dumps((None, f"on an executor: {error}"))


class _Child:
    """The process beside a worker of Spark that carries out its tasks, one after another. It ends with the worker."""

    def __init__(self, code: Path) -> None:
        self._log = TemporaryFile()  # noqa: SIM115  It lives as long as the process.
        command = [sys.executable, "-P", "-m", "harness.campaign.away"]
        env = os.environ | {"PYTHONPATH": str(code)}
        self._process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=self._log, env=env)  # noqa: S603  Our own module.

    def answer(self, message: bytes) -> bytes:
        """The answer to a pickled task. Raises ChildProcessError with the reason if the process ends before it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            _send(self._process.stdin, message)
            return _received(self._process.stdout)
        except (BrokenPipeError, EOFError):
            raise ChildProcessError(self._last_words()) from None

    def close(self) -> None:
        """End the process. No run may be in progress."""
        self._process.communicate()
        self._log.close()

    def _last_words(self) -> str:
        """The reason why the process has ended."""
        self._process.communicate()
        code = self._process.returncode
        with self._log as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_MAX))
            said = log.read().decode(errors="replace").strip().splitlines()
        return said[-1] if said and code >= 0 else f"it was killed by signal {-code}"


@cache
def _child() -> _Child:
    return _Child(_code(Path(harness.__file__ or "").parents[1]))


def _code(place: Path) -> Path:
    """The folder of our code. An archive is unpacked beside itself, once for each executor, as Python keeps what it
    compiles only in folders.
    """
    if not place.is_file():
        return place
    code = place.with_suffix("")
    if code.is_dir():
        return code
    unpacked = Path(mkdtemp(dir=place.parent))
    with ZipFile(place) as packed:
        packed.extractall(unpacked)  # noqa: S202  Our own, and a zip file's names stay below the folder.
    try:
        unpacked.rename(code)
    except OSError:  # Another worker of the executor was faster.
        shutil.rmtree(unpacked)
    return code


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(len(message).to_bytes(LENGTH, "big") + message)
    pipe.flush()


def _received(pipe: IO[bytes]) -> bytes:
    """The next message of a pipe. Raises EOFError if it ends before that."""
    head = pipe.read(LENGTH)
    message = pipe.read(int.from_bytes(head, "big"))
    if len(head) < LENGTH or len(message) < int.from_bytes(head, "big"):
        raise EOFError
    return message


def _serve() -> None:
    """Carry out the tasks that come on standard input. The answers go to standard output."""
    from harness.campaign.task import away  # noqa: PLC0415  A worker of Spark only forwards, and need not load it.
    from harness.record.processes import die_with_parent  # noqa: PLC0415  Likewise.

    die_with_parent()
    answers = os.dup(1)
    os.dup2(2, 1)  # Everything else that is printed goes to the log.
    with os.fdopen(answers, "wb") as output, suppress(EOFError):
        while True:
            task = pickle.loads(_received(sys.stdin.buffer))  # noqa: S301  The driver's own.
            with temporary_folder("away") as folder:
                row, run = away(task, folder)
                content = _packed(run) if run is not None else b""
            _send(output, pickle.dumps((row, content)))


def _packed(run: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as packed:
        packed.add(run, arcname=f"{run.parent.name}/{run.name}")
    return buffer.getvalue()


if __name__ == "__main__":
    _serve()
