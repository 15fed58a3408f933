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

from harness.campaign.config import Config, config_of
from harness.campaign.document import SWEEPS, Sweep, earlier_sweeps
from harness.campaign.evidence import KIND, require_counted
from harness.campaign.ledger.attempts import delivered
from harness.campaign.ledger.design import Order
from harness.campaign.ledger.orders import (
    digest_of,
    folder_of,
    new_id,
    read_order,
    require_same,
    store_of,
    write_order,
)
from harness.campaign.ledger.rows import Row, RowsFile, final_rows, read_rows, row_of
from harness.campaign.ledger.soundness import is_next, require_planned
from harness.campaign.outcome import sweep_of, utc_now
from harness.campaign.task import Task, done, failed
from harness.core.command import seamark
from harness.core.errors import ScenarioError, SeamarkError
from harness.core.verdict import Verdict
from harness.judging.engines import in_threads
from harness.record.ownership import temporary_folder
from harness.record.store import create_run
from harness.report.model import read_report
from harness.run.code import code_digest
from harness.run.pool import LocalPool, Pool, results
from harness.run.running import versions
from harness.run.single import judge_run

SPARE_BYTES: Final = 8 << 20  # With less free space the disk counts as full: no run fits.


class StoreFull(SeamarkError):
    """The disk of the store is full. Everything stored so far is kept."""


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep with its folder, new or to be continued."""

    config: Config
    order: Order
    folder: Path
    store: Path

    @property
    def resumption(self) -> str:
        """The command that continues the sweep."""
        files = [word for name in self.config.in_files for word in ("--cluster", name)]
        containers = ("--runtime", "docker") if self.config.has_containers else ()
        return seamark("sweep", "--resume", self.folder, *files, *containers)


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
    order = Order(
        id=new_id(),
        code=code_digest(config.codes.values()),
        versions=dict(versions()),
        started_utc=utc_now(),
        design=config.alone(),
    )
    folder = create_run(store / SWEEPS, config.name, config.seed)
    write_order(folder, order)
    return Begun(config=config, order=order, folder=folder, store=store)


def resumed(path: Path, store: Path, allowed: Sequence[str] = (), *, may_start_containers: bool = False) -> Begun:
    """The sweep to continue, in that folder, or the latest of the store.

    `allowed` is code in files that may be loaded. Raises ScenarioError if it is no sweep, if its clusters or Seamark
    have changed since, or if it needs containers and may start none: its folder may come from anywhere.
    """
    folder = folder_of(path, store, KIND)
    order = read_order(folder, KIND, Order)
    design = order.design
    config = config_of(
        design.text.encode(),
        path=Path(design.path),
        seed=design.seed,
        allowed=allowed,
        sut=design.cells[0].scenario.sut,
    )
    if config.alone() != design:
        raise ScenarioError(f"{folder}: its config or the code of its cluster has changed since: begin a new sweep")
    require_same(folder, order, config.codes.values(), KIND)
    if config.has_containers and not may_start_containers:
        raise ScenarioError(f"{folder}: some of its runs start containers: if that may be, add --runtime docker")
    return Begun(config=config, order=order, folder=folder, store=store_of(folder, KIND))


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
    with RowsFile(begun.folder, Row, digest_of(begun.order)) as file:
        work = _Work(begun, file, audience)
        work.adopt()
        with temporary_folder("sweep", beside=begun.store) as folder:
            _carry_out(work, folder, pool or (lambda: LocalPool(done, jobs or config.jobs)))
        kept = read_rows(begun.folder, Row, digest_of(begun.order))
    sweep = sweep_of(
        begun.order,
        kept,
        earlier=earlier_sweeps(begun.folder),
        folder=begun.folder,
    )
    return sweep, kept.rows


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
        kept = file.recovered()
        require_planned(begun.folder, begun.order.design, kept.rows)
        require_counted(begun.folder, kept)
        self.rows = kept.rows
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
            code=self._begun.config.code_of(cell),
            folder=folder,
            store=self._begun.store,
            keep=self._begun.config.keep,
            campaign=self._begun.order.id,
        )

    def following(self, tasks: deque[Task]) -> Task | None:
        """The next task; None if there is none, or the time is up."""
        budget_s = self._begun.config.time_budget
        if tasks and budget_s is not None and self.elapsed_s > budget_s:
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
        row = self._appended(result)
        if not row.is_final:
            tasks.appendleft(msgspec.structs.replace(task, attempt=task.attempt + 1))

    def adopt(self) -> None:
        """Append the rows that a kill prevented: those of runs of this sweep that had reached the store.

        They are judged again, unless the harness had failed in them.
        """
        design, store = self._begun.order.design, self._begun.store
        tests = [cell.cluster for cell in design.cells]
        for numbers, run in delivered(store, tests, self._begun.order.id):
            report = read_report(run)
            if report is None or len(numbers) != 3 or not design.has(*numbers[:2]):
                continue
            cell, seed, attempt = numbers
            if report.verdict != Verdict.ERROR.value:
                code = self._begun.config.code_of(design.cells[cell])
                report = msgspec.structs.replace(judge_run(run, in_threads, code=code), run=str(run))
            if is_next(design, self.rows, row := row_of(report, cell=cell, seed=seed, attempt=attempt)):
                self._appended(row)

    def _appended(self, result: Row) -> Row:
        """The row, with its times, once it is durable. Raises StoreFull if the disk is full."""
        row = msgspec.structs.replace(result, finished_utc=utc_now(), elapsed_s=round(self.elapsed_s, 3))
        try:
            self._file.append(row)
        except OSError as error:
            raise self._full(error.strerror or "it failed") from None
        self.rows.append(row)
        self._audience.row(self._begun.config, row)
        self._audience.progress(self._begun.config, self.rows)
        return row

    def _require_space(self) -> None:
        """Raise StoreFull if a full disk is why a run failed: this is not the run's fault, so no row is written."""
        if shutil.disk_usage(self._begun.store).free < SPARE_BYTES:
            raise self._full("no space left on the device")

    def _full(self, why: str) -> StoreFull:
        count = len(final_rows(self.rows))
        then = f"{count:,} runs are kept; make room, then {self._begun.resumption}"
        return StoreFull(f"{self._begun.store}: takes no more ({why}); {then}")
