"""The store: one directory per run, created exclusively, with files that appear whole or not at all.

store/<test>/<UTC time>-<seed>/   run.json  journal.log  history/  report.json  report.html  logs/
"""

import fcntl
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

import msgspec

from harness.core.errors import HistoryError, ScenarioError
from harness.core.promises import Bounds, Naming, Promise, StreamContract
from harness.core.record import Json
from harness.record.documents import read_plain
from harness.record.ownership import remove_left_behind, temporary_name
from nemesis.plan import Plan

JOURNAL: Final = "journal.log"
HISTORY: Final = "history"
LOGS: Final = "logs"
RUN_FILE: Final = "run.json"
RUN_SCHEMA: Final = 1
DEPTH: Final = 3  # The most levels of folders in a store: sweeps/NAME/UTC-SEED has three.
LATEST: Final = "latest"  # In place of a run's name: the last run of a store.
STORE: Final = Path("store")  # The default store.
Runtime = Literal["sim", "docker"]
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_FILES: Final = (
    *(RUN_FILE, JOURNAL, "report.json", "report.html", "junit.xml", "trace.jsonl", "trace.html"),
    *(f"{LOGS}/run.log", f"{LOGS}/harness.log"),
)
_FOLDERS: Final = (HISTORY, LOGS)
_NOT_PLAIN: Final = (
    "is a link or no file, and a run has plain files and folders only: remove it, or copy the file itself"
)


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """A module of checks that a run's system brings. `checks` has the anomalies that each check in it looks for."""

    module: str  # "clusters.ndb.checks", or the path of a file.
    sha256: str  # Of its source.
    checks: dict[str, tuple[str, ...]]


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """run.json: everything that is needed to repeat a run, and to judge it without the cluster's code.

    `options` is the scenario as written; `parameters`, `workload` and `plan` are decided by the seed. `types` are the
    kinds of operation that must have succeeded, `checks` the checkers that the workload requires.
    """

    schema: int = RUN_SCHEMA
    versions: Mapping[str, str]
    cluster: str
    code_sha256: str | None = None  # The hash of the file that defines the cluster, if there is one.
    runtime: Runtime
    seed: int
    options: dict[str, Json]
    bugs: tuple[str, ...] = ()
    parameters: dict[str, int] = {}
    workload: str
    types: tuple[str, ...]
    checks: tuple[str, ...]
    plan: Plan
    is_plan_given: bool = False  # The plan was given, and not drawn from the seed.
    promises: tuple[Promise, ...]
    stream: StreamContract | None = None
    subscribers: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    settle_ns: int = 0
    bounds: Bounds = Bounds()
    naming: Naming = Naming()
    brought: tuple[Brought, ...] | None = None  # None: recorded before systems brought checks.


def sut_in(run_file: RunFile) -> dict[str, str]:
    """The release of the system under test that a run declares; empty if it declares none."""
    found = run_file.options.get("sut")
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def create_run(store: Path, test: str, seed: int) -> Path:
    """A new, empty run directory. Raises ScenarioError if the store cannot be written."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for suffix in ("", *(f".{number}" for number in range(2, 10_000))):
        run = store / test / f"{stamp}-{seed}{suffix}"
        try:
            run.parent.mkdir(parents=True, exist_ok=True)
            run.mkdir()
        except FileExistsError:
            if not run.is_dir():
                raise ScenarioError(f"{run.parent}: is not a folder; choose another with --store") from None
            continue
        except OSError as error:
            raise ScenarioError(f"{run}: cannot be made ({error.strerror}); choose another with --store") from None
        return run
    raise ScenarioError(f"{store}: too many runs in one second")


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the content of `path` by `content`: after a crash the file has either the old or the new content."""
    temporary = path.with_name(temporary_name("file"))
    try:
        with os.fdopen(os.open(temporary, _NEW, 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_run_file(run: Path, run_file: RunFile) -> None:
    """Write run.json."""
    write_atomically(run / RUN_FILE, msgspec.json.format(msgspec.json.encode(run_file), indent=1) + b"\n")


def read_run_file(path: Path) -> RunFile:
    """A run.json. Raises HistoryError that names the file and the field."""
    try:
        run_file = msgspec.json.decode(read_plain(path), type=RunFile)
        msgspec.msgpack.encode(run_file)  # Refuses numbers that the columns of a history cannot hold.
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise HistoryError(f"{path}: not a run.json ({error})") from None
    except OverflowError:
        raise HistoryError(f"{path}: not a run.json (a number in it has more than 64 bits)") from None
    if run_file.schema > RUN_SCHEMA:
        raise HistoryError(f"{path}: has schema {run_file.schema}, this Seamark reads up to {RUN_SCHEMA}: upgrade it")
    return run_file


def require_plain(folder: Path) -> None:
    """Raise HistoryError unless everything in the folder, at any depth, is a plain file or a folder.

    A run may come from anywhere: a link in it could make us read, truncate or extend other files.
    """
    for names, is_wrong, what in ((_FILES, Path.is_dir, "folder"), (_FOLDERS, Path.is_file, "file")):
        for path in (folder / name for name in names):
            if is_wrong(path):
                raise HistoryError(f"{path}: is a {what}, which no run has under that name: remove it")
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif not entry.is_file(follow_symlinks=False):
                        raise HistoryError(f"{entry.path}: {_NOT_PLAIN}")
        except FileNotFoundError:
            continue  # A temporary folder of another command on the same run, which has ended meanwhile.
        except OSError as error:
            raise HistoryError(f"{error.filename}: cannot be read ({error.strerror})") from None


def is_run(path: Path) -> bool:
    """True if `path` is a run's directory."""
    return (path / RUN_FILE).is_file()


def run_at(path: Path) -> Path | None:
    """The run directory that `path` names, by itself or by its run.json; None if it names no run.

    Leftovers of dead processes in it are removed. Raises HistoryError if it holds links.
    """
    folder = path.parent if path.name == RUN_FILE else path
    if not is_run(folder):
        return None
    require_plain(folder)
    remove_left_behind(folder)
    return folder


def or_latest(path: Path) -> Path:
    """`path`, but the last run of `store` for "latest", and that of the store FOLDER for "FOLDER/latest".

    Raises ScenarioError if there is none.
    """
    if path.name != LATEST or path.exists():
        return path
    store = STORE if path.parent == Path() else path.parent
    runs = list_runs(store)
    if not runs:
        raise ScenarioError(f"{path}: {store} holds no run yet; make one with seamark run")
    return runs[0]


def find_run(path: Path) -> Path:
    """The run directory that `path` names, as in `or_latest` and `run_at`. Raises ScenarioError if there is none."""
    path = or_latest(path)
    run = run_at(path)
    if run is None:
        raise ScenarioError(f"{path}: not a run's directory (no {RUN_FILE} in it); seamark list shows them")
    return run


@contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Hold the exclusive lock for writing into that folder; wait while another process holds it.

    The lock is on the folder itself, so no file is left behind. A file system without locks does not make anyone wait.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def folders_of(store: Path) -> list[Path]:
    """The folders that may contain temporary files: the store itself, and DEPTH levels of folders below."""
    level, found = [store], [store]
    for _ in range(DEPTH):
        level = [below for folder in level for below in _folders_in(folder)]
        found += level
    return found


def _folders_in(folder: Path) -> list[Path]:
    """The folders in `folder`, without links, which may lead anywhere."""
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def began_utc(run: Path) -> str | None:
    """When a run began, from its folder's name: "2026-11-23T19:09:10Z"; None if the folder was renamed."""
    stamp = re.match(r"(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)-", run.name)
    return None if stamp is None else "{}-{}-{}:{}:{}".format(*stamp.groups())


def list_runs(store: Path) -> list[Path]:
    """All runs in a store, the latest first."""
    if not store.is_dir():
        return []
    runs = [run for test in sorted(store.iterdir()) if test.is_dir() for run in test.iterdir() if is_run(run)]
    return sorted(runs, key=_age, reverse=True)


def _age(run: Path) -> tuple[str, int, str, str]:
    """A sort key by the time at which a run began: the second from its name, then the time of its run.json."""
    return run.name.partition("-")[0], (run / RUN_FILE).stat().st_mtime_ns, run.name, run.parent.name
