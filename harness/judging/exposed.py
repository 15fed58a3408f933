"""The exposure that one run adds to a sweep, from its columns and the facts of its own judgement."""

from collections import Counter

from checkers.verdict.compose import RunFacts, Thresholds
from harness.record.exposure import SECOND, Exposure
from harness.record.store import RunFile
from harness.report.model import Exposed


def exposed(run_file: RunFile, exposure: Exposure, facts: RunFacts) -> Exposed:
    """The exposure that the run adds to its sweep."""
    recovery_ns, gap_ns = exposure.longest_recovery_ns(), exposure.watermark_gap_ns
    met = Counter[str]()
    for window in exposure.windows:
        met[window.kind] += exposure.operations.open_in(window) if window.effect else 0
    least_ns = Thresholds().fault_ns
    long = [step.package for step in run_file.plan.steps if step.until_ns - step.at_ns >= least_ns]
    return Exposed(
        ok_by_type=dict(facts.ok_by_type),
        met=dict(met),
        long=tuple(dict.fromkeys(long)),
        purposes=tuple(promise.id for promise in run_file.promises if promise.is_purpose),
        has_end=facts.has_final_reads and not facts.behind and facts.incomplete is None,
        known_versions=facts.known_versions,
        all_versions=facts.all_versions,
        watermarks_with_writes=facts.watermarks_with_writes,
        recovery_s=None if recovery_ns is None else round(recovery_ns / SECOND, 3),
        watermark_gap_s=None if gap_ns is None else round(gap_ns / SECOND, 3),
    )
