"""The facts about a run besides its judgements: its load, each fault of its plan, and how it ended."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from checkers.verdict.compose import PlannedFault, RunFacts
from checkers.words.checks import TRANSACTIONS
from harness.core.verdict import Judgement
from harness.judging.promised import MISSING, closes_writes
from harness.judging.unjudged import events_without_contract
from harness.record.exposure import SECOND, Exposure
from harness.record.formats.load import Loaded
from harness.record.formats.parquet.parquet import hash_of
from harness.record.formats.promise_file import Promised
from harness.record.store import RunFile
from harness.report.model import FaultRow

CUT_SHORT = "its journal was cut short"


def facts_of(
    loaded: Loaded,
    exposure: Exposure,
    judgements: Sequence[Judgement],
    *,
    declared: RunFile | Promised | None,
    failure: str | None,
) -> RunFacts:
    """The facts about a run of ours, if `declared` is its run.json, or else about a foreign history."""
    if isinstance(declared, RunFile):
        facts = _of_run(declared, exposure, loaded, judgements, failure)
    else:
        is_cut_short = hash_of(loaded.history) is not None and not loaded.is_complete  # Only ours have an end.
        facts = RunFacts(is_foreign=True, error=failure, incomplete=CUT_SHORT if is_cut_short else None)
    return replace(facts, unjudged=events_without_contract(loaded.history, declared))


def fault_rows(run_file: RunFile, exposure: Exposure) -> tuple[FaultRow, ...]:
    """One row for each package of faults, in order of first appearance."""
    rows = []
    for package in dict.fromkeys(step.package for step in run_file.plan.steps):
        windows = [window for window in exposure.windows if window.kind == package]
        is_completed = np.zeros(len(exposure.operations.outcome), np.bool_)
        for window in windows:
            is_completed[exposure.operations.completed_in(window)] = True
        rows.append(
            FaultRow(
                kind=package,
                planned=sum(step.package == package for step in run_file.plan.steps),
                begun=len(windows),
                effective=sum(bool(window.effect) for window in windows),
                **exposure.operations.counts(is_completed),
            )
        )
    return tuple(rows)


def final_successes(exposure: Exposure) -> int:
    """The number of operations of the final phase that succeeded."""
    began_ns = exposure.phases.get("final")
    if began_ns is None:
        return 0
    return exposure.operations.counts(exposure.operations.invoke_ns >= began_ns)["ok"]


def _of_run(
    run_file: RunFile, exposure: Exposure, loaded: Loaded, judgements: Sequence[Judgement], failure: str | None
) -> RunFacts:
    end = exposure.last_position if exposure.last_position is not None else -1
    behind = [name for name in run_file.subscribers if exposure.watermarks.get(name, -1) < end]
    by_checker = {judgement.checker: judgement for judgement in judgements}
    # A workload whose values cannot all be read at the end does not name the check of lists.
    known = _known_order(by_checker[TRANSACTIONS]) if LISTS in run_file.checks else None
    return RunFacts(
        error=failure,
        ok_by_type={name: exposure.operations.ok_of_type(name) for name in run_file.types},
        faults=tuple(_planned_faults(run_file, exposure)),
        has_final_reads=final_successes(exposure) > 0,
        behind=tuple(behind) if run_file.stream is not None else (),
        incomplete=None if loaded.is_complete else CUT_SHORT,
        known_versions=known or 0,
        all_versions=0 if known is None else 1000,
        watermarks_with_writes=by_checker["streams"].witnesses.get(MISSING, 0) if closes_writes(run_file) else None,
    )


LISTS: Final = "list-append"


def _known_order(judgement: Judgement) -> int | None:
    """The permille of writes whose place in the version order is known; None if the order does not matter.

    For registers it does not matter if every model was decided: such a decision covers all orders of versions.
    """
    if "version_order" in judgement.facts and not judgement.unknown:
        return None
    known = judgement.facts.get("version_order_known_permille")
    return known if isinstance(known, int) else None


def _planned_faults(run_file: RunFile, exposure: Exposure) -> Iterator[PlannedFault]:
    windows = {window.step: window for window in exposure.windows}
    for number, step in enumerate(run_file.plan.steps):
        window = windows.get(number)
        yield PlannedFault(
            name=f"{step.package.replace('-', ' ')} {', '.join(step.targets)} at {step.at_ns / SECOND:.1f} s",
            named=_named(run_file, number),
            duration_ns=step.until_ns - step.at_ns,
            has_begun=window is not None,
            effect=window.effect if window else None,
            overlapping=exposure.operations.open_in(window) if window else 0,
            completed=len(exposure.operations.completed_in(window)) if window else 0,
        )


def _named(run_file: RunFile, number: int) -> str | None:
    """The user's own name for that step: its number in a given plan, or its package if --nemesis named packages."""
    if run_file.is_plan_given:
        return f"step {number}"
    return None if run_file.options.get("nemesis") is None else run_file.plan.steps[number].package
