"""The document of a sweep, from its rows and from earlier sweeps of the same name."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from checkers.verdict.groups import rank
from harness.campaign.document import (
    Numbers,
    Sweep,
    SweepCell,
    SweepConfig,
    SweepFault,
    SweepFinding,
    SweepPromise,
    SweepRed,
    SweepTrouble,
)
from harness.campaign.exposure import Exposure
from harness.campaign.judgement import RULE, counted, exposures_of, verdict_of_cell, verdict_of_sweep
from harness.campaign.ledger.design import Cell, Design, Order
from harness.campaign.ledger.rows import Kept, Row, final_rows
from harness.core.verdict import FAILED, Verdict
from harness.report.model import Report
from harness.scenario.command import command_of
from harness.scenario.scenario import named

HOUR_S: Final = 3600.0


def utc_now() -> str:
    """The current time (UTC) in the form of all documents."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def sweep_of(
    order: Order,
    kept: Kept[Row],
    *,
    earlier: Sequence[Sweep] = (),
    folder: Path,
) -> Sweep:
    """The document of a sweep that has ended: everything in it but what `earlier` sweeps of its name say is derived
    from its order and its rows, which are all attempts.
    """
    design, rows = order.design, kept.rows
    final = final_rows(rows)
    exposures = exposures_of(design, final)
    stopped = _stopped(design, final)
    verdict, reason, clause = verdict_of_sweep(design, final, exposures, stopped)
    reports = [row.report for row in final]
    return Sweep(
        id=order.id,
        name=design.name,
        verdict=verdict.value,
        exit_code=verdict.exit_code,
        reason=reason,
        clause=clause,
        rule=RULE,
        started_utc=order.started_utc,
        finished_utc=max((row.finished_utc for row in rows), default=order.started_utc),
        versions=order.versions,
        sut=_image(reports) | design.cells[0].scenario.sut,
        config=SweepConfig(path=design.path, text=design.text, sha256=design.sha256),
        planned=design.planned,
        runs=len(final),
        min_runs=design.min_runs,
        stopped=stopped,
        counts=counted(reports),
        operations=_operations(reports),
        hours=_hours(reports),
        seconds=max((row.elapsed_s for row in rows), default=0.0),
        history_sha256=_identity(final),
        rows_sha256=kept.chain[-1],
        cells=tuple(_cell(cell, [row for row in final if row.cell == n]) for n, cell in enumerate(design.cells)),
        findings=tuple(_findings(order, final, earlier)),
        promises=tuple(_promises(exposures)),
        faults=tuple(_faults(exposures)),
        goals=_goals(design, final),
        trouble=tuple(_trouble(design, rows)),
        red=tuple(_red(design, final)),
        folder=str(folder),
    )


def _image(reports: Sequence[Report]) -> dict[str, str]:
    """The image that all runs tested, as part of the release; empty if there is none, or several."""
    images = {report.sut.get("image") for report in reports if report.verdict != Verdict.ERROR.value}
    image = next(iter(images)) if len(images) == 1 else None
    return {} if image is None else {"image": image}


def _stopped(design: Design, final: Sequence[Row]) -> str | None:
    """Why a sweep that has ended made fewer runs than planned."""
    if design.time_budget is None or len(final) == design.planned:
        return None
    return f"the time budget of {design.time_budget:g} s is used up"


def _identity(rows: Sequence[Row]) -> str:
    """One hash of the outcomes of all runs, independent of the order in which they ended."""
    facts = [(row.cell, row.seed, row.report.verdict, row.report.history_sha256) for row in rows]
    return sha256(msgspec.json.encode(facts)).hexdigest()


def _operations(reports: Iterable[Report]) -> dict[str, int]:
    total = Counter[str]({"ok": 0, "fail": 0, "info": 0})
    for report in reports:
        total.update(report.operations)
    return dict(total)


def _hours(reports: Iterable[Report]) -> float:
    return round(sum(report.duration_s or 0.0 for report in reports) / HOUR_S, 4)


def _cell(cell: Cell, rows: Sequence[Row]) -> SweepCell:
    reports = [row.report for row in rows]
    verdict, reason, clause = verdict_of_cell(cell, reports)
    return SweepCell(
        cluster=cell.cluster,
        workload=cell.workload,
        faults=cell.faults,
        runtime=cell.scenario.runtime,
        bugs=cell.scenario.bugs,
        planned=cell.count,
        runs=len(rows),
        verdict=verdict.value,
        reason=reason,
        clause=clause,
        counts=counted(reports),
        operations=_operations(reports),
        hours=_hours(reports),
        findings=tuple(sorted({name for row in rows for name in row.classes})),
        numbers=_numbers(reports),
    )


def _numbers(reports: Sequence[Report]) -> Numbers:
    """The behaviour of the system under the faults of these runs."""
    operations, seconds = _operations(reports), sum(report.duration_s or 0.0 for report in reports)
    total = sum(operations.values())
    known = [report.exposure for report in reports if report.exposure is not None]
    recoveries = [each.recovery_s for each in known if each.recovery_s is not None]
    gaps = [each.watermark_gap_s for each in known if each.watermark_gap_s is not None]
    return Numbers(
        unknown_share=round(operations["info"] / total, 6) if total else None,
        failed_share=round(operations["fail"] / total, 6) if total else None,
        ok_per_s=round(operations["ok"] / seconds, 3) if seconds else None,
        recovery_s_median=median(recoveries) if recoveries else None,
        recovery_s_worst=max(recoveries, default=None),
        watermark_stall_s_median=median(gaps) if gaps else None,
        watermark_stall_s_worst=max(gaps, default=None),
    )


def _findings(order: Order, rows: Sequence[Row], earlier: Sequence[Sweep]) -> list[SweepFinding]:
    """The classes: broken promises first, causes before consequences, then by the runs that show them."""
    shown: dict[str, list[Row]] = {}
    cells = order.design.cells
    judged = Counter(cells[row.cell].cluster for row in rows if not row.is_trouble)
    for row in rows:
        for name in dict.fromkeys(row.classes):
            shown.setdefault(name, []).append(row)
    found = [_finding(name, hits, judged[cells[hits[0].cell].cluster], order, earlier) for name, hits in shown.items()]
    return sorted(found, key=lambda each: (each.promise is None, rank(each.anomaly), -each.runs, each.fingerprint))


def _finding(name: str, rows: Sequence[Row], judged: int, order: Order, earlier: Sequence[Sweep]) -> SweepFinding:
    first = min(rows, key=lambda row: (row.seed, row.cell))
    cell = order.design.cells[first.cell]
    every = [one for row in rows for one, own in zip(row.report.findings, row.classes, strict=True) if own == name]
    example = next(one for one, own in zip(first.report.findings, first.classes, strict=True) if own == name)
    before = [each for sweep in earlier for each in sweep.findings if each.fingerprint == name]
    times = [row.finished_utc or order.started_utc for row in rows]
    return SweepFinding(
        fingerprint=name,
        cluster=cell.cluster,
        anomaly=example.anomaly,
        promise=example.promise,
        checker=example.checker,
        sentence=example.sentence,
        count=sum(one.count for one in every),
        runs=len(rows),
        judged=judged,
        rate=round(len(rows) / judged, 6) if judged else 0.0,
        first_seen=min([each.first_seen for each in before] or times),
        last_seen=max(times),
        first_seed=first.seed,
        first_run=first.report.run,
        command=_command(cell, first.seed, first.report),
        is_new=not before,
    )


def command_of_red(design: Design, row: Row) -> str | None:
    """The command that makes a run on any machine that needs a person; None for any other run.

    It names no code that only the sweep's folder names.
    """
    if row.report.verdict not in FAILED:
        return None
    return row.report.anywhere or _command(design.cells[row.cell], row.seed, row.report)


def _command(cell: Cell, seed: int, report: Report) -> str:
    scenario = msgspec.structs.replace(cell.scenario, seed=seed)
    if report.workload is not None:  # Else it failed before the workload was drawn.
        scenario = named(msgspec.structs.replace(scenario, workload=report.workload), ())
    return command_of(scenario, code_sha256=cell.code_sha256)


def _promises(exposures: Mapping[str, Exposure]) -> Iterator[SweepPromise]:
    for cluster, exposure in exposures.items():
        for each in exposure.promises:
            yield SweepPromise(
                cluster=cluster,
                id=each.id,
                verdict=each.state.value,
                witnesses=each.witnesses,
                counts=each.counts,
                text=each.text,
                source=each.source,
                is_purpose=each.is_purpose,
                reason=each.reason,
            )


def _faults(exposures: Mapping[str, Exposure]) -> Iterator[SweepFault]:
    for cluster, exposure in exposures.items():
        for each in exposure.faults:
            yield SweepFault(
                cluster=cluster,
                kind=each.kind,
                planned=each.planned,
                begun=each.begun,
                effective=each.effective,
                met=each.met,
                is_exercised=each.is_exercised,
            )


def _goals(design: Design, rows: Sequence[Row]) -> dict[str, int]:
    """The number of runs that reached each goal."""
    reached = Counter[str]()
    for row in rows:
        cluster = design.cells[row.cell].cluster
        reached.update({f"{cluster}/{goal}": int(count > 0) for goal, count in row.report.goals.items()})
    return dict(reached)


def _red(design: Design, rows: Sequence[Row]) -> Iterator[SweepRed]:
    """The runs that need a person, each with its command."""
    for row in rows:
        command = command_of_red(design, row)
        if command is not None:
            cell = design.cells[row.cell]
            yield SweepRed(
                cluster=cell.cluster,
                workload=row.report.workload or cell.workload,
                seed=row.seed,
                verdict=row.report.verdict,
                command=command,
            )


def _trouble(design: Design, rows: Sequence[Row]) -> Iterator[SweepTrouble]:
    judged = {row.key for row in rows if not row.is_trouble}
    for row in rows:
        if row.is_trouble:
            cell = design.cells[row.cell]
            yield SweepTrouble(
                cluster=cell.cluster,
                workload=row.report.workload or cell.workload,
                faults=cell.faults,
                runtime=cell.scenario.runtime,
                seed=row.seed,
                attempt=row.attempt,
                reason=row.report.reason,
                is_recovered=row.key in judged,
            )
