"""The output of a batch: many runs of one command."""

from collections import Counter

from rich.console import Console

from checkers.verdict.groups import rank
from checkers.verdict.titles import title
from harness.cli.output import print_json, tell_github
from harness.core.verdict import FAILED, Verdict
from harness.report.batch_page import batch_summary
from harness.report.model import Report, repetition
from harness.report.screen import STYLES, plain, say, suggest
from harness.run.batch import Batch
from harness.scenario.hand import at_hand

ANOMALIES = 4  # The most anomalies of a batch with a line each.
SHOWN = 3  # The most runs whose command is shown if no run of a batch has a finding.


def print_batch(batch: Batch, *, as_json: bool) -> int:
    """Show the outcome of a batch; returns its exit code."""
    tell_github(batch.runs, lambda: batch_summary(batch.summary(), batch.runs), as_json=as_json)
    if as_json:
        print_json(batch)
        return batch.exit_code
    console = Console(highlight=False)
    if batch.stopped:
        say(console, f"stopped after {len(batch.runs)} of {batch.planned} runs: {batch.stopped}", "  ")
    found = [{finding.anomaly for finding in report.findings if finding.promise} for report in batch.runs]
    counts = Counter(name for names in found for name in names)
    own = {name: record for report in batch.runs for name, record in report.declared.items()}
    ordered = sorted(counts, key=lambda name: (rank(name, own), name))
    for anomaly in ordered[:ANOMALIES]:
        say(console, f"{title(anomaly, own)}  in {counts[anomaly]} of {len(batch.runs)} runs", "  ")
    if len(ordered) > ANOMALIES:
        say(console, f"also seen: {', '.join(title(each, own) for each in ordered[ANOMALIES:])}", "  ")
    word = plain(Verdict(batch.verdict).word, STYLES[batch.verdict])
    say(console, word + plain(f"  {batch.reason} in {batch.seconds:g} s (exit {batch.exit_code})"), is_whole=True)
    if batch.way_out is not None and batch.exit_code:
        say(console, batch.way_out.sentence, "  ")
    if batch.page is not None:
        suggest(console, "open", batch.page)
    if batch.way_out is not None and batch.way_out.command is not None:
        suggest(console, "more", at_hand(batch.way_out.command, [run.code for run in batch.runs if run.code]))
    for report in _to_repeat(batch):
        command = report.anywhere or repetition(report)
        if command is not None:
            suggest(console, f"seed {report.seed}", at_hand(command, [report.code] if report.code else []))
    return batch.exit_code


def _to_repeat(batch: Batch) -> list[Report]:
    """The runs with a finding; if there is none, the first ones with the batch's verdict. None of a pass."""
    red = [report for report in batch.runs if report.verdict in FAILED]
    worst = [report for report in batch.runs if report.verdict == batch.verdict and batch.exit_code]
    return red or worst[:SHOWN]
