"""The finding of a hunt as runs of the store: the run that showed it, and the smallest one that does."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from harness.campaign.ledger.attempts import Attempt, delivered, mark
from harness.core.errors import SeamarkError
from harness.hunt.document import Trophy
from harness.hunt.rows import Row
from harness.hunt.search import Begun
from harness.judging.engines import EngineFor, in_threads
from harness.report.model import Report, read_report, repetition
from harness.run.carry_out import carry_out
from harness.run.running import prepare
from harness.run.single import judge_run
from harness.shrink.case import Size
from harness.shrink.shrink import Orders, shrunk


class NotRepeated(SeamarkError):
    """A repeated run did not show its finding again."""


def brought_home(begun: Begun, row: Row, engine: EngineFor) -> Trophy:
    """The row's run as a run of the store, which it becomes once. Raises NotRepeated if that shows something else."""
    assert row.case is not None
    new = row.findings(frozenset(begun.order.known))[0]
    numbers = (row.number,)
    known = dict(delivered(begun.store, [str(row.report.cluster)], begun.order.id))
    if numbers in known and read_report(known[numbers]) is not None:  # By an earlier session, which was killed later.
        run = known[numbers]
        report = msgspec.structs.replace(judge_run(run, in_threads, code=begun.code), run=str(run))
    else:
        run, _ = prepare(row.case.scenario, begun.code, begun.store, row.case.plan)
        mark(run, Attempt(campaign=begun.order.id, numbers=numbers))
        report = carry_out(run, begun.code, engine)
    finding = next((each for each in report.findings if each.symptom == new.symptom), None)
    if finding is None:
        raise NotRepeated(f"{run}: run {row.number} of {begun.folder} showed {new.symptom}, and shows it no more")
    return Trophy(
        symptom=finding.symptom,
        anomaly=finding.anomaly,
        promise=finding.promise,
        sentence=finding.sentence,
        fingerprint=row.classes[row.report.findings.index(new)],
        number=row.number,
        run=str(run),
        command=_command(report),
    )


def made_small(
    begun: Begun, trophy: Trophy, engine: EngineFor, *, jobs: int, tell: Callable[[Size, int], None]
) -> Trophy:
    """The trophy with the smallest run that shows its symptom, and with a test."""
    orders = Orders(run=Path(trophy.run), code=begun.code, symptom=trophy.symptom, jobs=jobs)
    done = shrunk(orders, engine, tell)
    return msgspec.structs.replace(
        trophy,
        small=done.report.run,
        test=done.test,
        before=done.before,
        after=done.after,
        command=_command(done.report),
    )


def _command(report: Report) -> str:
    command = repetition(report)
    assert command is not None
    return command
