"""Carries out a sweep: draws its runs as slots become free, appends each row as it comes, and can be resumed.

Recorded rows survive however the sweep ends. Runs in progress write into one temporary folder of this process in the
store, which is removed at the end; the next command removes that of a process that was killed.
"""

import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

import msgspec

from harness.campaign.config import Config, read_config
from harness.campaign.document import SWEEPS, Sweep, earlier_sweeps
from harness.campaign.orders import Kind, read_order, require_same_versions, write_order
from harness.campaign.outcome import sweep_of, utc_now
from harness.campaign.rows import Row, RowsFile, final_rows
from harness.campaign.task import Task, done, failed
from harness.core.command import seamark
from harness.core.errors import ScenarioError, SeamarkError
from harness.record.ownership import temporary_folder
from harness.record.store import create_run, write_atomically
from harness.run.pool import LocalPool, Pool, results
from harness.run.running import versions

KIND: Final = Kind("sweep", SWEEPS, "seamark sweep nightly.toml")
SPARE_BYTES: Final = 8 << 20  # With less free space the disk counts as full: no run fits.


class StoreFull(SeamarkError):
    """The disk of the store is full. Everything stored so far is kept."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a sweep in its folder: `file` is the copy of its config, `sha256` that of the config."""

    schema: int = 1
    file: str
    seed: int
    sha256: str
    versions: dict[str, str]
    started_utc: str


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep with its folder, new or to be continued."""

    config: Config
    order: Order
    folder: Path
    store: Path

    @property
    def resumption(self) -> str:
        """The command that continues the sweep."""
        return seamark("sweep", "--resume", self.folder)


class Audience(Protocol):
    """A display for the progress of a sweep."""

    def progress(self, config: Config, rows: Sequence[Row]) -> None:
        """Show the final rows so far."""
        ...

    def row(self, config: Config, row: Row) -> None:
        """Show a row that has just been appended."""
        ...


def begin(config: Config, store: Path) -> Begun:
    """A new sweep in a new folder. Raises ScenarioError if the store cannot be written."""
    folder = create_run(store / SWEEPS, config.name, config.seed)
    file = Path(config.path).name
    order = Order(file=file, seed=config.seed, sha256=config.sha256, versions=dict(versions()), started_utc=utc_now())
    write_atomically(folder / file, config.text.encode())
    write_order(folder, order)
    return Begun(config=config, order=order, folder=folder, store=store)


def resumed(path: Path, store: Path, allowed: Sequence[str] = ()) -> Begun:
    """The sweep to continue, in that folder, or the latest of the store.

    Raises ScenarioError if it is no sweep, or if its clusters or Seamark have changed since.
    """
    folder, order = read_order(path, store, KIND, Order)
    config = read_config(folder / Path(order.file).name, seed=order.seed, allowed=allowed)
    if config.sha256 != order.sha256:
        raise ScenarioError(f"{folder}: its config or the code of its cluster has changed since: begin a new sweep")
    require_same_versions(folder, order.versions, KIND)
    return Begun(config=config, order=order, folder=folder, store=folder.parent.parent.parent)


def carry_out(
    begun: Begun,
    audience: Audience,
    pool: Callable[[], AbstractContextManager[Pool[Task, Row]]] | None = None,
    jobs: int | None = None,
) -> tuple[Sweep, list[Row]]:
    """Carry out the rest of the sweep. Returns its document and its rows.

    `pool` is for simulated runs: `jobs` processes here if None. Raises StoreFull if the disk is full, ScenarioError if
    another process carries the sweep out.
    """
    config = begun.config
    with RowsFile(begun.folder, Row) as file:
        work = _Work(begun, file, audience)
        with temporary_folder("sweep", beside=begun.store) as folder:
            _carry_out(work, folder, pool or (lambda: LocalPool(done, jobs or config.jobs)))
        sweep = sweep_of(
            config,
            work.rows,
            started_utc=begun.order.started_utc,
            versions=begun.order.versions,
            stopped=work.stopped,
            earlier=earlier_sweeps(begun.folder),
            folder=begun.folder,
        )
    return sweep, work.rows


def _carry_out(work: "_Work", folder: Path, pool: Callable[[], AbstractContextManager[Pool[Task, Row]]]) -> None:
    """Carry out simulated runs first, then those in containers one by one, as they share an engine."""
    _drain(work, work.left("sim", folder), pool)
    _drain(work, work.left("docker", folder), lambda: LocalPool(done, 1))


def _drain(work: "_Work", tasks: deque[Task], pool: Callable[[], AbstractContextManager[Pool[Task, Row]]]) -> None:
    if not tasks:
        return
    with pool() as slots:
        for task, result in results(slots, lambda: work.following(tasks)):
            work.ended(task, result, tasks)


class _Work:
    """A sweep in progress: the tasks that are left, and the rows so far."""

    def __init__(self, begun: Begun, file: RowsFile[Row], audience: Audience) -> None:
        self._begun, self._file, self._audience = begun, file, audience
        self.rows = file.recovered()
        self.stopped: str | None = None
        self._offset_s = max((row.elapsed_s for row in self.rows), default=0.0)
        self._started = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds of real time, over all sessions."""
        return self._offset_s + time.monotonic() - self._started

    def left(self, runtime: str, folder: Path) -> deque[Task]:
        """The remaining tasks of a runtime, seed by seed: whenever the sweep ends, each cell has its share."""
        final = {row.key for row in self.rows if row.is_final}
        attempts = {row.key: row.attempt for row in self.rows}
        return deque(
            self._task(cell, seed, attempts.get((cell, seed), 0) + 1, folder)
            for cell, seed in self._keys(runtime)
            if (cell, seed) not in final
        )

    def _keys(self, runtime: str) -> Iterator[tuple[int, int]]:
        cells = [(number, cell) for number, cell in enumerate(self._begun.config.cells)]
        mine = [(number, cell.count) for number, cell in cells if cell.scenario.runtime == runtime]
        for place in range(max((count for _, count in mine), default=0)):
            yield from ((number, self._begun.config.seed + place) for number, count in mine if place < count)

    def _task(self, number: int, seed: int, attempt: int, folder: Path) -> Task:
        cell = self._begun.config.cells[number]
        return Task(
            cell=number,
            attempt=attempt,
            scenario=msgspec.structs.replace(cell.scenario, seed=seed),
            code=cell.code,
            folder=folder,
            store=self._begun.store,
            keep=self._begun.config.keep,
        )

    def following(self, tasks: deque[Task]) -> Task | None:
        """The next task; None if there is none, or the time is up."""
        budget_s = self._begun.config.time_budget
        if tasks and budget_s is not None and self.elapsed_s > budget_s:
            self.stopped = f"the time budget of {budget_s:g} s is used up"
            return None
        return tasks.popleft() if tasks else None

    def ended(self, task: Task, result: Row | Exception, tasks: deque[Task]) -> None:
        """Append the row of an attempt. A run in which the harness failed goes to the front of the tasks, once."""
        if isinstance(result, ScenarioError):
            raise result  # An error in one scenario is an error in all.
        if isinstance(result, Exception):
            cell = self._begun.config.cells[task.cell]
            result = failed(task, result, cluster=cell.cluster, workload=cell.workload)
        if result.is_trouble:
            self._require_space()
        row = msgspec.structs.replace(result, finished_utc=utc_now(), elapsed_s=round(self.elapsed_s, 3))
        try:
            self._file.append(row)
        except OSError as error:
            raise self._full(error.strerror or "it failed") from None
        self.rows.append(row)
        if not row.is_final:
            tasks.appendleft(msgspec.structs.replace(task, attempt=task.attempt + 1))
        self._audience.row(self._begun.config, row)
        self._audience.progress(self._begun.config, self.rows)

    def _require_space(self) -> None:
        """Raise StoreFull if a full disk is why a run failed: this is not the run's fault, so no row is written."""
        if shutil.disk_usage(self._begun.store).free < SPARE_BYTES:
            raise self._full("no space left on the device")

    def _full(self, why: str) -> StoreFull:
        count = len(final_rows(self.rows))
        then = f"{count:,} runs are kept; make room, then {self._begun.resumption}"
        return StoreFull(f"{self._begun.store}: takes no more ({why}); {then}")
