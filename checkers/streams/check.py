"""Whether a change stream kept its contract: the rules of task.RULES, from a history to findings.

Each subscriber is one task, for threads and for Spark alike. If there are several, every task first says what its
deliveries tell of the source (positions that no operation reported); then each judges its own log with what all have
told. The driver holds that, one example for each anomaly and subscriber, and two numbers for each session and position,
by which it tells whether sessions agree: never the stream.

Witnesses, by anomaly: late-event, first deliveries after a watermark that covers their key; late-event-boundary, those
of them whose position is that of a watermark; watermark-regress, pairs of watermarks in one scope; missing-event and
torn-unit, watermarks that newly close a committed write, or a unit of two events, in live coverage; order-inversion,
first deliveries compared with one before them; duplicate-event, first deliveries behind which more came;
phantom-event, events of a key of which a write failed; wrong-value, events compared with their write; split-view,
positions that two sessions completed; silent-gap, gap markers and losses; state-mismatch, watermarks that newly close a
version of a key behind another; divergent-duplicate, events that came twice with a value; outside-filter, rows of
sessions for which something lies outside; moved-key, rows compared with the one before on one of several partitions;
resume-hole, starts behind which a key was written, and something tells whether that was sent; lost-tail, live
subscribers for which something was written after the last fault; hand-over-hole, keys in snapshots that were written
behind them; watermark-from-future, watermarks compared with what had begun; watermark-above-partitions, watermarks of
the whole where two partitions differ; rewritten-offset, offsets read in two sessions; event-after-end, markers that end
something; zombie, changes of owners; real-time-order, operations before which one of another process had ended.
"""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from checkers.engine.datasets import Engine
from checkers.history.streams import merged, stream_logs
from checkers.streams.rules.logs.split_view import splits
from checkers.streams.sentences import CHECKER, finding, reversal_finding, split_finding
from checkers.streams.task import (
    HANDOVER,
    MISSING,
    REAL_TIME,
    RESUME,
    RULES,
    SILENT,
    SPLIT,
    TAIL,
    Outcome,
    judge,
    placement_of,
    sights,
)
from checkers.transactions.sentences import Name, number
from harness.core.promises import StreamContract
from harness.core.record import Json
from harness.core.verdict import Judgement

UNPLACED_PERCENT = 10  # With more writes of unknown position nobody can say that none is missing.


def check(history: Path, contract: StreamContract, engine: Engine, name: Name = number) -> Judgement:
    """What the streams of that history directory prove. Raises HistoryError if its files are damaged.

    `name` shows keys and values. The findings are the same for every engine, and stand in one order.
    """
    parts = stream_logs(history, contract)
    logs = engine.over(parts)
    threads = max(1, engine.parallelism // max(1, len(parts)))
    if not parts:
        return Judgement(checker=CHECKER, findings=(), witnesses=dict.fromkeys(RULES, 0), facts={"subscribers": 0})
    tell = partial(placement_of, threads=threads)
    known = merged(logs.map(tell).collect()) if len(parts) > 1 else None
    outcomes = logs.map(partial(judge, contract=contract, known=known, threads=threads)).collect()
    source = outcomes[0].source
    examples = sorted(
        (example for outcome in outcomes for example in outcome.examples),
        key=lambda example: (RULES.index(example.anomaly), example.watermark.seq),
    )
    facts: dict[str, Json] = {"subscribers": len(parts), **_sum(outcome.facts for outcome in outcomes), **source}
    found, compared = splits([outcome.views for outcome in outcomes if outcome.views is not None])
    wanted = tuple(dict.fromkeys(sighted for split in found for sighted in (split.one, split.other)))
    look = partial(sights, contract=contract, known=known, wanted=wanted)
    seen = {who: shown for part in logs.map(look).collect() for who, shown in part.items()} if found else {}
    apart = (split_finding(split, seen, parts[0].subscribers, name) for split in found)
    witnesses = _sum(outcome.witnesses for outcome in outcomes) | {SPLIT: compared}
    reversals = []
    if contract.realtime != "none":
        timed = [outcome.timed for outcome in outcomes if outcome.timed is not None]
        witnesses[REAL_TIME] = timed[0].witnesses
        reversals = [reversal_finding(each.first) for each in timed if each.first is not None]
    return Judgement(
        checker=CHECKER,
        findings=(*(finding(example, name) for example in examples), *apart, *reversals),
        witnesses=dict.fromkeys(RULES, 0) | witnesses,
        unknown=_unknown(outcomes, source),
        facts=facts,
    )


def _unknown(outcomes: list[Outcome], source: dict[str, int]) -> dict[str, str]:
    """Why which anomalies cannot be told."""
    defects = sorted({outcome.defect for outcome in outcomes if outcome.defect})
    if defects:
        return dict.fromkeys(RULES, defects[0])
    unplaced, writing = source["unplaced-operations"], source["writing-operations"]
    if unplaced * 100 > writing * UNPLACED_PERCENT:
        untold = (MISSING, SILENT, RESUME, TAIL, HANDOVER)
        return dict.fromkeys(untold, f"{unplaced} of {writing} operations that wrote have no known position")
    return {}


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))
