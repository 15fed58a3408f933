"""The runs that a calibration still needs, and the cells that summarize its rows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from harness.campaign.calibration.document import BugCell, CorrectCell, interval_of, median_seeds, rate_of
from harness.campaign.calibration.rows import SCRIPTED, CalibrationRow, CellRows, Schedule, code_key
from harness.core.errors import ScenarioError, known
from harness.core.seams import is_of_machines
from harness.record.documents import read_plain
from harness.scenario.consent import Code, on_command_line
from harness.scenario.left_open import ANY
from harness.scenario.registry import load_cluster, package_of
from harness.scenario.scenario import Scenario

CORRECT: Final = "correct"  # The folder of runs without a bug.


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a calibration: each bug until `hits` runs show it, at most `runs`; `correct` runs without a bug.

    A cluster in containers makes `correct_in_containers` of those, as such runs take real time, one after another.
    `time_s` is the load of each run.
    """

    hits: int = 5
    runs: int = 200
    correct: int = 500
    correct_in_containers: int = 50
    time_s: float = 20.0
    workload: str = ANY
    seed: int = 0  # The first.


class Cell:
    """The runs of one cluster with one bug, or with none. Seeds count up from the first."""

    def __init__(
        self, code: Code, scenario: Scenario, description: str, limits: Limits, folder: Path, schedule: Schedule | None
    ) -> None:
        self.code, self.scenario, self.schedule = code, scenario, schedule
        self.bug = scenario.bugs[0] if scenario.bugs else None
        self.key = code_key(package_of(code), scenario, schedule)
        self._description, self._limits = description, limits
        self.kept = CellRows(folder / code.name / (self.bug or CORRECT) / self.key)
        self.begun: set[int] = set()  # Seeds of runs in progress.

    @property
    def sample(self) -> list[CalibrationRow]:
        """The rows from the first seed on without a gap, up to the hit that ends the sampling."""
        found = []
        for seed in self._seeds:
            if seed not in self.kept.rows:
                break
            found.append(self.kept.rows[seed])
            if self.bug is not None and sum(row.is_hit for row in found) >= self._limits.hits:
                break
        return found

    @property
    def _seeds(self) -> range:
        return range(self._limits.seed, self._limits.seed + self._runs_max)

    @property
    def _runs_max(self) -> int:
        if self.bug is not None:
            return self._limits.runs
        return self._limits.correct if self.scenario.runtime == "sim" else self._limits.correct_in_containers

    def scenario_of(self, seed: int) -> Scenario:
        """The scenario of a seed's run; of the bug's schedule for SCRIPTED."""
        own = self.scenario
        if seed != SCRIPTED or self.schedule is None:
            return msgspec.structs.replace(own, seed=seed)
        return msgspec.structs.replace(self.schedule.scenario, cluster=own.cluster, runtime=own.runtime, bugs=own.bugs)

    def following(self) -> int | None:
        """The next seed to run; None if there is none now."""
        hits = 0
        for seed in self._seeds:
            row = self.kept.rows.get(seed)
            if row is None and seed not in self.begun:
                return seed
            hits += row is not None and row.is_hit
            if self.bug is not None and hits >= self._limits.hits:
                return None
        is_shown = hits > 0 or self.bug is None or self.schedule is None
        is_waiting = self.begun or SCRIPTED in self.kept.rows
        return None if is_shown or is_waiting else SCRIPTED

    def outcome(self, clean: float) -> BugCell:
        """The summary of a bug's rows.

        `clean` is the share of correct runs in which a check of clients finds something.
        """
        rows = [row for row in self.sample if not row.is_error]
        hits = [row for row in rows if row.is_hit]
        rate = rate_of(len(hits), len(rows), is_stopped_by_hit=len(hits) >= self._limits.hits)
        scheduled = self.kept.rows.get(SCRIPTED)
        shown = hits or ([scheduled] if scheduled is not None and scheduled.is_hit else [])
        kinds = Counter(kind for row in shown for kind in row.kinds)
        names = Counter((row.promise, row.anomaly, row.checker) for row in shown)
        promise, anomaly, checker = names.most_common(1)[0][0] if names else (None, None, None)
        return BugCell(
            cluster=self.code.name,
            bug=self.bug or "",
            description=self._description,
            key=self.key,
            runs=len(rows),
            hits=len(hits),
            errors=len(self.sample) - len(rows),
            rate=rate,
            interval=interval_of(len(hits), len(rows)),
            median_seeds=median_seeds(rate),
            promise=promise,
            anomaly=anomaly,
            checker=checker,
            graph=kinds["graph"],
            rules=kinds["rules"],
            client=kinds["client"],
            state=kinds["state"],
            is_client_more=bool(shown) and kinds["client"] / len(rows if hits else shown) > clean,
            scripted=None if hits else _scripted(scheduled),
        )

    def correct(self) -> CorrectCell:
        """The summary of the correct cluster's rows."""
        rows = [row for row in self.sample if not row.is_error]
        alarms = [row for row in rows if row.is_hit]
        return CorrectCell(
            cluster=self.code.name,
            key=self.key,
            runs=len(rows),
            false_alarms=len(alarms),
            errors=len(self.sample) - len(rows),
            client=sum("client" in row.kinds for row in rows),
            interval=interval_of(len(alarms), len(rows)),
            seeds=tuple(row.seed for row in alarms),
        )


def _scripted(row: CalibrationRow | None) -> Literal["found", "not found", "no schedule"]:
    if row is None:
        return "no schedule"
    return "found" if row.is_hit else "not found"


def cells_of(
    clusters: Sequence[str], bugs: Sequence[str], limits: Limits, folder: Path, plans: Path | None
) -> list[Cell]:
    """The cells of those clusters: each bug, or only the named ones, and then the correct variant.

    Raises ScenarioError if there is no such cluster or bug.
    """
    every = {name: dict(load_cluster(on_command_line(name)).bugs) for name in clusters}
    names = tuple(bug for known_bugs in every.values() for bug in known_bugs)
    for bug in bugs:
        known(bug, names, "bug")
    return [cell for name in clusters for cell in _cells(name, every[name], bugs, limits, folder, plans)]


def _cells(
    name: str, every: Mapping[str, str], bugs: Sequence[str], limits: Limits, folder: Path, plans: Path | None
) -> Iterator[Cell]:
    code = on_command_line(name)
    if code.place is not None:
        raise ScenarioError(f"{code.name}: seamark calibrate is for installed clusters with planted bugs")
    runtime: Literal["sim", "docker"] = "sim" if is_of_machines(load_cluster(code)) else "docker"
    scenario = Scenario(cluster=code.name, runtime=runtime, time_s=limits.time_s, workload=limits.workload, style=ANY)
    for bug, description in every.items():
        if not bugs or bug in bugs:
            planted = msgspec.structs.replace(scenario, bugs=(bug,))
            yield Cell(
                code, planted, description, limits, folder, None if plans is None else schedule_of(plans, name, bug)
            )
    if limits.correct if runtime == "sim" else limits.correct_in_containers:
        yield Cell(code, scenario, "", limits, folder, None)


def schedule_of(plans: Path, cluster: str, bug: str) -> Schedule | None:
    """The scenario and the plan that show a bug; None if there is no such file. Raises ScenarioError."""
    path = plans / cluster / f"{bug}.json"
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(read_plain(path, ScenarioError), type=Schedule)
    except msgspec.MsgspecError as error:
        raise ScenarioError(f"{path}: not a scenario and a plan: {error}") from None
