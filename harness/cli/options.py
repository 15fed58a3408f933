"""The options of `seamark run`, from a scenario file and from the command line, which takes precedence.

A scenario file is a table of the same names (TOML, or JSON): `seed = 7`, `bug = ["late-row"]`. A run.json from the
store is a scenario file as well: it includes its fault plan.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from checkers.words import models
from harness.core.errors import ScenarioError, known, known_at
from harness.core.generators.scripted import Script
from harness.core.wording import mistake
from harness.judging.engines import EngineName
from harness.record.documents import read_plain
from harness.record.store import RUN_FILE, Runtime, is_run, or_latest, read_run_file
from harness.report.console.terminal import Amount
from harness.scenario.consent import Code, consented
from harness.scenario.left_open import ANY
from harness.scenario.scenario import RUNTIMES, Scenario, scenario_file, scenario_of
from harness.scenario.sut import sut_of
from nemesis.plan import Plan
from nemesis.validation import plan_from_json

UNTIL_FOUND_MAX = 1_000


class RunOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of `seamark run`, by name, with `_` for `-`."""

    cluster: str = "ndb"
    runtime: Runtime = "sim"
    workload: str | None = None  # None: for one run the cluster's first, for several any.
    seed: int | None = None  # None: drawn, and printed.
    time: float = 60.0
    rate: float = 100.0
    clients: int = 5
    timeout_ms: int = 1000
    keys: int | None = None
    nemesis: tuple[str, ...] | None = None
    style: str | None = None  # None: for one run a swarm, for several any.
    bug: tuple[str, ...] = ()
    option: dict[str, str] = {}  # The cluster's own. On the command line NAME=VALUE, and --isolation for that one.
    attach: str | None = None
    sut: dict[str, str] = {}  # On the command line NAME=VALUE.
    plan: str | None = None
    parameters: dict[str, int] = {}  # The cluster's parameters, and the operations of a shrunk run: see seamark shrink.
    script: Script | None = None
    count: int | None = None  # None: one; with until_found as many as needed, at most 1,000.
    jobs: int = 1
    twice: bool = False
    until_found: bool = False
    fail_fast: bool = False
    time_budget: float | None = None  # Seconds of real time for the whole command.
    min_runs: int = 1  # With fewer, a batch that found nothing is vacuous.
    engine: EngineName = "auto"
    model: str | None = None
    store: str = "store"
    json: bool = False
    quiet: bool = False
    verbose: bool = False

    def __post_init__(self) -> None:
        for name, value in (("count", self.runs), ("jobs", self.jobs)):
            if not 1 <= value <= 1_000_000:
                raise ScenarioError(f"{name} is {value}: it must be at least 1")
        if not 1 <= self.min_runs <= self.runs:
            raise ScenarioError(f"min_runs is {self.min_runs}: it must be from 1 to the {self.runs} of --count")
        if self.time_budget is not None and self.time_budget <= 0:
            raise ScenarioError(f"time_budget is {self.time_budget}: it must be above 0 seconds")
        if self.model is not None:
            models.decided(self.model)
        if self.twice and self.runtime == "docker":
            raise ScenarioError("--twice compares every record, which no run in containers repeats: use --runtime sim")

    @property
    def amount(self) -> Amount:
        """The amount of output that the options ask for."""
        return Amount(is_quiet=self.quiet, is_verbose=self.verbose)

    @property
    def runs(self) -> int:
        """The number of requested runs."""
        return self.count if self.count is not None else UNTIL_FOUND_MAX if self.until_found else 1

    @property
    def _usual(self) -> str | None:
        """The workload, or the style, if none is named."""
        return ANY if self.runs > 1 else None

    def scenario(self, seed: int) -> Scenario:
        """The scenario of one run."""
        return Scenario(
            cluster=self.cluster,
            runtime=self.runtime,
            workload=self.workload or self._usual,
            seed=seed,
            time_s=self.time,
            rate=self.rate,
            clients=self.clients,
            timeout_ms=self.timeout_ms,
            keys=self.keys,
            nemesis=self.nemesis,
            style=self.style or (self._usual if self.plan is None else None),
            bugs=self.bug,
            options=self.option,
            attach=self.attach,
            sut=self.sut,
            parameters=self.parameters,
            script=self.script,
        )


def run_options(path: Path | None, given: dict[str, Any]) -> tuple[RunOptions, Code, Plan | None]:
    """The options of a scenario file, overridden by those `given`; the cluster's code; the fault plan, if there is one.

    Raises ScenarioError if the file names code in a file, or containers to attach to, that `given` does not name too.
    """
    options: dict[str, Any] = {}
    plan: Plan | None = None
    if path is not None:
        path = or_latest(path)
        path = path / RUN_FILE if is_run(path) else path
        options = scenario_file(path)
        if "options" in options and "schema" in options:
            run = read_run_file(path)
            plan = run.plan
            options = _as_written(scenario_of(run, path))
    for name in options:
        known_at(path, name, RunOptions.__struct_fields__, "option")
    chosen = options.pop("option", {}) | _chosen(given)
    sut = options.pop("sut", {}) | sut_of(given.pop("sut", None))
    options |= {name: value for name, value in given.items() if value is not None and value != []}
    options |= {name: value for name, value in (("option", chosen), ("sut", sut)) if value}
    for name in ("nemesis", "bug"):
        if isinstance(options.get(name), str):
            options[name] = _names(options[name])
    for name, allowed in (("engine", get_args(EngineName)), ("runtime", RUNTIMES)):
        if isinstance(options.get(name), str):
            known(options[name], allowed, name)
    try:
        merged = msgspec.convert(options, RunOptions)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{path or 'the command line'}: {mistake(error)}") from None
    if merged.plan is not None:
        plan = plan_file(Path(merged.plan))
    by = path or Path()
    if merged.attach is not None and given.get("attach") is None:
        attach = shlex.quote(merged.attach)
        raise ScenarioError(f"{by}: strikes the containers of a project: if that may be, add --attach {attach}")
    return merged, consented(merged.cluster, by, given.get("cluster")), plan


def _chosen(given: dict[str, Any]) -> dict[str, str]:
    """The cluster's options on the command line. They are removed from `given`."""
    chosen = chosen_options(given.pop("option", None))
    isolation = given.pop("isolation", None)
    return chosen if isolation is None else chosen | {"isolation": isolation}


def chosen_options(texts: Sequence[str] | None) -> dict[str, str]:
    """The cluster's options as given on a command line, each as "NAME=VALUE"."""
    chosen: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ScenarioError(f"--option {text}: write NAME=VALUE, as in --option replication=sync")
        chosen[name] = value
    return chosen


def _as_written(scenario: Scenario) -> dict[str, Any]:
    """The fields of a scenario under the names of the options."""
    names = {"time_s": "time", "bugs": "bug", "options": "option"}
    return {names.get(name, name): value for name, value in msgspec.structs.asdict(scenario).items()}


def _names(text: str) -> tuple[str, ...]:
    """The names separated by commas; "none" means no names."""
    return () if text == "none" else tuple(name.strip() for name in text.split(",") if name.strip())


def plan_file(path: Path) -> Plan:
    """The plan in a file. `decide` makes the checks that need the cluster."""
    content = read_plain(path, ScenarioError)
    try:
        return plan_from_json(content)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None
