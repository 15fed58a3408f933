"""The work of one task: the stream rules over one log, and an example for each rule that it breaks."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from checkers.columns.blocks import in_threads
from checkers.columns.facts import Facts
from checkers.columns.index import is_kind
from checkers.columns.runs import first_of_each, is_ascending
from checkers.history.around import NOTHING_AROUND, Around, read_around
from checkers.history.streams import Placement, StreamLog
from checkers.history.version_ranks import read_beside, reading
from checkers.streams.by_key import view_by_key
from checkers.streams.catalogue import RULES
from checkers.streams.examples import Example, examples_of, sight_of
from checkers.streams.rule import Conclusion, OfAllLogs, OfKeys, OfLog, OfSource, OfUnits, Seen, Sighted
from checkers.streams.rules.sessions.unjudged import Unjudged, unjudged, with_partitions
from checkers.streams.view import Log, Ruling, StreamView, defect, stream_view
from harness.core.columns import BACKFILL, GAP, INFO, NEVER, OK, ROW, WATERMARK, Deliveries, Int64s, SourceWrites
from harness.core.promises import Excuses, StreamContract


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of one log. `defect` is the reason why the log could not be judged; then only `source` is set."""

    source: dict[str, int]  # Facts about the source, the same for all logs.
    defect: str | None = None
    examples: tuple[Example, ...] = ()
    witnesses: dict[str, int] = field(default_factory=dict)
    facts: dict[str, int] = field(default_factory=dict)
    unjudged: tuple[Unjudged, ...] = ()
    summaries: dict[str, object] = field(default_factory=dict)  # By rule, for those that compare logs.
    conclusions: dict[str, Conclusion] = field(default_factory=dict)  # By rule about the source; in the first log only.

    def without(self, rules: Sequence[str]) -> "Outcome":
        """The outcome as if these rules had not been judged. None of them is about the source."""
        return replace(
            self,
            examples=tuple(example for example in self.examples if example.anomaly not in rules),
            witnesses={name: count for name, count in self.witnesses.items() if name not in rules},
            summaries={name: summary for name, summary in self.summaries.items() if name not in rules},
        )


def judge(
    log: StreamLog,
    contract: StreamContract,
    excuses: Excuses,
    known: Placement | None,
    threads: int = 1,
    shared: Facts | None = None,
) -> Outcome:
    """The outcome of all rules over one log, in `threads` threads.

    `known` is the placement that follows from all logs; None if this is the only one. With the same `shared`, several
    logs read their source once.
    """
    folder = Path(log.directory)
    with reading(log, folder, known, threads=threads, shared=shared) as found:
        writes, conclusions = found.writes, dict[str, Conclusion]()
        if log.chosen[0] == log.subscribers[0]:  # Only the first log has them.
            conclusions |= of_source(folder, found.writes, contract)
        around = read_around(folder, found.readers, contract, excuses, log.subscribers)
        deliveries = found.deliveries()
    del found
    return replace(judged(log, deliveries, writes, contract, around, threads=threads), conclusions=conclusions)


def of_source(history: Path, writes: SourceWrites, contract: StreamContract) -> Iterator[tuple[str, Conclusion]]:
    """For each rule about the source alone its conclusion."""
    for name, rule in RULES.items():
        if isinstance(rule.scope, OfSource):
            yield name, rule.scope.judge(history, writes, contract)


def sights(
    log: StreamLog,
    rule: str,
    contract: StreamContract,
    known: Placement | None,
    wanted: Sequence[Sighted],
    shared: Facts | None = None,
) -> Seen:
    """The events that sessions in `wanted` saw at their positions, by time; `rule` is one that compares logs.

    With the same `shared`, several logs are read at once.
    """
    scope = RULES[rule].scope
    if not isinstance(scope, OfAllLogs):
        raise AssertionError(f"{rule} does not compare logs")
    view = stream_view(*read_beside(log, Path(log.directory), known, shared=shared), contract)
    return {
        each: tuple(sight_of(view, row) for row in rows.tolist()) for each, rows in scope.rows(view, wanted).items()
    }


def judged(
    log: StreamLog,
    deliveries: Deliveries,
    writes: SourceWrites,
    contract: StreamContract,
    around: Around = NOTHING_AROUND,
    *,
    threads: int = 1,
) -> Outcome:
    """The outcome of the rules over columns; `writes` are placed, and empty if there is no source."""
    if problem := defect(deliveries, contract):
        return Outcome(source=source_facts(writes), defect=problem)
    writes = with_partitions(deliveries, writes, contract)
    whole = Log(deliveries=deliveries, writes=writes, around=around, is_alone=len(log.chosen) == len(log.subscribers))
    per_key = dict.fromkeys(ruling for rule in RULES.values() for ruling in rule.per_key())
    with in_threads(threads):
        view = view_by_key(whole, contract, tuple(per_key))
        of_units = dict(_of_units(view))
    tasks: dict[str, Future[Ruling]] = {}
    compared: dict[str, Future[object]] = {}
    with ThreadPoolExecutor(threads) as pool:  # NumPy releases the interpreter's lock in all long calls.
        source = pool.submit(source_facts, writes)
        for name, rule in RULES.items():
            match rule.scope:
                case OfAllLogs(summarize=summarize):
                    compared[name] = pool.submit(summarize, view)
                case OfKeys(judge=judgement) | OfLog(judge=judgement):
                    tasks[name] = pool.submit(judgement, view)
                case OfUnits() | OfSource():
                    pass
    found = {name: (view, task.result()) for name, task in tasks.items()} | of_units
    rulings = {name: found[name] for name in RULES if name in found}
    outcome = Outcome(
        source=source.result(),
        examples=tuple(each for name, (of, ruling) in rulings.items() for each in examples_of(name, log, of, ruling)),
        witnesses={name: ruling.witnesses for name, (_, ruling) in rulings.items()},
        facts=_facts(view) | {legal: found[name][1].legal for name, rule in RULES.items() if (legal := rule.legal)},
        summaries={name: task.result() for name, task in compared.items()},
        unjudged=tuple(unjudged(view, [ruling for name, (of, ruling) in rulings.items() if of is view])),
    )
    for of, _ in found.values():
        of.facts.clear()  # Frees the columns together with the view, before the next check.
    return outcome


def _of_units(view: StreamView) -> Iterator[tuple[str, tuple[StreamView, Ruling]]]:
    """For each rule about units its ruling, and the view to which the ruling refers."""
    for name, rule in RULES.items():
        if isinstance(rule.scope, OfUnits):
            units = rule.scope.units(view)
            yield name, (units, rule.scope.judge(units))


def source_facts(writes: SourceWrites) -> dict[str, int]:
    """Counts of placed writes: ok operations without a position, and unclear ones that no event shows."""
    is_ok, is_unplaced = writes.outcome == OK, writes.position == NEVER
    return {
        "writing-operations": _distinct_count(writes.op if is_ok.all() else writes.op[is_ok]),
        "unplaced-operations": _distinct_count(writes.op[is_ok & is_unplaced]),
        "unobserved-info-operations": _distinct_count(writes.op[(writes.outcome == INFO) & is_unplaced]),
    }


def _distinct_count(values: Int64s) -> int:
    """The number of distinct values. Ascending values are not copied."""
    ascending = values if is_ascending(values) else np.sort(values)
    return int(np.count_nonzero(first_of_each(ascending)))


def _facts(view: StreamView) -> dict[str, int]:
    is_event = is_kind(view.deliveries.kind, (ROW, BACKFILL))
    return {
        "events": int(is_event.sum()),
        "watermarks": int((view.deliveries.kind == WATERMARK).sum()),
        "gap-markers": int((view.deliveries.kind == GAP).sum()),
        "sessions": int(view.session.max(initial=-1)) + 1,
        "repeated-events": int((is_event & ~view.is_phantom).sum()) - len(view.first),
        "phantom-events": int(view.is_phantom.sum()),
    }
