"""The configuration of a sweep: a TOML file with a matrix of runs, as written, and as checked cells.

The top of the file has the sweep's own options and the defaults of its cells. Each `[[matrix]]` table is a product of
its clusters, workloads, faults and runtimes; without one the top is the only matrix.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec

from harness.campaign.ledger.design import RUNS_MAX, Cell, Design
from harness.core.errors import ScenarioError, known_at
from harness.core.seams import Cluster
from harness.core.wording import mistake
from harness.record.documents import read_plain
from harness.record.store import Runtime
from harness.scenario.consent import Code, cluster_names, consented, on_command_line, place_of
from harness.scenario.left_open import ANY
from harness.scenario.registry import code_sha256_of, load_cluster, of_machines
from harness.scenario.scenario import RUNTIMES, Scenario, decide, options_in

BUDGET_MAX_S: Final = 1e9
USUAL, NO_FAULTS, EVERY = "usual", "none", "all"
NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*")  # The name of a sweep becomes that of a folder.
NO_SUT: Final[Mapping[str, str]] = MappingProxyType({})
KEEP: Final = ("red", "all")


class Matrix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A product of four lists, and the common options of its runs. The names are those of `seamark run`."""

    clusters: tuple[str, ...] = ()  # None: an empty file, such as one cut short, must not pass as a sweep.
    workloads: tuple[str, ...] = ()  # Empty: any, by the seed. "all": each of the cluster's, in a cell of its own.
    faults: tuple[str, ...] = (USUAL,)  # Each is a list of packages separated by commas, "usual" or "none".
    runtimes: tuple[Runtime, ...] = ("sim",)
    count: int = 50  # The number of runs of each cell, with seeds from `seed` on.
    time: float = 60.0
    rate: float = 100.0
    clients: int = 5
    timeout_ms: int = 1000
    keys: int | None = None
    style: str = ANY
    bug: tuple[str, ...] = ()
    option: dict[str, str] = {}

    def __post_init__(self) -> None:
        for name, instance in (("clusters", "ndb"), ("faults", USUAL), ("runtimes", "sim")):
            if not getattr(self, name):
                raise ScenarioError(f'{name} are not named, or none: write, for instance, {name} = ["{instance}"]')
        if not 1 <= self.count <= RUNS_MAX:
            raise ScenarioError(f"count is {self.count}: it must be from 1 to {RUNS_MAX:,}")


class Top(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the sweep itself. `time_budget`: seconds of real time, after which no run begins."""

    name: str
    seed: int = 0
    jobs: int | None = None  # None: as many as there are cores.
    time_budget: float | None = None
    min_runs: int | None = None  # With fewer judged runs the sweep is vacuous. None: all of them.
    keep: Literal["red", "all"] = "red"  # The runs whose folders are kept.
    sut: dict[str, str] = {}  # The release under test: name, version, commit, image.


class Config(Design, frozen=True, kw_only=True):
    """A sweep to carry out: its design, and how. `codes` is the code of its clusters, by the name in their scenario."""

    jobs: int | None
    keep: Literal["red", "all"]
    codes: dict[str, Code]

    def code_of(self, cell: Cell) -> Code:
        """The code of a cell's cluster."""
        return self.codes[cell.scenario.cluster]

    @property
    def in_files(self) -> tuple[str, ...]:
        """The names of the clusters whose code is in a file. The command line has named each of them."""
        return tuple(name for name, code in self.codes.items() if code.place is not None)

    @property
    def has_containers(self) -> bool:
        """True if some of its runs start containers."""
        return any(cell.scenario.runtime == "docker" for cell in self.cells)


def read_config(
    path: Path, *, seed: int | None = None, allowed: Sequence[str] = (), sut: Mapping[str, str] = NO_SUT
) -> Config:
    """The sweep in a TOML file. `seed` and `sut` replace those of the file; code in files that is `allowed` is loaded.

    Raises ScenarioError, with the place and the remedy, if it cannot be carried out.
    """
    return config_of(read_plain(path, ScenarioError), path=path, seed=seed, allowed=allowed, sut=sut)


def config_of(
    content: bytes,
    *,
    path: Path,
    seed: int | None = None,
    allowed: Sequence[str] = (),
    sut: Mapping[str, str] = NO_SUT,
) -> Config:
    """The sweep in the content of the file `path`. Raises ScenarioError as `read_config` does."""
    top, matrices = _parts(options_in(content, path), path)
    text = content.decode()
    top = top if seed is None else msgspec.structs.replace(top, seed=seed)
    consent = {on_command_line(name).name: name for name in allowed}
    every = [
        (_of_release(cell, top.sut | dict(sut)), code)
        for matrix in matrices
        for cell, code in _cells(matrix, top.seed, path, consent)
    ]
    cells = tuple(cell for cell, _ in every)
    planned = sum(cell.count for cell in cells)
    _require(top, planned, path)
    digest = sha256(msgspec.json.encode((text, top.seed, [cell.code_sha256 for cell in cells]))).hexdigest()
    return Config(
        path=str(path),
        text=text,
        sha256=digest,
        name=top.name,
        seed=top.seed,
        jobs=top.jobs,
        time_budget=top.time_budget,
        min_runs=top.min_runs or planned,
        keep=top.keep,
        cells=cells,
        codes={code.name: code for _, code in every},
    )


def _of_release(cell: Cell, sut: dict[str, str]) -> Cell:
    return msgspec.structs.replace(cell, scenario=msgspec.structs.replace(cell.scenario, sut=sut))


def _parts(given: Mapping[str, Any], path: Path) -> tuple[Top, list[Matrix]]:
    """The options of the sweep, and its matrices."""
    own, cell = Top.__struct_fields__, Matrix.__struct_fields__
    for name in given:
        known_at(path, name, (*own, *cell, "matrix"), "option")
    tables = given.get("matrix", [{}])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ScenarioError(f"{path}: matrix must be tables, each under a line [[matrix]]")
    for table in tables:
        for name in table:
            known_at(path, name, cell, "option of a matrix")
    defaults = {name: value for name, value in given.items() if name in cell}
    for name, allowed in (("runtimes", RUNTIMES), ("keep", KEEP)):
        for each in (given, *tables):
            for value in _texts(each.get(name)):
                known_at(path, value, allowed, name)
    try:
        top = msgspec.convert({"name": path.stem} | {n: v for n, v in given.items() if n in own}, Top)
        return top, [msgspec.convert(defaults | table, Matrix) for table in tables]
    except (msgspec.ValidationError, ScenarioError) as error:
        raise ScenarioError(f"{path}: {mistake(error)}") from None


def _texts(value: object) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _require(top: Top, planned: int, path: Path) -> None:
    if not NAME.fullmatch(top.name):
        raise ScenarioError(f"{path}: name is {top.name!r}: use letters, digits, dots and dashes, as it names a folder")
    if top.time_budget is not None and top.min_runs is None:
        raise ScenarioError(f"{path}: time_budget may end the sweep early: say with min_runs how few runs still count")
    if top.time_budget is not None and not 0 < top.time_budget <= BUDGET_MAX_S:
        raise ScenarioError(f"{path}: time_budget is {top.time_budget:g}: it must be above 0 seconds")
    if top.min_runs is not None and not 1 <= top.min_runs <= planned:
        raise ScenarioError(
            f"{path}: min_runs is {top.min_runs}: it must be from 1 to the {planned:,} runs of the sweep"
        )
    if planned > RUNS_MAX:
        raise ScenarioError(f"{path}: has {planned:,} runs, at most {RUNS_MAX:,} are possible: lower count")
    if top.jobs is not None and not 1 <= top.jobs <= 10_000:
        raise ScenarioError(f"{path}: jobs is {top.jobs}: it must be from 1 to 10,000")


def _cells(matrix: Matrix, seed: int, path: Path, codes: Mapping[str, str]) -> Iterator[tuple[Cell, Code]]:
    """The cells of a matrix, with their code.

    Each cluster is loaded, and its first seed decided, so that errors show at once.
    """
    for name in dict.fromkeys(matrix.clusters):
        code = _code(name, path, codes)
        code_sha256 = code_sha256_of(code)
        cluster = load_cluster(code, code_sha256)
        for workload, faults, runtime in product(_workloads(matrix, cluster), matrix.faults, matrix.runtimes):
            try:
                cell = _cell(matrix, code, cluster, seed=seed, workload=workload, faults=faults, runtime=runtime)
                if runtime == "sim":
                    of_machines(cluster)
                decide(cell.scenario, cluster)
            except ScenarioError as error:
                raise ScenarioError(f"{path}: {error}") from None
            yield msgspec.structs.replace(cell, code_sha256=code_sha256), code


def _cell(
    matrix: Matrix, code: Code, cluster: Cluster, *, seed: int, workload: str, faults: str, runtime: Runtime
) -> Cell:
    packages = tuple(each.strip() for each in faults.split(",") if each.strip())
    scenario = Scenario(
        cluster=code.name,
        runtime=runtime,
        workload=workload,
        seed=seed,
        time_s=matrix.time,
        rate=matrix.rate,
        clients=matrix.clients,
        timeout_ms=matrix.timeout_ms,
        keys=matrix.keys,
        nemesis=None if packages == (USUAL,) else () if packages == (NO_FAULTS,) else packages,
        style=matrix.style,
        bugs=matrix.bug,
        options=matrix.option,
    )
    return Cell(
        cluster=cluster.name,
        workload=workload,
        faults=", ".join(packages) or NO_FAULTS,
        scenario=scenario,
        code_sha256=None,
        count=matrix.count,
    )


def _workloads(matrix: Matrix, cluster: Cluster) -> tuple[str, ...]:
    if EVERY in matrix.workloads:
        return cluster.workloads
    return tuple(dict.fromkeys(matrix.workloads)) or (ANY,)


def _code(name: str, path: Path, codes: Mapping[str, str]) -> Code:
    """The code of a cluster that the file names. Code in a file needs consent on the command line."""
    if place_of(name) is not None and on_command_line(name).name in codes:
        return on_command_line(name)
    if place_of(name) is None:
        known_at(path, name, tuple(cluster_names()), "cluster")
    return consented(name, path, None)
