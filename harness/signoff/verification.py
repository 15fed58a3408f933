"""Whether a sign-off holds: it is derived again, kept runs are judged again, and drawn ones are carried out again.

What remains are rows that nothing here has looked behind: they are believed, and counted.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from random import SystemRandom
from typing import Final, NamedTuple

import msgspec

from harness.campaign.evidence import KIND, Evidence, differing, evidence_at
from harness.campaign.ledger.orders import require_same, store_of
from harness.campaign.ledger.rows import Row, classes_of, final_rows
from harness.campaign.task import Task, done
from harness.core.errors import HistoryError, ScenarioError, SeamarkError
from harness.core.wording import counted
from harness.judging.engines import in_threads
from harness.record.documents import read_document
from harness.record.ownership import temporary_folder
from harness.record.store import is_run, require_plain
from harness.report.model import Report
from harness.run.pool import LocalPool, results
from harness.run.single import judge_run
from harness.scenario.consent import Code, consented, on_command_line
from harness.signoff.decision import Inputs, sign_off
from harness.signoff.document import SIGNOFF_FILE, SIGNOFF_SCHEMA, Signoff

WORDS: Final = frozenset({"reasons", "reason", "rule", "seamark", "path", "text", "source", "sentence", "note", "why"})
DIFFERS, UNCHECKED = 1, 3  # Exit codes.


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to verify: the document, `replay` drawn runs of it, and where its sweeps are now, if not where they were.

    `allowed` is code in files that may be loaded: to judge by checks of its own, and to repeat runs.
    """

    document: Path
    baseline: Path | None = None
    candidate: Path | None = None
    replay: int = 0
    allowed: tuple[str, ...] = ()


class SideVerified(msgspec.Struct, frozen=True, kw_only=True):
    """One sweep: its runs, how many were judged again, and how many carried out again.

    `unrepeatable` says why none of its runs can be carried out again.
    """

    name: str
    runs: int
    judged: int
    repeated: int
    seeds: tuple[int, ...] = ()
    unrepeatable: str | None = None

    @property
    def believed(self) -> int:
        """The runs of which only their rows say what they showed."""
        return self.runs - self.judged - self.repeated


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome. `differences` are sentences; none if everything that was looked at agrees with the document."""

    decision: str
    signed_utc: str
    exit_code: int
    differences: tuple[str, ...]
    sides: tuple[SideVerified, ...]


class _Drawn(NamedTuple):
    """A run that is carried out again."""

    side: str
    row: Row


def verified(request: Request) -> Verified:
    """The document and what it rests on, compared. Raises ScenarioError or HistoryError if either cannot be read."""
    path = request.document / SIGNOFF_FILE if request.document.is_dir() else request.document
    document = read_document(path, Signoff, "a sign-off", SIGNOFF_SCHEMA)
    inputs = _inputs(request, document)
    again = sign_off(inputs, _day(document, path))
    differences = [
        f"{place} is {one} in the document, and {other} by what it rests on"
        for place, one, other in differing(msgspec.to_builtins(document), msgspec.to_builtins(again), WORDS)
    ]
    every = {"baseline": evidence_at(inputs.baseline), "candidate": evidence_at(inputs.candidate)}
    judged = {name: set[tuple[int, int]]() for name in every}
    for name, side in every.items():
        for row, report in _judged_again(request, side):
            judged[name].add(row.key)
            differences += _differences(f"{name}, {_title(row)}, judged again", row, report)
    drawn, unrepeatable = _drawn(request, every, judged)
    for each, outcome in _repeated(request, drawn, every):
        differences += _differences(f"{each.side}, {_title(each.row)}, carried out again", each.row, outcome)
    sides = tuple(
        SideVerified(
            name=name,
            runs=side.sweep.runs,
            judged=len(judged[name]),
            repeated=sum(each.side == name for each in drawn),
            seeds=tuple(sorted(each.row.seed for each in drawn if each.side == name)),
            unrepeatable=unrepeatable.get(name),
        )
        for name, side in every.items()
    )
    lacking = UNCHECKED if request.replay and not drawn else 0
    return Verified(
        decision=document.decision,
        signed_utc=document.signed_utc,
        exit_code=DIFFERS if differences else lacking,
        differences=tuple(differences),
        sides=sides,
    )


def _inputs(request: Request, document: Signoff) -> Inputs:
    """The inputs of the sign-off: where the document says that they are, or where the command line says."""
    files = {each.what: Path(each.path) for each in document.digests}
    return Inputs(
        baseline=request.baseline or Path(document.baseline.path),
        candidate=request.candidate or Path(document.candidate.path),
        waivers=files.get("waivers"),
        calibration=files.get("calibration"),
        signed_by=document.signed_by,
        ticket=document.ticket,
    )


def _day(document: Signoff, path: Path) -> date:
    try:
        return date.fromisoformat(document.signed_utc)
    except ValueError:
        raise HistoryError(f"{path}: signed_utc is {document.signed_utc}, which is no day") from None


def _title(row: Row) -> str:
    return f"cell {row.cell}, seed {row.seed}"


def _judged_again(request: Request, side: Evidence) -> Iterator[tuple[Row, Report | str]]:
    """The rows whose run's folder was kept and is still in the store, each with its report, or why there is none."""
    try:
        store = store_of(side.folder, KIND)
    except ScenarioError:
        return  # A copy of the sweep's folder alone: no run is beside it.
    allowed = {code.name: code for code in map(on_command_line, request.allowed)}
    for row in final_rows(side.kept.rows):
        if row.report.run is None:
            continue
        code = allowed.get(side.order.design.cells[row.cell].scenario.cluster)
        run = store / Path(row.report.run).parent.name / Path(row.report.run).name  # Wherever the store is now.
        if is_run(run) and run.resolve().parents[1] == store.resolve():  # Not through a link, nor "..".
            try:
                require_plain(run)
                yield row, judge_run(run, in_threads, code=code)
            except SeamarkError as error:
                yield row, str(error)


def _drawn(
    request: Request, every: dict[str, Evidence], judged: dict[str, set[tuple[int, int]]]
) -> tuple[list[_Drawn], dict[str, str]]:
    """The runs to carry out again, and for each side of which none can be, why."""
    pool, unrepeatable = list[_Drawn](), dict[str, str]()
    if not request.replay:
        return pool, unrepeatable
    for name, side in every.items():
        try:
            require_same(side.folder, side.order, _codes(request, side).values(), KIND)
        except ScenarioError as error:
            unrepeatable[name] = str(error)
            continue
        cells = side.order.design.cells
        rows = [row for row in final_rows(side.kept.rows) if cells[row.cell].scenario.runtime == "sim"]
        if not rows:
            unrepeatable[name] = "only simulated runs can be carried out again"
        pool += [_Drawn(name, row) for row in rows if row.key not in judged[name]]
    return SystemRandom().sample(pool, min(request.replay, len(pool))), unrepeatable


def _codes(request: Request, side: Evidence) -> dict[str, Code]:
    """The code of the side's clusters. Raises ScenarioError if one is in a file that the command line does not name."""
    allowed = {code.name: code for code in map(on_command_line, request.allowed)}
    names = dict.fromkeys(cell.scenario.cluster for cell in side.order.design.cells)
    return {name: allowed.get(name) or consented(name, side.folder, None) for name in names}


def _repeated(
    request: Request, drawn: Sequence[_Drawn], every: dict[str, Evidence]
) -> Iterator[tuple[_Drawn, Report | str]]:
    """The drawn runs, each with the report of a run that is made now, or why there is none."""
    if not drawn:
        return
    with temporary_folder("verify") as folder, LocalPool(done) as pool:
        tasks = [_task(request, every[each.side], each.row, number, folder) for number, each in enumerate(drawn)]
        waiting = iter(tasks)
        for task, result in results(pool, lambda: next(waiting, None)):
            yield drawn[task.cell], result.report if isinstance(result, Row) else str(result)


def _task(request: Request, side: Evidence, row: Row, number: int, folder: Path) -> Task:
    scenario = side.order.design.cells[row.cell].scenario
    return Task(
        cell=number,
        attempt=1,
        scenario=msgspec.structs.replace(scenario, seed=row.seed),
        code=_codes(request, side)[scenario.cluster],
        folder=folder,
        store=folder,
        keep="none",
    )


def _differences(what: str, row: Row, report: Report | str) -> Iterator[str]:
    """Sentences about what another look at a run has found to be other than its row says."""
    if isinstance(report, str):
        yield f"{what}: {report}"
        return
    for name, one, other in (
        ("verdict", row.report.verdict, report.verdict),
        ("history", row.report.history_sha256, report.history_sha256),
        ("findings", _classes(row.report), _classes(report)),
    ):
        if one != other:
            yield f"{what}: its {name} is {other or 'none'}, and its row says {one or 'none'}"


def _classes(report: Report) -> str:
    return ", ".join(sorted(set(classes_of(report))))


def lines(found: Verified) -> Iterator[str]:
    """What was looked at, for people."""
    for side in found.sides:
        kept = f"{counted(side.judged, 'kept run')} judged again" if side.judged else "no kept run to judge again"
        yield f"  {side.name:<10}{counted(side.runs, 'run')}; its chain of rows is whole; {kept}"
        if side.repeated:
            seeds = ", ".join(map(str, side.seeds))
            yield f"  repeated  {counted(side.repeated, 'drawn run')} of the {side.name}: seeds {seeds}"
        if side.unrepeatable is not None:
            yield f"  not repeated  {side.name}: {side.unrepeatable}"
    yield from (f"  differs   {each}" for each in found.differences)
    believed, runs = sum(side.believed for side in found.sides), sum(side.runs for side in found.sides)
    yield f"  believed  {believed:,} of {counted(runs, 'run')}: only their rows say what they showed"
