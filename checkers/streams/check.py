"""Contract of a change stream: the rules of task.RULES, from a history to findings.

Each subscriber is one task, for threads and for Spark alike. If there are several, every task first derives facts about
the source from its deliveries (positions that no operation reported); then each judges its own log with the facts of
all. The driver holds those facts, one example for each anomaly and subscriber, and two numbers for each session and
position, by which it compares sessions: never the stream.

Witnesses, by anomaly:
- late-event: first deliveries after a watermark that covers their key;
- late-event-boundary: those of them whose position is that of a watermark;
- watermark-regress: pairs of watermarks in one scope;
- missing-event and torn-unit: watermarks that newly close a committed write, or a unit of two events, in live coverage;
- order-inversion: first deliveries compared with one before them;
- duplicate-event: first deliveries after which more events came;
- phantom-event: events of a key of which a write failed; wrong-value: events compared with their write;
- split-view: positions that two sessions completed; silent-gap: gap markers and losses;
- state-mismatch: watermarks that newly close a version of a key after another;
- divergent-duplicate: events that came twice with a value;
- outside-filter: rows of sessions that do not cover everything;
- moved-key: rows compared with the one before on one of several partitions;
- resume-hole: starts after which a key was written, if it can be known that the write was sent;
- lost-tail: live subscribers for which something was written after the last fault;
- hand-over-hole: keys in snapshots that were written after them;
- watermark-from-future: watermarks compared with the operations begun so far;
- watermark-above-partitions: watermarks of the whole while two partitions differ;
- rewritten-offset: offsets read in two sessions; event-after-end: markers that end something;
- zombie: changes of owners; real-time-order: operations before which one of another process had ended.
"""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from checkers.engine.protocol import Check, Context, When
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
from harness.core.record import Json
from harness.core.verdict import Judgement

UNPLACED_PERCENT = 10  # With more writes of unknown position a missing event cannot be excluded.


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the streams in that history, which have a contract. Raises HistoryError if a file is damaged.

    The findings, and their order, are the same for every engine.
    """
    contract, engine, name = context.contract, context.engine, context.name
    if contract is None:
        raise AssertionError("without a contract there is no stream to judge")
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
    """The anomalies that cannot be decided, with the reason."""
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


CHECKS = (
    Check(
        name=CHECKER,
        anomalies=tuple(RULES),
        judge=check,
        when=When.ALWAYS,
        needs_contract=True,
        has_kernels=True,
    ),
)
