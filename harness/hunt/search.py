"""Carries out a hunt: makes candidates, has them tried on all cores, and counts the features of each, in order.

Theory of operation. Candidate n depends on the hunt's seed, on n, and on the results of the candidates before n - `lag`
only. So as many as `lag` can be tried at once, results may come in any order, and the same hunt makes the same runs
however fast each is.
1. A result counts when all before it have counted; its row is durable then.
2. To continue after a kill, candidates are made again in order, and those that have a row take their result from it.
"""

import shutil
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec

from harness.campaign.ledger.orders import (
    ORDER_FILE,
    CampaignOrder,
    Kind,
    digest_of,
    folder_of,
    new_id,
    read_order,
    require_same,
    store_of,
    write_order,
)
from harness.campaign.ledger.rows import ROWS_FILE, RowsFile
from harness.campaign.ledger.soundness import contradiction
from harness.campaign.outcome import utc_now
from harness.campaign.sweep import SPARE_BYTES, StoreFull
from harness.core.command import seamark
from harness.core.draw import Draw
from harness.core.errors import HistoryError, ScenarioError
from harness.hunt.corpus import Corpus
from harness.hunt.fresh import FIRST_STYLE, fresh
from harness.hunt.mutation import Setting, mutated
from harness.hunt.points import at_points
from harness.hunt.rows import Row, Tried, is_trouble, tried
from harness.hunt.space import Space, is_sound, space_of
from harness.record.bounded import Amount, Positive, Seed, Sha256
from harness.record.ownership import temporary_folder
from harness.record.store import create_run
from harness.report.model import error_report
from harness.run.code import code_digest
from harness.run.pool import LocalPool
from harness.run.running import versions
from harness.scenario.consent import Code, consented
from harness.scenario.registry import code_sha256_of, load_cluster
from harness.scenario.scenario import Scenario
from harness.shrink.case import Case
from nemesis.styles.menu import Menu

HUNTS: Final = "hunts"  # The folder of hunts in a store: hunts/CLUSTER/UTC-SEED/rows.jsonl.
KIND: Final = Kind("hunt", HUNTS, "seamark hunt --cluster tutorial")
LAG: Final = 4
FIRST: Final = 24  # The first drawn runs have no parent, and strikes apart, which break a promise most often.
FRESH: Final = (1, 2)  # The share of the others that have no parent.
TRIES: Final = 8  # The number of tries for a change that gives a different, sound run.


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The hunt ends after `runs` runs, or when `seconds` of real time have passed, including earlier sessions."""

    runs: Positive = 1000
    seconds: Amount | None = None


class Order(CampaignOrder, frozen=True, kw_only=True):
    """The order of a hunt. `scenario` is varied; findings in `known` do not end the hunt.

    With `is_at_points` the first runs are those of `at_points`. `limits` are the latest: the chain of rows does not
    depend on them.
    """

    scenario: Scenario
    seed: Seed
    lag: Annotated[int, msgspec.Meta(ge=LAG, le=10_000)]
    known: tuple[str, ...]
    is_at_points: bool = False
    code_sha256: Sha256 | None
    limits: Limits = Limits()

    @property
    def start(self) -> str:
        """Where the chain of its rows begins."""
        return digest_of(msgspec.structs.replace(self, limits=Limits()))


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A hunt with its folder, new or to be continued."""

    order: Order
    code: Code
    folder: Path
    store: Path

    @property
    def resumption(self) -> str:
        """The command that continues the hunt."""
        code = () if self.code.place is None else ("--cluster", self.code.name)
        return seamark("hunt", "--resume", self.folder, *code)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a hunt, its corpus, and the row that ended it; `stopped`: why it ended before its last run."""

    rows: list[Row]
    corpus: Corpus
    found: Row | None = None
    stopped: str | None = None


class _Candidate(NamedTuple):
    """A run to make: its case, and how it was made from the runs `parents`."""

    case: Case
    origin: str
    parents: tuple[int, ...]


def begin(
    scenario: Scenario,
    code: Code,
    store: Path,
    *,
    seed: int,
    jobs: int,
    known: tuple[str, ...],
    is_at_points: bool = False,
    limits: Limits = Limits(),  # noqa: B008  It is frozen.
) -> Begun:
    """A new hunt in a new folder. Raises ScenarioError if it cannot be made, or the scenario cannot be varied."""
    code_sha256 = code_sha256_of(code)
    cluster = load_cluster(code, code_sha256)
    space = space_of(scenario, cluster)
    if is_at_points and not at_points(space, seed):
        raise ScenarioError(
            f"--points: {cluster.name} has no failpoints, or no fault of --nemesis can strike at one: leave it out"
        )
    order = Order(
        id=new_id(),
        code=code_digest([code]),
        limits=limits,
        scenario=msgspec.structs.replace(scenario, cluster=code.name),
        seed=seed,
        lag=max(LAG, jobs),
        known=known,
        is_at_points=is_at_points,
        code_sha256=code_sha256,
        versions=dict(versions()),
        started_utc=utc_now(),
    )
    folder = create_run(store / HUNTS, cluster.name, seed)
    write_order(folder, order)
    return Begun(order=order, code=code, folder=folder, store=store)


def resumed(
    path: Path, store: Path, given: str | None, *, runs: int | None = None, seconds: float | None = None
) -> Begun:
    """The hunt to continue, in that folder or the latest of the store.

    `given` is the code of its cluster if that is in a file; `runs` and `seconds` are limits instead of the ones that
    the hunt has kept. Raises ScenarioError if there is no hunt, or if its cluster or Seamark has changed since.
    """
    folder = folder_of(path, store, KIND)
    order = read_order(folder, KIND, Order)
    if order.scenario.runtime != "sim":
        raise HistoryError(f"{folder / ORDER_FILE}: a hunt is for simulated runs, and its scenario is none")
    code = consented(order.scenario.cluster, folder / ORDER_FILE, given)
    require_same(folder, order, [code], KIND)
    store = store_of(folder, KIND)
    limits = Limits(runs=runs or order.limits.runs, seconds=seconds or order.limits.seconds)
    if limits != order.limits:
        order = msgspec.structs.replace(order, limits=limits)
        write_order(folder, order)
    return Begun(order=order, code=code, folder=folder, store=store)


def carry_out(begun: Begun, jobs: int, tell: Callable[[Result], None]) -> Result:
    """Continue the hunt up to its limits or to the first new finding. `tell` gets the result after every row.

    Raises ScenarioError if another process carries it out, HistoryError if its rows were made by other code, StoreFull
    if the disk is full.
    """
    cluster = load_cluster(begun.code, begun.order.code_sha256)
    space = space_of(begun.order.scenario, cluster)
    begun.store.mkdir(parents=True, exist_ok=True)
    with (
        RowsFile(begun.folder, Row, begun.order.start, "hunt") as file,
        temporary_folder("hunt", beside=begun.store) as place,
        LocalPool(partial(tried, begun.code, place), jobs) as pool,
    ):
        return _Hunt(begun, space, file, pool).result(tell)


class _Hunt:
    """A hunt in progress."""

    def __init__(self, begun: Begun, space: Space, file: RowsFile[Row], pool: LocalPool[Case, Tried]) -> None:
        self._begun, self._space, self._file, self._pool = begun, space, file, pool
        self._limits = begun.order.limits
        self._corpus, self._menu = Corpus(), Menu(space.field.topology)
        self._fixed = at_points(space, begun.order.seed) if begun.order.is_at_points else ()
        self._kept = deque(file.recovered().rows)
        self._offset_s = self._kept[-1].elapsed_s if self._kept else 0.0
        self._started = time.monotonic()

    def result(self, tell: Callable[[Result], None]) -> Result:
        """Make all runs, and return their result."""
        rows: list[Row] = []
        known = frozenset(self._begun.order.known)
        ahead: deque[tuple[_Candidate, Future[Tried] | Row]] = deque()
        number = 0
        while True:
            while len(ahead) < self._begun.order.lag and self._goes_on(number):
                candidate = self._candidate(number)
                kept = self._kept.popleft() if self._kept else None
                ahead.append((candidate, kept or self._pool.submitted(candidate.case)))
                number += 1
            if not ahead:
                stopped = f"the time budget of {self._limits.seconds:g} s is used up" if self._is_late() else None
                return Result(rows=rows, corpus=self._corpus, stopped=stopped)
            row = self._counted(*ahead.popleft())
            rows.append(row)
            found = row if row.findings(known) else None
            so_far = Result(rows=rows, corpus=self._corpus, found=found)
            tell(so_far)
            if found is not None:
                return so_far

    @property
    def _elapsed_s(self) -> float:
        return self._offset_s + time.monotonic() - self._started

    def _goes_on(self, number: int) -> bool:
        """True if there is a run of that number: all that have a row count, whatever the limits are now."""
        return bool(self._kept) or (number < self._limits.runs and not self._is_late())

    def _is_late(self) -> bool:
        """True if the time is up. Stored rows take no time."""
        return self._limits.seconds is not None and not self._kept and self._elapsed_s > self._limits.seconds

    def _counted(self, candidate: _Candidate, result: "Future[Tried] | Row") -> Row:
        """The row of a candidate. A new one is durable on return."""
        key = candidate.case.key()
        if isinstance(result, Row):
            problem = self._corpus.problem(result, key) or contradiction(result.report)
            if problem is not None:
                place = f"{self._begun.folder / ROWS_FILE}:{self._corpus.runs + 1}"
                raise HistoryError(f"{place}: {problem}; restore the file from a copy")
            self._corpus.restored(result)
            return result
        tried = self._tried(candidate.case, result)
        if is_trouble(tried.report) and shutil.disk_usage(self._begun.store).free < SPARE_BYTES:
            raise self._full("no space left on the device")  # This is no fault of the run, so no row is written.
        about = {"origin": candidate.origin, "parents": candidate.parents, "key": key}
        row = self._corpus.noted(candidate.case, tried, **about, elapsed_s=round(self._elapsed_s, 3))
        try:
            self._file.append(row)
        except OSError as error:
            raise self._full(error.strerror or "it failed") from None
        return row

    def _full(self, why: str) -> StoreFull:
        then = f"the records are kept; make room, and run {self._begun.resumption}"
        return StoreFull(f"{self._begun.store}: takes no more ({why}); {then}")

    def _tried(self, case: Case, future: "Future[Tried]") -> Tried:
        try:
            return future.result()
        except BrokenExecutor:
            reason = "its process died before it was judged: killed, or out of memory"
            report = error_report(reason, cluster=self._begun.code.name, runtime="sim", seed=case.scenario.seed)
            return Tried(report=report, features={})

    def _candidate(self, number: int) -> _Candidate:
        stream = Draw(self._begun.order.seed).stream(f"candidate/{number}")
        corpus = self._corpus
        if number < len(self._fixed):
            return _Candidate(self._fixed[number], "at failpoint", ())
        if number < len(self._fixed) + FIRST:
            return _Candidate(fresh(self._space, self._menu, stream, style=FIRST_STYLE), "drawn", ())
        if not corpus.entries or stream.chance(*FRESH):
            return _Candidate(fresh(self._space, self._menu, stream), "drawn", ())
        entry, other = corpus.parent(stream), stream.choice(corpus.entries)
        setting = Setting(
            case=entry.case,
            moments=corpus.moments(entry),
            other=other.case,
            space=self._space,
            menu=self._menu,
            stream=stream,
        )
        for _ in range(TRIES):
            case, changes = mutated(setting)
            if case != entry.case and is_sound(self._space, case):
                parents = (entry.number, other.number) if "splice" in changes else (entry.number,)
                return _Candidate(case, ", ".join(changes), parents)
        return _Candidate(fresh(self._space, self._menu, stream), "drawn", ())
