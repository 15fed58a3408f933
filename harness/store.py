"""The store: one directory for each run, made exclusively, whose files appear whole or not at all.

store/<test>/<UTC time>-<seed>/   run.json  journal.log  history/  report.json  report.html  logs/
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from harness.core.errors import HistoryError, ScenarioError
from harness.core.promises import Bounds, Promise, StreamContract
from harness.core.record import Json
from nemesis.plan import Plan

JOURNAL: Final = "journal.log"
HISTORY: Final = "history"
LOGS: Final = "logs"
RUN_FILE: Final = "run.json"
RUN_SCHEMA: Final = 1


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """run.json: enough to run it again, and to judge it without the cluster's code.

    `options` is the scenario as written; `parameters`, `workload`, `plan` are what the seed made of it. `types` are the
    kinds of operation that must have succeeded, `checks` the checkers that the workload asks for.
    """

    schema: int = RUN_SCHEMA
    versions: Mapping[str, str]
    cluster: str
    code_sha256: str | None = None  # Of the file that the cluster is in, if it is in a file.
    runtime: str
    seed: int
    options: dict[str, Json]
    bugs: tuple[str, ...] = ()
    parameters: dict[str, int] = {}
    workload: str
    types: tuple[str, ...]
    checks: tuple[str, ...]
    plan: Plan
    promises: tuple[Promise, ...]
    stream: StreamContract | None = None
    subscribers: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    settle_ns: int = 0
    bounds: Bounds = Bounds()


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
    """Make `path` hold `content`: after a crash it has either that, or what it had before."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
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
        run_file = msgspec.json.decode(path.read_bytes(), type=RunFile)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise HistoryError(f"{path}: not a run.json ({error})") from None
    if run_file.schema > RUN_SCHEMA:
        raise HistoryError(f"{path}: has schema {run_file.schema}, this Seamark reads up to {RUN_SCHEMA}: upgrade it")
    return run_file


def is_run(path: Path) -> bool:
    """Is that a run's directory?"""
    return (path / RUN_FILE).is_file()


def find_run(path: Path) -> Path:
    """The run directory that `path` names: itself, or the one of its run.json. Raises ScenarioError if it is none."""
    folder = path.parent if path.name == RUN_FILE else path
    if not is_run(folder):
        raise ScenarioError(f"{path}: not a run's directory (no {RUN_FILE} in it); seamark list shows them")
    return folder


def list_runs(store: Path) -> list[Path]:
    """All runs in a store, the latest first."""
    if not store.is_dir():
        return []
    runs = [run for test in sorted(store.iterdir()) if test.is_dir() for run in test.iterdir() if is_run(run)]
    return sorted(runs, key=lambda run: (run.name, run.parent.name), reverse=True)
