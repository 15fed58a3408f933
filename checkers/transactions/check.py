"""Consistency models of transactions on lists and registers, checked from chunks to findings.

The chain of computations (`inferred`): `list_rows` and `registers.rows` (each chunk by itself) -> shuffle by key
(`partition`) -> `list_versions`, `registers.edges` and the modules that they use (each partition of keys). Then shuffle
by slice -> `certificate` (proof without a search) -> the residual graph, to `search` (cycles by name) -> `sentences`.
The driver holds windows, counts and the residual graph, never the history.

Witnesses, by anomaly: the number of places where it could have shown.
- internal: reads of a key that their transaction had touched before. missed-own-write: that it had written before.
- future-read: reads before an own append. unwritten-read: as garbage-read, if initial values are declared.
- duplicate-elements: reads of two elements or more. incompatible-order: reads beside the longest of their key.
- G1a: reads of keys to which a failed transaction appended. G1b: of keys to which a transaction appended repeatedly.
- dirty-update: ok appends to keys to which a failed transaction appended. lost-update: reads before an own write.
- cyclic-versions: pairs of versions whose order a source gives. garbage-read: reads that show something.
- Broken axioms: wr and rw, as for G1c. They are looked for where the search names no cycle: see `_answers`.
- Cycles: the edges that every cycle of the class needs: ww for G0, wr for G1c, rw for the others. For G1c the rw count
  as well: a read that missed a write might have seen it. For -process and -realtime the same ones: every dependency can
  contradict an order. For registers the edges from a timed order of versions count there as well.

Not checked: predicates, and what info operations read.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs
from msgspec.structs import replace

from checkers.axioms.execution import Execution, Pairs
from checkers.axioms.ladder import ANOMALIES, NO_ANSWERS, Answers, answers, whole
from checkers.axioms.weak import Breach
from checkers.columns.runs import distinct
from checkers.columns.sessions import has_sessions
from checkers.columns.table import take
from checkers.engine.datasets import Dataset, Engine
from checkers.engine.protocol import Check, Context, When
from checkers.graph import certificate
from checkers.graph.edges import WW, Edges, Inference, all_edges
from checkers.graph.residual import Search, residual, search
from checkers.graph.sightings import Report, Sighting, union
from checkers.history.registers import Order, Trust
from checkers.history.transactions import Source, chunks, op_count
from checkers.transactions.inferred import Summary, inferred
from checkers.transactions.options import Options
from checkers.transactions.sentences import explainer
from checkers.transactions.unanswered import (
    COVERS,
    Cycles,
    open_by_garbage,
    undisputed,
    unknown,
    unwritten,
    unwritten_reads,
)
from checkers.transactions.uncertified import edge_count, edges_inside, possible, processes_of, windows_of
from checkers.words import models
from checkers.words.checks import TRANSACTIONS
from checkers.words.transactional import CYCLES, ORDERS, OWN, TIMED_AXIOMS, TIMED_CYCLES, TRANSACTIONAL, UPDATE
from harness.core.record import Json
from harness.core.verdict import Finding, Judgement

LOCKED: Final = "serializability-locked"
_ASIDE: Final = 5_000  # In a history of up to so many operations, cycles that no verdict needs are searched for, too.
_DECIDED: Final = TIMED_AXIOMS | TIMED_CYCLES | {UPDATE, *COVERS}
_WITHOUT_RW: Final = ("G0", "G1c")
_SIZES: Final = (
    *("ok", "fail", "info", "micro-operations", "elements-read", "elements-without-writer", "keys"),
    *("registers", "register-writes", "registers-read", "values-without-writer"),
)


_NO_CYCLES: Final = Cycles(Search((), 0, ()), 0, 0, None)
_UNSEARCHED: Final = replace(_NO_CYCLES, truncated=0)


def check(history: Path, context: Context, name: str = TRANSACTIONS) -> Judgement:
    """The judgement of the history's transactions against the anomalies that the promises of the check `name` forbid.

    Raises HistoryError if a file is damaged.
    """
    is_timed = not has_sessions(history)
    options = Options(
        prohibited=context.prohibited.get(name, ()),
        name=context.name,
        order=context.order if is_timed else structs.replace(context.order, real_time=Trust.NONE),
        has_real_time=is_timed,
        initial=context.initial,
        stretches=context.stretches,
        shared=context.facts if context.contract is not None else None,  # The watermark graph needs the same.
    )
    return check_sources(chunks(history, is_locked=context.is_locked), context.engine, options)


def check_sources(sources: Sequence[Source], engine: Engine, options: Options | None = None) -> Judgement:
    """The judgement of those chunks against a model (strict-serializable if none is given).

    Raises ScenarioError for an unknown model, HistoryError if a chunk is damaged.
    """
    options = options or Options()
    forbidden = options.forbidden()
    parts = engine.over(sources)
    infer = partial(inferred, sources, engine, options.rules(), shared=options.shared)
    has_declared = options.order.commits or Trust.GIVEN in {options.order.process, options.order.real_time}
    noted = infer() if has_declared else None
    declared = _declared(noted.items()) if noted is not None else None
    early = _weak_answers(parts, declared, options)
    is_searched = early is None or op_count(sources) <= _ASIDE
    if noted is None:
        noted = infer(has_edges=is_searched)
    dependencies, summaries = noted.items(), noted.notes()
    report = union(one.report for one in summaries)
    last = max((one.last_index for one in summaries), default=0)
    known = certificate.ends([one.open_sources for one in summaries], last=last)
    cycles = _cycles(parts, dependencies, known, options) if is_searched else _UNSEARCHED
    found = {one.anomaly for one in report.sightings} | {one.anomaly for one in cycles.search.named}
    is_settled = options.stretches is not None and cycles.search.undecided
    unsettled = frozenset() if is_settled else options.undecided(found)
    answers = undisputed(early or _answers(parts, declared, report, cycles, unsettled, options), report)
    counts = _counts(report, cycles.search, answers)
    reported = _reported([name for name in counts if name in forbidden], cycles.search, options)
    left_out = _left_out(summaries)
    absent = frozenset[str]()
    if not left_out:
        absent = answers.absent if options.stretches is not None else _absent(report, cycles, answers, found)
    return Judgement(
        checker=TRANSACTIONS,
        findings=_findings(parts, report, cycles.search, answers, frozenset(reported), options),
        witnesses=_witnesses(report.tally),
        unknown=unknown(report, left_out, cycles, answers, options),
        facts=_facts(report, cycles, answers, options)
        | _consequences(counts, report, reported, absent - options.out_of_sight, options),
    )


def _left_out(summaries: Sequence[Summary]) -> tuple[Sighting, ...]:
    return union(Report(one.left_out, Counter()) for one in summaries).sightings


def _cycles(chunks: Dataset[Source], inferred: Dataset[Inference], known: certificate.Ends, options: Options) -> Cycles:
    windows = windows_of(inferred, known, slice_ids=options.slice_ids)
    if not len(windows.start):
        return _NO_CYCLES
    total, count, windows = _affordable(inferred, windows, known, options.residual_edges)
    edges = edges_inside(inferred, windows, known)
    op, process = processes_of(chunks, distinct(np.concatenate((edges.source, edges.target)).astype(np.int64)))
    graph = residual(edges, op=op, process=process)
    found = search(graph) if options.stretches is None else possible(graph, options.forbidden(), COVERS)
    return Cycles(found.without(options.out_of_sight), len(windows.start), count, total if total > count else None)


def _affordable(
    inferred: Dataset[Inference], windows: certificate.Windows, known: certificate.Ends, limit: int
) -> tuple[int, int, certificate.Windows]:
    """The number of residual edges, the number of those that are searched, and the windows which hold these.

    If there are more than `limit`, only the earliest windows are kept.
    """
    total = count = edge_count(inferred, windows, known)
    while count > limit:
        middle = (windows.start[0] + windows.stop[-1]) // 2
        windows = certificate.before(windows, middle)
        count = edge_count(inferred, windows, known)
    return total, count, windows


def _declared(inferred: Dataset[Inference]) -> Pairs:
    """The pairs of writers whose order of versions is declared."""
    edges = all_edges(inferred.map(_writes).collect())
    return Pairs(edges.source.astype(np.int64), edges.target.astype(np.int64))


def _writes(inference: Inference) -> Edges:
    return take(inference.edges, inference.edges.kinds == WW)


def _weak_answers(chunks: Dataset[Source], declared: Pairs | None, options: Options) -> Answers | None:
    """The answers for a weak model if the axioms decide all that it forbids; else None.

    A store that is only causally consistent violates real time everywhere: the certificate would prove nothing, and the
    search would get the whole graph.
    """
    forbidden = options.forbidden()
    classes = TIMED_CYCLES & forbidden
    decided = {base + order for base in ("G0", "G1c") for order in ("", "-process")}
    if not classes <= decided or forbidden & COVERS.keys():
        return None
    early = answers(_whole(chunks, declared, options), forbidden)
    return early if classes <= early.absent else None


def _answers(
    chunks: Dataset[Source],
    declared: Pairs | None,
    report: Report,
    cycles: Cycles,
    forbidden: frozenset[str],
    options: Options,
) -> Answers:
    """The axioms' answers about those forbidden anomalies that the search did not decide.

    For lists the certificate or a whole search decides every class of cycles, and so every broken axiom that implies a
    class which counts. Neither does so where the order of some versions is unknown: for registers, and for lists with
    several versions that no read shows; but if lists have no cycle at all, some order of these has none either.
    """
    requested = forbidden | {cover for name, cover in COVERS.items() if name in forbidden}
    # Of stretches only forbidden cycles are sought, and if there may be one, all is left open.
    has_part = options.stretches is not None and cycles.window_count > 0
    is_known = not _has_registers(report) and _is_searched(cycles)
    if is_known and not cycles.search.named and not has_part:
        return NO_ANSWERS
    if is_known and (has_part or not report.tally["keys-unordered"]):
        classes = TIMED_CYCLES & forbidden
        requested = frozenset(
            name for name in (TIMED_AXIOMS | {UPDATE}) & forbidden if not models.implied([name]) & classes
        )
    # The search knows versions by their values, and so not each contradiction to a declared order of commits.
    has_gaps = options.order.commits and _has_registers(report)
    if not requested & ANOMALIES and not has_gaps:
        return NO_ANSWERS
    return answers(_whole(chunks, declared, options), requested)


def _whole(chunks: Dataset[Source], declared: Pairs | None, options: Options) -> Execution:
    return whole(chunks, initial=options.initial, declared=declared, has_commits=options.order.commits)


def _has_registers(report: Report) -> bool:
    """True if the history uses registers, though all may be left out."""
    return report.tally["registers"] + report.tally["register-writes"] > 0


def _is_searched(cycles: Cycles) -> bool:
    """True if the search decided every class of cycles, as far as the order of versions is known."""
    return cycles.truncated is None and not cycles.search.undecided


def _counts(report: Report, found: Search, broken: Answers) -> dict[str, int]:
    """The anomalies that occur, prohibited or not, each with its count."""
    seen = {one.anomaly: one.count for one in report.sightings}
    named = {one.anomaly: one.count for one in found.named}
    axioms = {name: evidence.count if isinstance(evidence, Breach) else 1 for name, evidence in broken.broken}
    return seen | named | axioms


def _findings(
    chunks: Dataset[Source], report: Report, found: Search, broken: Answers, reported: Set[str], options: Options
) -> tuple[Finding, ...]:
    """The findings of the reported anomalies, in sentences that show the operations."""
    if not reported:
        return ()
    cycles = [one for one in found.named if one.anomaly in reported]
    named = {one.anomaly for one in cycles}  # A G0 of registers may be seen twice.
    sightings = [one for one in report.sightings if one.anomaly in reported and one.anomaly not in named]
    axioms = [(anomaly, evidence) for anomaly, evidence in broken.broken if anomaly in reported]
    examples = [sighting.example for sighting in sightings]
    ops = {op for example in examples for op in (example.op, example.other)}
    ops |= {op for named in cycles for op in named.example.ops}
    ops |= {op for _, evidence in axioms for op in evidence.ops}
    explain = explainer(
        chunks,
        ops=ops,
        versions=((example.key, value) for example in examples for value in example.versions),
        name=options.name,
        order=options.order,
        initial=options.initial,
        has_real_time="G-single-realtime" in options.forbidden(),
    )
    return (
        *(explain.sighting(sighting) for sighting in sightings),
        *(explain.cycle(named.anomaly, named.count, named.example) for named in cycles),
        *(explain.broken(anomaly, evidence) for anomaly, evidence in axioms),
    )


def _witnesses(tally: Counter[str]) -> dict[str, int]:
    needed = {"G0": tally["ww"], "G1c": tally["wr"] + tally["rw"]}
    counts = dict.fromkeys((*TIMED_AXIOMS, UPDATE), needed["G1c"])
    timed = {"-process": tally["timed-process"], "-realtime": tally["timed-process"] + tally["timed-realtime"]}
    counts |= {base + order: needed.get(base, tally["rw"] + timed.get(order, 0)) for base in CYCLES for order in ORDERS}
    return {name: counts.get(name, tally[name]) for name in TRANSACTIONAL}


def _reported(anomalies: Sequence[str], found: Search, options: Options) -> list[str]:
    """The anomalies without those that only restate others.

    Operations that are ordered by a dependency and by time at once form cycles of two classes. The one by time is
    reported only if it breaks a model or a promise that the others do not. Elle reports the one by dependency alone.
    A transaction that misses its own write contradicts itself: the first is reported only if it breaks a promise that
    the second does not.
    """
    restated = {named.anomaly for named in found.named if named.is_restated}
    restated |= {OWN} & set(anomalies)
    reported = [anomaly for anomaly in anomalies if anomaly not in restated]
    for anomaly in anomalies:
        breaks_more = anomaly != OWN and not set(models.ruled_out([anomaly])) <= set(models.ruled_out(reported))
        if anomaly in restated and (breaks_more or anomaly in options.undecided(reported)):
            reported.append(anomaly)
    return reported


def _facts(report: Report, cycles: Cycles, answers: Answers, options: Options) -> dict[str, Json]:
    tally = report.tally
    writes, placed = (tally[f"appends-{what}"] + tally[f"writes-{what}"] for what in ("ok", "placed"))
    sizes: dict[str, Json] = {name: tally[name] for name in _SIZES}
    return {
        "model": options.model if options.prohibited is None else None,
        "sizes": sizes,
        "edges": {kind: tally[kind] for kind in ("ww", "wr", "rw")},
        "version_order_known_permille": 1000 * placed // writes if writes else None,
        "windows": cycles.window_count,
        "residual_edges": cycles.residual_edges,
        "components": cycles.search.component_count,
        "undecided_pairs": answers.undecided_pairs or None,
        "notes": list[Json](unwritten(report, options)),
        **unwritten_reads(report, options.name),
        **(_order_of_versions(tally, options.order) if tally["registers"] else {}),
    }


def _order_of_versions(tally: Counter[str], order: Order) -> dict[str, Json]:
    """The sources of the order of registers' versions, and the number of pairs that each kind of source orders."""
    pairs: dict[str, Json] = {name: tally[f"pairs-{name}"] for name in ("given", "process", "real-time")}
    return {"version_order": dict[str, Json](order.described()), "version_pairs": pairs}


def _absent(report: Report, cycles: Cycles, answers: Answers, found: set[str]) -> frozenset[str]:
    """The cycles and broken axioms that are certainly absent: by the axioms' answers, or by a whole search.

    If the order of some versions is unknown, a search says so only of classes without rw. It decides each class that
    what it found does not imply.
    """
    if not _is_searched(cycles):
        return answers.absent
    is_open = _has_registers(report) or (report.tally["keys-unordered"] and cycles.search.named)
    searched = {base + order for base in (_WITHOUT_RW if is_open else CYCLES) for order in ORDERS}
    return answers.absent | (searched - models.implied(found))


def _consequences(
    counts: Mapping[str, int], report: Report, reported: Sequence[str], absent: frozenset[str], options: Options
) -> dict[str, Json]:
    """The models that are ruled out or certainly hold, and the anomalies that are not reported, with their counts.

    A model holds if nothing that it forbids is open for other reasons than its cycles, and each cycle and broken axiom
    that it forbids is absent, or implies or is a case of one that is.
    """
    found, forbidden, still_open = models.ruled_out(counts), options.forbidden(), open_by_garbage(report, options)
    named = ((model, models.prohibited((model,))) for model in models.MODELS if model not in found)
    closed = ((model, rules & _DECIDED) for model, rules in named if not rules & still_open)
    kept = [
        model
        for model, rules in closed
        if rules and all(models.implied([COVERS.get(rule, rule)]) & absent for rule in rules)
    ]
    allowed: dict[str, Json] = {name: count for name, count in counts.items() if name not in forbidden}
    restated: dict[str, Json] = {name: counts[name] for name in counts if name in forbidden.difference(reported)}
    return {
        "ruled_out_weakest": list(models.weakest(found)),
        "not_ruled_out_strongest": list(models.strongest(kept)),
        "allowed_anomalies": allowed,
        "restated_anomalies": restated,
    }


_OF_BOTH: Final = Check(
    name=TRANSACTIONS,
    anomalies=TRANSACTIONAL,
    judge=check,
    when=When.ALWAYS,
    by_generation=True,
    of_stretches=True,
    has_kernels=True,
    family=TRANSACTIONS,
)
CHECKS: Final = (
    _OF_BOTH,
    replace(_OF_BOTH, name=LOCKED, judge=partial(check, name=LOCKED), when=When.NAMED, is_locked=True),
)
