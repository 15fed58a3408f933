"""Sweeps whose runs never took place: their folders are what `seamark sweep` leaves, with reports made up."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from harness.campaign.config import Config, config_of
from harness.campaign.document import Sweep
from harness.campaign.files import store_sweep
from harness.campaign.ledger.rows import Row, row_of
from harness.campaign.sweep import Begun, begin, carry_out
from harness.campaign.task import Task
from harness.report.model import Report

Work = Callable[[Task], Row]


class Pool:
    """Tasks carried out at once, by a function."""

    slots = 2

    def __init__(self, work: Work) -> None:
        self._work = work

    def submitted(self, task: Task) -> "Future[Row]":
        future: Future[Row] = Future()
        try:
            future.set_result(self._work(task))
        except Exception as error:  # noqa: BLE001  As a process would.
            future.set_exception(error)
        return future


class Nobody:
    def progress(self, config: Config, rows: Sequence[Row]) -> None:
        pass

    def row(self, config: Config, row: Row) -> None:
        pass


def config(**options: object) -> Config:
    """The config of a sweep of the tutorial cluster."""
    given = {"clusters": ["tutorial"], "workloads": ["list-append"], "style": "swarm"} | options
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items())
    return config_of(text.encode(), path=Path("nightly.toml"))


def carried_out(order: Begun, work: Work) -> Sweep:
    """The document of a sweep whose runs are carried out by a function. Its files are not written."""

    @contextmanager
    def pool() -> Iterator[Pool]:
        yield Pool(work)

    return carry_out(order, Nobody(), pool)[0]


def made(store: Path, *reports: Report, **options: object) -> Path:
    """The folder of a sweep that has ended, with those reports for the seeds from 0 on."""
    order = begin(config(count=len(reports), **options), store)

    def work(task: Task) -> Row:
        seed = task.scenario.seed
        return row_of(reports[seed], cell=task.cell, seed=seed, attempt=task.attempt)

    @contextmanager
    def pool() -> Iterator[Pool]:
        yield Pool(work)

    outcome, rows = carry_out(order, Nobody(), pool)
    store_sweep(order, outcome, rows)
    return order.folder
