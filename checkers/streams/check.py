"""The contract of a change stream: all stream rules (checkers.streams.catalogue), from a history to findings.

Each subscriber is one task, for threads and for Spark alike. If there are several, every task first derives facts about
the source from its deliveries (positions that no operation reported); then each judges its own log with the facts of
all. The driver holds those facts, one example for each anomaly and subscriber, and the summaries for rules that compare
logs (two numbers for each session and position): never the stream.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from checkers.columns.facts import Facts
from checkers.engine.protocol import Check, Context, When
from checkers.history.names import Names
from checkers.history.streams import NOTHING_DERIVED, merged, placed, placement_by, read_writes, stream_logs
from checkers.streams.catalogue import RULES, names_that_need
from checkers.streams.examples import Example
from checkers.streams.findings import example_finding
from checkers.streams.rule import Conclusion, Need, OfAllLogs, OfSource, Seen, Sighted
from checkers.streams.rules.sessions.missing_event import MISSING_EVENT
from checkers.streams.rules.sessions.unjudged import HOMELESS, Unjudged, sentence
from checkers.streams.task import Outcome, judge, of_source, sights
from checkers.words.checks import STREAMS
from harness.core.promises import StreamContract
from harness.core.record import Json
from harness.core.verdict import Finding, Judgement

UNPLACED_PERCENT = 10  # With a larger share of writes without a position a missing event cannot be excluded.


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the streams in that history, which have a contract. Raises HistoryError if a file is damaged.

    The findings and their order are the same on every engine.
    """
    contract, engine, name = context.contract, context.engine, context.name
    if contract is None:
        raise AssertionError("without a contract there is no stream to judge")
    parts = stream_logs(history, contract, context.bounds.views)
    logs = engine.over(parts)
    threads = max(1, engine.parallelism // max(1, len(parts)))
    if not parts:
        return _of_source_alone(history, contract)
    derive = partial(placement_by, threads=threads, shared=Facts())
    known = merged(logs.map(derive).collect()) if len(parts) > 1 else None
    judged = partial(judge, contract=contract, excuses=context.excuses, known=known, threads=threads, shared=Facts())
    outcomes = logs.map(judged).collect()
    del derive, judged  # They hold the writes of the source.
    if contract.consumers == "group":
        outcomes = [outcome.without(names_that_need(Need.ALL)) for outcome in outcomes]
    source = outcomes[0].source
    order = {name: place for place, name in enumerate(RULES)}
    examples = sorted(
        (example for outcome in outcomes for example in outcome.examples),
        key=lambda example: (order[example.anomaly], example.watermark.seq),
    )

    def look(rule: str, wanted: Sequence[Sighted]) -> Seen:
        fetch = partial(sights, rule=rule, contract=contract, known=known, wanted=wanted, shared=Facts())
        return {who: seen for part in logs.map(fetch).collect() for who, seen in part.items()}

    conclusions = dict(_conclusions(outcomes, look, parts[0].subscribers, name))
    facts: dict[str, Json] = {"subscribers": len(parts), **_sum(outcome.facts for outcome in outcomes), **source}
    left = [each for outcome in outcomes for each in outcome.unjudged]
    if notes := dict.fromkeys(sentence(each, name) for each in left if each.reason != HOMELESS):  # Each once.
        facts["notes"] = list[Json](notes)
    witnesses = dict.fromkeys(RULES, 0) | _sum(outcome.witnesses for outcome in outcomes)
    return Judgement(
        checker=STREAMS,
        findings=(
            *(finding(example, name) for example in examples),
            *(each for conclusion in conclusions.values() for each in conclusion.findings),
        ),
        witnesses=witnesses | {name: conclusion.witnesses for name, conclusion in conclusions.items()},
        unknown=_homeless(left, name) | _unknown(outcomes, source),
        facts=facts,
    )


def _of_source_alone(history: Path, contract: StreamContract) -> Judgement:
    """The judgement of a history without subscribers."""
    found = dict(of_source(history, placed(read_writes(history), NOTHING_DERIVED), contract))
    return Judgement(
        checker=STREAMS,
        findings=tuple(each for conclusion in found.values() for each in conclusion.findings),
        witnesses=dict.fromkeys(RULES, 0) | {name: conclusion.witnesses for name, conclusion in found.items()},
        facts={"subscribers": 0},
    )


def finding(example: Example, name: Names) -> Finding:
    """The finding of an example, with the sentence of its rule."""
    rule = RULES[example.anomaly]
    scope = rule.scope
    example = example if name.has_times else example.untimed()
    if isinstance(scope, OfAllLogs | OfSource):
        raise AssertionError(f"{example.anomaly} has no examples")
    return example_finding(example, scope.sentence(example, name), rule.identity(example, name), name)


def _conclusions(
    outcomes: Sequence[Outcome],
    look: Callable[[str, Sequence[Sighted]], Seen],
    subscribers: Sequence[str],
    name: Names,
) -> Iterator[tuple[str, Conclusion]]:
    """The conclusions of the rules about all logs together, and of those about the source."""
    for rule in RULES.values():
        match rule.scope:
            case OfAllLogs(conclude=conclude):
                summaries = [outcome.summaries[rule.name] for outcome in outcomes if rule.name in outcome.summaries]
                yield rule.name, conclude(summaries, partial(look, rule.name), subscribers, name)
            case OfSource():
                yield rule.name, next(each.conclusions[rule.name] for each in outcomes if rule.name in each.conclusions)
            case _:
                pass


def _homeless(left: Sequence[Unjudged], name: Names) -> dict[str, str]:
    """The doubt about missing events that writes of an unknown partition leave."""
    reasons = [sentence(each, name) for each in left if each.reason == HOMELESS]
    return {MISSING_EVENT.name: reasons[0]} if reasons else {}


def _unknown(outcomes: list[Outcome], source: dict[str, int]) -> dict[str, str]:
    """The anomalies that cannot be decided, with the reason."""
    defects = sorted({outcome.defect for outcome in outcomes if outcome.defect})
    if defects:
        return dict.fromkeys(RULES, defects[0])
    unplaced, writing = source["unplaced-operations"], source["writing-operations"]
    if unplaced * 100 > writing * UNPLACED_PERCENT:
        reason = (
            f"{unplaced} of {writing} operations that wrote have no known position: record it as commit_ts, or record "
            "the rows that show them"
        )
        return dict.fromkeys(names_that_need(Need.POSITIONS), reason)
    return {}


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))


CHECKS = (
    Check(
        name=STREAMS,
        anomalies={name: rule.anomaly for name, rule in RULES.items()},
        judge=check,
        when=When.ALWAYS,
        needs_contract=True,
        has_kernels=True,
    ),
)
