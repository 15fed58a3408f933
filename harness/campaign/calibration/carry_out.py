"""Carries out a calibration: draws seeds for one cell after another until all are known, and keeps each row."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from harness.campaign.calibration.cells import Cell, Limits
from harness.campaign.calibration.document import Calibration, Sampling
from harness.campaign.calibration.rows import SCRIPTED, calibration_row
from harness.campaign.ledger.rows import ATTEMPTS, Row
from harness.campaign.task import Task, done, failed
from harness.core.errors import ScenarioError
from harness.record.ownership import temporary_folder
from harness.run.pool import LocalPool, Pool, results
from harness.run.running import versions
from harness.runtimes.containers.engine.engine import connect

Tell = Callable[[Cell, int, str], None]  # A cell, a seed, and the verdict of its run.


def calibrated(
    cells: Sequence[Cell],
    limits: Limits,
    store: Path,
    tell: Tell,
    pool: Callable[[], AbstractContextManager[Pool[Task, Row]]] | None = None,
    jobs: int | None = None,
) -> Calibration:
    """The calibration, after all runs that it still lacks; `pool` is for simulated runs, `jobs` processes if None.

    Raises DeployError, before any run, if a cluster needs containers and no engine answers.
    """
    simulated = [cell for cell in cells if cell.scenario.runtime == "sim"]
    in_containers = [cell for cell in cells if cell not in simulated]
    if in_containers:
        connect().close()  # Without an engine it would be hundreds of failed runs, after hours of simulated ones.
    try:
        store.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ScenarioError(f"{store}: cannot be made ({error.strerror}); choose another with --store") from None
    with temporary_folder("calibrate", beside=store) as folder:
        _drain(simulated, folder, store, tell, pool or (lambda: LocalPool(done, jobs)))
        _drain(in_containers, folder, store, tell, lambda: LocalPool(done, 1))
    for cell in cells:
        cell.kept.complete()
    correct = [cell.correct() for cell in cells if cell.bug is None]
    clean = {each.cluster: each.client / each.runs if each.runs else 0.0 for each in correct}
    return Calibration(
        samplings=tuple(_sampling(name, limits) for name in dict.fromkeys(cell.code.name for cell in cells)),
        bugs=tuple(cell.outcome(clean.get(cell.code.name, 0.0)) for cell in cells if cell.bug is not None),
        correct=tuple(correct),
    )


def _sampling(cluster: str, limits: Limits) -> Sampling:
    return Sampling(
        cluster=cluster,
        versions=dict(versions()),
        time_s=limits.time_s,
        seed=limits.seed,
        workload=limits.workload,
        runs_max=limits.runs,
        hits_max=limits.hits,
    )


def _drain(
    cells: Sequence[Cell],
    folder: Path,
    store: Path,
    tell: Tell,
    pool: Callable[[], AbstractContextManager[Pool[Task, Row]]],
) -> None:
    again: list[Task] = []

    def following() -> Task | None:
        return again.pop() if again else _following(cells, folder, store)

    first = following()
    if first is None:
        return
    again.append(first)
    with pool() as slots:
        for task, result in results(slots, following):
            cell, seed = cells[task.cell], SCRIPTED if task.plan is not None else task.scenario.seed
            if isinstance(result, ScenarioError):
                raise result
            row = result if isinstance(result, Row) else failed(task, result, cluster=cell.code.name, workload="")
            if row.is_trouble and task.attempt < ATTEMPTS:
                again.append(msgspec.structs.replace(task, attempt=task.attempt + 1))
                continue
            cell.kept.add(calibration_row(row, seed))
            cell.begun.discard(seed)
            tell(cell, seed, row.report.verdict)


def _following(cells: Sequence[Cell], folder: Path, store: Path) -> Task | None:
    """The next run of the first cell that lacks one."""
    for number, cell in enumerate(cells):
        seed = cell.following()
        if seed is not None:
            cell.begun.add(seed)
            return Task(
                cell=number,
                attempt=1,
                scenario=cell.scenario_of(seed),
                code=cell.code,
                folder=folder,
                store=store,
                keep="none",
                plan=cell.schedule.plan if cell.schedule is not None and seed == SCRIPTED else None,
            )
    return None
