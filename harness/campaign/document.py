"""sweep.json as a value: the outcome of a sweep, for the page, for sign-off and for other tools.

The schema has a version, and names are never reused. Null means that a fact is unknown; an empty list is a fact.
Rates are shares of judged runs, from 0 to 1; times are UTC, as in "2026-11-23T19:09:10Z".
"""

from pathlib import Path
from typing import Final

import msgspec

from harness.core.errors import HistoryError
from harness.record.bounded import Amount, Count, PromiseCode, Seed, Share, VerdictCode
from harness.record.documents import read_document

SWEEP_SCHEMA: Final = 1
SWEEP_FILE: Final = "sweep.json"
SWEEPS: Final = "sweeps"  # The folder of sweeps in a store: sweeps/NAME/UTC-SEED/sweep.json.


class SweepConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration. `text` is the file as written, `sha256` the hash of it and of the command line's additions."""

    path: str
    text: str
    sha256: str


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """Behaviour under faults, over some runs, from reports alone.

    `unknown_share`: operations with an unknown outcome, of all. Seconds are of the runs' own time: `recovery_s` from
    the start of healing to the first success of the final phase. None: no run has the value.
    """

    unknown_share: Share | None = None
    failed_share: Share | None = None
    ok_per_s: Amount | None = None
    recovery_s_median: Amount | None = None
    recovery_s_worst: Amount | None = None
    watermark_stall_s_median: Amount | None = None
    watermark_stall_s_worst: Amount | None = None


class SweepCell(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of the matrix. `planned` runs were requested, `runs` of them judged.

    `verdict` is that of this cell's runs by the rule of the sweep; `counts` has their own verdicts, by code.
    `hours` is the runs' own time. `findings` are fingerprints.
    """

    cluster: str
    workload: str
    faults: str  # Packages of faults separated by commas; "usual" for those of the cluster, "none" for none.
    runtime: str
    bugs: tuple[str, ...] = ()
    planned: Count
    runs: Count
    verdict: VerdictCode
    reason: str
    clause: str | None = None
    counts: dict[str, Count]
    operations: dict[str, Count]
    hours: Amount
    findings: tuple[str, ...] = ()
    numbers: Numbers = Numbers()


class SweepFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A class of findings: those with one fingerprint, over all runs.

    The fingerprint is a hash of cluster, anomaly, promise, check and the shape of the cycle: the same in every run and
    every night. `runs` of the `judged` runs of that cluster show it, `count` times; `rate` is their share. `first_seen`
    and `last_seen` include earlier sweeps of this name in the store. `first_seed` is the lowest seed of this sweep.
    """

    fingerprint: str
    cluster: str
    anomaly: str
    promise: str | None
    checker: str
    sentence: str
    count: Count
    runs: Count
    judged: Count
    rate: Share
    first_seen: str
    last_seen: str
    first_seed: Seed
    first_run: str | None = None  # The folder of the run with that seed, if it was kept.
    command: str | None = None  # The command that repeats it.
    is_new: bool = True  # No earlier sweep of this name shows it.


class SweepPromise(msgspec.Struct, frozen=True, kw_only=True):
    """A promise of a cluster, over all its runs. `verdict`: holds, violated, unknown or not-exercised."""

    cluster: str
    id: str
    verdict: PromiseCode
    witnesses: Count
    counts: dict[str, Count] = {}  # Runs by their verdict on it.
    text: str = ""
    source: str = ""
    is_purpose: bool = True
    reason: str | None = None


class SweepFault(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault on a cluster, over all its runs: steps planned, begun and with effect.

    `met` is the number of operations that were open during a step with effect. `is_exercised`: it had an effect, and
    enough such operations.
    """

    cluster: str
    kind: str
    planned: Count
    begun: Count
    effective: Count
    met: Count
    is_exercised: bool


class SweepRed(msgspec.Struct, frozen=True, kw_only=True):
    """A run with a finding or an error, and the command that makes it again on any machine."""

    cluster: str
    workload: str
    seed: Count
    verdict: str
    command: str


class SweepTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt at a run in which the harness failed. `is_recovered`: the next attempt was judged."""

    cluster: str
    workload: str
    faults: str
    runtime: str
    seed: Seed
    attempt: Count
    reason: str
    is_recovered: bool


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a sweep. `stopped`: why not all `planned` runs were begun."""

    schema: int = SWEEP_SCHEMA
    id: str = ""  # That of its order: no other sweep has it.
    name: str
    verdict: VerdictCode
    exit_code: int
    reason: str
    clause: str | None = None
    rule: str = ""  # The rule by which a sweep is judged, in a sentence or two.
    started_utc: str
    finished_utc: str
    versions: dict[str, str]
    sut: dict[str, str] = {}  # The release of the system under test, as declared.
    config: SweepConfig
    planned: Count
    runs: Count
    min_runs: Count
    stopped: str | None = None
    counts: dict[str, Count]  # Judged runs by their own verdict.
    operations: dict[str, Count]
    hours: Amount  # The runs' own time.
    seconds: Amount  # Real time, over all sessions of a resumed sweep.
    history_sha256: str  # The hash of all rows' seeds, verdicts and history hashes, in order.
    rows_sha256: str = ""  # The end of the chain of its rows.
    cells: tuple[SweepCell, ...]
    findings: tuple[SweepFinding, ...]
    promises: tuple[SweepPromise, ...]
    faults: tuple[SweepFault, ...]
    goals: dict[str, Count] = {}  # Runs that reached each, as CLUSTER/GOAL.
    trouble: tuple[SweepTrouble, ...] = ()
    red: tuple[SweepRed, ...] = ()
    folder: str | None = None  # Its own.


def sweep_to_json(sweep: Sweep) -> bytes:
    """sweep.json as indented text."""
    return msgspec.json.format(msgspec.json.encode(sweep, order="sorted"), indent=1) + b"\n"


def read_sweep(path: Path) -> Sweep:
    """The sweep in that folder, or in that sweep.json. Raises HistoryError that names the file and what is wrong."""
    path = path / SWEEP_FILE if path.is_dir() else path
    return read_document(path, Sweep, "a sweep", SWEEP_SCHEMA)


def earlier_sweeps(folder: Path) -> list[Sweep]:
    """The readable sweeps of the same name beside that folder that began before it, the first one first.

    A sweep that has not ended, or whose file is damaged, is left out.
    """
    found = []
    for each in sorted(folder.parent.iterdir()) if folder.parent.is_dir() else ():
        if each.name < folder.name and (each / SWEEP_FILE).is_file():
            try:
                found.append(read_sweep(each))
            except HistoryError:
                continue
    return found
