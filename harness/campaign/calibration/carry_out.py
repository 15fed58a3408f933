"""Carries out a calibration: draws seeds for one cell after another until all are known, and keeps each row."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from harness.campaign.calibration.cells import SCHEDULED, Cell, Limits
from harness.campaign.calibration.document import Calibration
from harness.campaign.calibration.rows import SCRIPTED, calibration_row
from harness.campaign.pool import LocalPool, Pool, results
from harness.campaign.rows import ATTEMPTS, Row
from harness.campaign.task import Task, done, failed
from harness.core.errors import ScenarioError
from harness.record.ownership import temporary_folder
from harness.run.running import versions

Tell = Callable[[Cell, int, str], None]  # A cell, a seed, and the verdict of its run.


def calibrated(
    cells: Sequence[Cell],
    limits: Limits,
    store: Path,
    tell: Tell,
    pool: Callable[[], AbstractContextManager[Pool]] | None = None,
    jobs: int | None = None,
) -> Calibration:
    """The calibration, once all that is left of it has run; `pool` is for simulated runs, `jobs` processes if None."""
    store.mkdir(parents=True, exist_ok=True)
    with temporary_folder("calibrate", beside=store) as folder:
        simulated = [cell for cell in cells if cell.scenario.runtime == "sim"]
        _drain(simulated, folder, store, tell, pool or (lambda: LocalPool(jobs)))
        _drain([cell for cell in cells if cell not in simulated], folder, store, tell, lambda: LocalPool(1))
    for cell in cells:
        cell.kept.complete()
    correct = [cell.correct() for cell in cells if cell.bug is None]
    clean = {each.cluster: each.client / each.runs if each.runs else 0.0 for each in correct}
    return Calibration(
        versions=dict(versions()),
        time_s=limits.time_s,
        runs_max=limits.runs,
        hits_max=limits.hits,
        bugs=tuple(cell.outcome(clean.get(cell.code.name, 0.0)) for cell in cells if cell.bug is not None),
        correct=tuple(correct),
    )


def _drain(
    cells: Sequence[Cell], folder: Path, store: Path, tell: Tell, pool: Callable[[], AbstractContextManager[Pool]]
) -> None:
    again: list[tuple[int, Task]] = []

    def following() -> tuple[int, Task] | None:
        return again.pop() if again else _following(cells, folder, store)

    first = following()
    if first is None:
        return
    again.append(first)
    with pool() as slots:
        for (seed, task), result in results(slots, _done, following):
            cell = cells[task.cell]
            if isinstance(result, ScenarioError):
                raise result
            row = result if isinstance(result, Row) else failed(task, result, cluster=cell.code.name, workload="")
            tell(cell, seed, row.report.verdict)
            if row.is_trouble and task.attempt < ATTEMPTS:
                again.append((seed, msgspec.structs.replace(task, attempt=task.attempt + 1)))
                continue
            cell.kept.add(calibration_row(row, seed))
            cell.begun.discard(seed)


def _done(task: tuple[int, Task]) -> Row:
    return done(task[1])


def _following(cells: Sequence[Cell], folder: Path, store: Path) -> tuple[int, Task] | None:
    """The next run of the first cell that lacks one."""
    for number, cell in enumerate(cells):
        seed = cell.following()
        if seed is not None:
            cell.begun.add(seed)
            scenario = msgspec.structs.replace(cell.scenario, seed=seed)
            if seed == SCRIPTED:
                own = {"cluster": scenario.cluster, "bugs": scenario.bugs}
                scenario = msgspec.structs.replace(SCHEDULED, **own)
            task = Task(
                cell=number,
                attempt=1,
                scenario=scenario,
                code=cell.code,
                folder=folder,
                store=store,
                keep="none",
                plan=cell.plan if seed == SCRIPTED else None,
            )
            return seed, task
    return None
