"""A test and all choices of its seed. The user writes a `Scenario`; `decide` draws the rest."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

import msgspec

from harness.core.draw import Draw, Stream
from harness.core.errors import HistoryError, ScenarioError, known
from harness.core.generators.scripted import Script
from harness.core.machine import Settings
from harness.core.seams import Cluster, Workload, is_of_services
from harness.core.system import CLIENT, SUBSCRIBER
from harness.record.documents import decoded, read_plain, tables_in
from harness.record.store import RUN_FILE, RunFile, Runtime
from harness.scenario.left_open import ANY, STYLE_NAMES, style_of, workload_of
from harness.scenario.sut import required
from harness.scenario.workloads import WORKLOADS, WorkloadOptions
from nemesis.faults.crash import loses_writes
from nemesis.plan import Plan
from nemesis.registry import PACKAGES, UNATTACHABLE
from nemesis.styles.field import Field
from nemesis.styles.styles import SWARM, draw_styled
from nemesis.swarm import IN_CONTAINERS, ON_REQUEST, UNITS, UNITS_IN_CONTAINERS, draw_plan
from nemesis.topology import MEMBERSHIP, UPGRADES, Topology
from nemesis.validation import validate

SECOND = 1_000_000_000
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)
# The least and the greatest value of each number, by the name of its option.
LIMITS: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "time": (1, 86_400),
        "rate": (0.1, 10_000),
        "clients": (1, 1_000),
        "timeout_ms": (1, 600_000),
        "seed": (0, 2**63 - 1),
        "keys": (1, 100_000),
    }
)
EXTREME = (1, 4)  # The share of cases in which a parameter has its least or greatest value.
WORKLOAD_SHAPE = (("key_count", 6, 12), ("max_txn_length", 3, 6))  # The fields of WorkloadOptions that a seed draws.


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One test. `nemesis` names packages of faults; None: every package that the cluster supports.

    `workload` and `style` may be `any`: the seed draws one.
    """

    cluster: str = "ndb"
    runtime: Runtime = "sim"
    workload: str | None = None  # None: the cluster's first.
    seed: int = 0
    time_s: float = 60.0
    rate: float = 100.0  # Operations due per second, over all clients.
    clients: int = 5
    timeout_ms: int = 1000
    keys: int | None = None  # Keys in use at a time. None: a few, drawn from the seed.
    nemesis: tuple[str, ...] | None = None
    style: str | None = None  # How the plan is drawn. None: as a swarm.
    bugs: tuple[str, ...] = ()
    options: dict[str, str] = {}  # The cluster's own options, such as its isolation level.
    attach: str | None = None  # A project of docker compose: its containers are the nodes.
    parameters: dict[str, int] = {}  # Parameters of the cluster, instead of those that the seed draws.
    sut: dict[str, str] = {}  # The release of the system under test: see harness/scenario/sut.py.
    script: Script | None = None  # Operations to carry out instead of the workload's.

    def __post_init__(self) -> None:
        for name, value in (
            ("time", self.time_s),
            ("rate", self.rate),
            ("clients", self.clients),
            ("timeout_ms", self.timeout_ms),
            ("seed", self.seed),
            ("keys", 1 if self.keys is None else self.keys),
        ):
            low, high = LIMITS[name]
            if not low <= value <= high:
                raise ScenarioError(f"{name} is {value}: it must be from {low} to {high}")
        required(self.sut)
        if self.script is not None and any(not 0 <= due.thread < self.clients for due in self.script.load):
            raise ScenarioError(f"script: its threads must be from 0 to {self.clients - 1}, by clients")


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario's settings, plan and workload for one seed. `shape` holds the workload's drawn values, by name."""

    settings: Settings
    shape: dict[str, int]
    plan: Plan
    workload: Workload


def scenario_of(run_file: RunFile, path: Path) -> Scenario:
    """The scenario in the run.json at `path`. Raises HistoryError if there is none."""
    try:
        return msgspec.convert(run_file.options, Scenario)
    except msgspec.ValidationError as error:
        raise HistoryError(f"{path}: its options are no scenario ({error})") from None


def named(scenario: Scenario, workloads: Sequence[str]) -> Scenario:
    """The scenario with the seed's choices where it leaves the workload, one of these, or the style open.

    It makes the same run. Only simulated runs have a style.
    """
    draw, workload, style = Draw(scenario.seed), scenario.workload, scenario.style
    if workload == ANY:
        workload = workload_of(draw, workloads)
    if style is not None:
        known(style, STYLE_NAMES, "style of fault plans")
    if style == ANY:
        style = style_of(draw)
    if scenario.runtime == "docker" or style == SWARM:
        style = None
    return msgspec.structs.replace(scenario, workload=workload, style=style)


def decide(scenario: Scenario, cluster: Cluster, plan: Plan | None = None) -> Decided:
    """The parameters, fault plan and workload of that seed; a given `plan` replaces the drawn one.

    Raises ScenarioError if the scenario needs something that the cluster lacks.
    """
    scenario = named(scenario, cluster.workloads)
    if scenario.bugs and not cluster.bugs:
        raise ScenarioError(f"{cluster.name} has no planted bugs")
    for bug in scenario.bugs:
        known(bug, tuple(cluster.bugs), f"bug of {cluster.name}")
    if plan is not None:
        struck = _reachable(topology(cluster, scenario.options), scenario)
        _refuse_unattached(scenario, tuple("power" if loses_writes(step) else step.fault for step in plan.steps))
        validate(plan, struck, duration_ns=int(scenario.time_s * SECOND), runtime=scenario.runtime)
    draw = Draw(scenario.seed)
    stream = draw.stream("parameters")
    usual = stream.between if scenario.style is None else partial(_to_the_limit, stream)
    parameters = {each.name: usual(each.low, each.high) for each in cluster.parameters}
    parameters |= _given(scenario.parameters, cluster)
    shaping = draw.stream("workload-shape")
    shape = {name: shaping.between(low, high) for name, low, high in WORKLOAD_SHAPE}
    shape |= {} if scenario.keys is None else {"key_count": scenario.keys}
    return Decided(
        shape=shape,
        settings=Settings(
            bugs=frozenset(scenario.bugs), parameters=parameters, options=_options(scenario.options, cluster)
        ),
        plan=plan if plan is not None else _drawn_plan(scenario, cluster, draw),
        workload=_workload(scenario, cluster, shape),
    )


def _to_the_limit(stream: Stream, low: int, high: int) -> int:
    """A value of a parameter, sometimes its least or greatest."""
    return stream.choice((low, high)) if stream.chance(*EXTREME) else stream.between(low, high)


def topology(cluster: Cluster, options: Mapping[str, str] | None = None) -> Topology:
    """The cluster with these options, or their defaults, as fault packages see it."""
    can_change = is_of_services(cluster) and getattr(cluster, "membership", None) is not None
    is_upgradable = upgraded(cluster, options or {}) is not None
    return Topology(
        nodes=tuple((str(node.id), node.role) for node in cluster.nodes),
        links=dict(cluster.links),
        points=cluster.points,
        point_roles=getattr(cluster, "point_roles", {}),
        clockless=tuple(node.id for node in cluster.nodes if is_of_services(cluster) and node.role == SUBSCRIBER),
        procedures=(MEMBERSHIP,) * can_change + (UPGRADES,) * is_upgradable,
    )


def upgraded(cluster: Cluster, options: Mapping[str, str]) -> dict[str, str] | None:
    """The options to which a rolling upgrade takes the cluster's servers; None if none is declared."""
    given = {each.name: options.get(each.name, each.values[0]) for each in cluster.options}
    later = {
        each.name: each.upgrades[given[each.name]] for each in cluster.options if given[each.name] in each.upgrades
    }
    return given | later if later else None


def _reachable(whole: Topology, scenario: Scenario) -> Topology:
    """The part of the topology that faults can reach: of attached servers only links to others, through a proxy."""
    if scenario.attach is None:
        return whole
    outside = (CLIENT, SUBSCRIBER)
    links = {pair: kind for pair, kind in whole.links.items() if pair[0] in outside or pair[1] in outside}
    return msgspec.structs.replace(whole, links=links)


def worth_striking(whole: Topology, cluster: Cluster) -> Topology:
    """The topology without links that carry no traffic and clocks that decide nothing: faults there have no effect."""
    idle = {pair for source, target in getattr(cluster, "idle", ()) for pair in ((source, target), (target, source))}
    links = {pair: kind for pair, kind in whole.links.items() if pair not in idle}
    roles = getattr(cluster, "clock_roles", None)
    unread = () if roles is None else tuple(node for node, role in whole.nodes if role not in roles)
    return msgspec.structs.replace(whole, links=links, clockless=(*whole.clockless, *unread))


def _refuse_unattached(scenario: Scenario, faults: tuple[str, ...]) -> None:
    """Raise ScenarioError if one of the faults needs servers that the run itself starts."""
    refused = [fault for fault in faults if fault in UNATTACHABLE]
    if scenario.attach is not None and refused:
        raise ScenarioError(f"{refused[0]} must be prepared when a server is started: not with --attach")


def scenario_file(path: Path) -> dict[str, Any]:
    """The options in a TOML or JSON file; names are not checked. Raises ScenarioError if it cannot be read."""
    return options_in(read_plain(path, HistoryError if path.name == RUN_FILE else ScenarioError), path)


def options_in(content: bytes, path: Path) -> dict[str, Any]:
    """The options in the content of the TOML or JSON file `path`. Raises ScenarioError if it is none."""
    if path.suffix != ".json":
        return tables_in(content, path)
    try:
        options = decoded(content, object)
    except ValueError as error:
        raise ScenarioError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(options, dict):
        raise ScenarioError(f"{path}: a scenario is a table of options, such as seed = 7")
    return options


def _drawn_plan(scenario: Scenario, cluster: Cluster, draw: Draw) -> Plan:
    usual = (*cluster.faults, *IN_CONTAINERS) if scenario.runtime == "docker" else cluster.faults
    if scenario.attach is not None:
        usual = tuple(name for name in usual if name not in UNATTACHABLE)
    names = usual if scenario.nemesis is None else scenario.nemesis
    _refuse_unattached(scenario, names)
    requested = ON_REQUEST if is_of_services(cluster) else ()
    for name in names:
        known(name, tuple(dict.fromkeys((*cluster.faults, *IN_CONTAINERS, *requested))), f"fault of {cluster.name}")
    packages = tuple(PACKAGES[name] for name in names)
    units = UNITS_IN_CONTAINERS if scenario.runtime == "docker" else UNITS
    struck = worth_striking(_reachable(topology(cluster, scenario.options), scenario), cluster)
    duration_ns = int(scenario.time_s * SECOND)
    styled = None
    if scenario.style is not None and packages:
        styled = draw_styled(scenario.style, Field(struck, packages, duration_ns), draw)
    plan = styled or draw_plan(struck, packages, draw, duration_ns=duration_ns, units=units)
    validate(plan, struck, runtime=scenario.runtime)
    return plan


def _options(given: dict[str, str], cluster: Cluster) -> dict[str, str]:
    """Every option of the cluster, with its given or default value."""
    if given and not cluster.options:
        raise ScenarioError(f"{cluster.name} has no options")
    for name, value in given.items():
        known(name, tuple(each.name for each in cluster.options), f"option of {cluster.name}")
        known(value, next(each.values for each in cluster.options if each.name == name), name)
    return {each.name: given.get(each.name, each.values[0]) for each in cluster.options}


def _given(given: dict[str, int], cluster: Cluster) -> dict[str, int]:
    """The given parameters. Raises ScenarioError if the cluster lacks one, or if its value is out of range."""
    declared = {each.name: each for each in cluster.parameters}
    for name, value in given.items():
        low, high = declared[known(name, tuple(declared), f"parameter of {cluster.name}")].low, declared[name].high
        if not low <= value <= high:
            raise ScenarioError(f"parameter {name} is {value}: it must be from {low} to {high}")
    return given


def _workload(scenario: Scenario, cluster: Cluster, shape: dict[str, int]) -> Workload:
    name = known(scenario.workload or cluster.workloads[0], cluster.workloads, f"workload of {cluster.name}")
    options = WorkloadOptions(
        seed=scenario.seed,
        rate_per_s=scenario.rate,
        duration_ns=int(scenario.time_s * SECOND),
        threads=scenario.clients,
        key_count=shape["key_count"],
        max_txn_length=shape["max_txn_length"],
    )
    workload = WORKLOADS[name](options)
    if scenario.script is None:
        return workload
    load, final = scenario.script.generators()
    return msgspec.structs.replace(workload, load=load, final=final)
