"""Watermarks as consistent cuts, checked in the dependency graph of the transactions, with watermarks as readers.

The steps: `task` (each stream by itself, from rows to edges) and `transactions.inferred` (the operations by themselves)
-> shuffle by slice -> `certificate` (proof without a search) -> the residual graph, to `cycles.classes`.
Timestamps of the system are only needed for where sessions begin, what a cut by position closes, and the order of
versions if reads do not show it. The driver holds windows, counts, and some numbers for each watermark, never a row;
and four numbers for each version that only subscribers order (`order_elsewhere`).

Witnesses are watermarks that newly contain a committed write: of torn-watermark those of two keys of one operation, of
intermediate-watermark those of two versions of a key by one; of split- and fork-watermark and order-watermark those
that are one node with others; of the rest, all, if the transactions have an edge of the kind.

Not checked: predicates, and the timed order of registers' versions. If the cut is not declared there is no node.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.facts import Facts
from checkers.columns.index import first_rows
from checkers.columns.runs import distinct
from checkers.columns.table import concat
from checkers.engine.datasets import Dataset, Engine, Noted
from checkers.engine.protocol import Check, Context, When
from checkers.graph import certificate
from checkers.graph.classes import G0, G1C
from checkers.graph.edges import Edges, Inference
from checkers.history.names import PLAIN, Names
from checkers.history.registers import EMPTY, ORDER, Initial, Order
from checkers.history.streams import merged, stream_logs
from checkers.history.stretches import Stretches, Weights
from checkers.history.transactions import Chunk, Source, chunks
from checkers.transactions.inferred import Rules, inferred
from checkers.transactions.inferred import Summary as PartitionSummary
from checkers.transactions.options import RESIDUAL_EDGES
from checkers.transactions.sentences import explainer
from checkers.transactions.uncertified import edge_count, edges_inside, processes_of, windows_of
from checkers.watermarks.components import Found, may_be_cyclic, search
from checkers.watermarks.cycles.forbidden import forbidden
from checkers.watermarks.cycles.steps import FORK, INTERMEDIATE, NAMES, SPLIT, TORN, base_of, is_wider
from checkers.watermarks.cycles.steps import ORDER as ORDERED
from checkers.watermarks.generations import KINDS, Chances, chances, chances_of_one
from checkers.watermarks.numbering import joined, nodes_at, nodes_of, numbering
from checkers.watermarks.order_elsewhere import agreed, shows_order
from checkers.watermarks.reads import NO_NODE, Readers, as_of, invoked_before, may_read_as_of
from checkers.watermarks.sentences import CycleExplainer
from checkers.watermarks.task import (
    Derived,
    Detail,
    Known,
    Placed,
    StreamPart,
    Summary,
    derived,
    details,
    numbered,
    of_nodes,
    placement_of,
    received_of,
    required,
)
from checkers.words.checks import TRANSACTIONS, WATERMARKS
from checkers.words.models import implied, prohibited
from checkers.words.transactional import WATERMARK
from harness.core.columns import Bools, Int64s
from harness.core.promises import StreamContract, View
from harness.core.record import Json
from harness.core.verdict import Finding, Judgement

LOCKED: Final = "watermark-graph-locked"
_NO_CUT: Final = (
    "cut: unknown: the contract does not declare what a watermark of this stream covers, so there is no node to judge"
)


class Options(Struct, frozen=True, kw_only=True):
    """Options of the check. `forbidden` are the classes that count; all others are observations."""

    forbidden: frozenset[str]
    name: Names = PLAIN
    order: Order = ORDER
    initial: Initial = EMPTY
    slice_ids: int = certificate.SLICE_IDS
    partitions: int | None = None  # None: chosen by the amount of work.
    residual_edges: int = RESIDUAL_EDGES
    stretches: Stretches | None = None  # The history has several generations at once: their cycles prove nothing.
    is_locked: bool = False  # Of the transactions' reads only those under a lock count.
    facts: Facts | None = None  # Facts of the history for other checks; None if there are no others.
    views: tuple[View, ...] = ()  # Their events are no part of a stream.


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the watermarks. Forbidden is what promises about transactions, or naming this check, forbid.

    Raises HistoryError if a file is damaged.
    """
    named = _forbidden_by(context, (WATERMARKS, None))
    if context.contract is not None:
        named |= forbidden(context.contract, chain.from_iterable(context.prohibited.get(TRANSACTIONS, ())))
    return _of_classes(history, context, named)


def check_locked(history: Path, context: Context) -> Judgement:
    """The judgement of the watermarks. Forbidden is what promises that name this check forbid. Raises HistoryError."""
    return _of_classes(history, context, _forbidden_by(context, (LOCKED,)))


def _forbidden_by(context: Context, checks: tuple[str | None, ...]) -> frozenset[str]:
    """The classes of cycles forbidden by promises that name one of `checks`."""
    promises = (promise for promise in context.promises if promise.check in checks)
    return prohibited((), (name for promise in promises for name in promise.forbids if name in NAMES))


def _of_classes(history: Path, context: Context, classes: frozenset[str]) -> Judgement:
    if context.contract is None:
        raise AssertionError("without a contract there is no stream to judge")
    whole = context.home(history)
    options = Options(
        forbidden=classes,
        name=context.name,
        order=context.order,
        initial=context.initial,
        stretches=context.stretches,
        is_locked=context.is_locked,
        facts=context.facts,
        views=context.bounds.views,
    )
    return check_source(history, whole, context.contract, context.engine, options)


def check_source(source: Path, history: Path, contract: StreamContract, engine: Engine, options: Options) -> Judgement:
    """The judgement of the operations in `source` with the streams in `history`; usually they are one directory.

    Raises HistoryError if a file is damaged. The findings are the same on every engine.
    """
    name = (source, "streams of watermarks")
    make = partial(_streams, source, history, contract, engine, options)
    streams = None if contract.cut == "unknown" else (options.facts or Facts()).of(name, make)
    if streams is None or not any(len(one.marks.seq) for one in streams.summaries):
        unknown = dict.fromkeys(NAMES, _NO_CUT) if contract.cut == "unknown" else {}
        return _nothing(unknown, {"cut": contract.cut, "watermarks": 0})
    return _Check(streams, chunks(source, is_locked=options.is_locked), contract, engine, options).judgement()


class _Streams(Struct, frozen=True, kw_only=True):
    """All logs of a history: what is known of them together, what each contributes, and their summaries by number."""

    parts: Sequence[StreamPart]
    known: Known
    held: Dataset[Derived]
    summaries: Sequence[Summary]


def _streams(
    source: Path, history: Path, contract: StreamContract, engine: Engine, options: Options
) -> _Streams | None:
    """The logs of the streams in `history`; None if it has none. Any read shows the order of versions."""
    found = stream_logs(history, contract, options.views)
    parts = [StreamPart(place, log, str(source)) for place, log in enumerate(found)]
    if not parts:
        return None
    threads, known, logs = max(1, engine.parallelism // len(parts)), Known(), engine.over(parts)
    if len(parts) > 1:
        known = Known(merged(logs.map(partial(placement_of, threads=threads, shared=Facts())).collect()))
        if shows_order(contract):
            look = partial(received_of, contract=contract, known=known)
            known = replace(known, agreement=agreed(logs.map(look).collect()))
    is_of_stretches = options.stretches is not None
    derive = partial(derived, contract=contract, known=known, threads=threads, is_of_stretches=is_of_stretches)
    held = logs.map(derive).keep()
    known.shared.clear()
    summaries = sorted(held.notes(), key=lambda one: int(one.marks.log[0]) if len(one.marks.log) else -1)
    return _Streams(parts=parts, known=known, held=held.items(), summaries=summaries)


def _nothing(unknown: dict[str, str], facts: dict[str, Json]) -> Judgement:
    witnesses = dict.fromkeys(NAMES, 0)
    return Judgement(checker=WATERMARKS, findings=(), witnesses=witnesses, unknown=unknown, facts=facts)


class _Check:
    """The judgement of a history, after the summaries of all streams have arrived."""

    def __init__(
        self, streams: _Streams, sources: Sequence[Chunk], contract: StreamContract, engine: Engine, options: Options
    ) -> None:
        self.parts, self.known = streams.parts, streams.known
        self.held, self.summaries = streams.held, streams.summaries
        self.sources, self.contract, self.engine, self.options = sources, contract, engine, options
        self.marks = marks = joined([one.marks for one in self.summaries])
        self.node = nodes_of(marks, contract)
        self.places = Placed(
            begin=np.searchsorted(marks.log, np.arange(len(self.parts))),
            node=self.node,
            numbering=numbering(marks, self.node, self._first_after()),
            readers=self._readers(),
        )

    def judgement(self) -> Judgement:
        """The findings, the witnesses, and the facts."""
        clients = self._inferred()
        noted = self.held.map(partial(required, places=self.places)).keep().beside(clients)
        inferred, summaries = noted.items(), noted.notes()
        ends = certificate.ends([one.open_sources for one in summaries], last=max(one.last_index for one in summaries))
        windows = windows_of(inferred, ends, slice_ids=self.options.slice_ids)
        found, unknown = Found(), dict[str, str]()
        if len(windows.start):
            region = partial(numbered, places=self.places, region=certificate.Region(windows, ends))
            edges = self._residual(self.held.map(region).beside(clients.items()), windows, ends)
            if isinstance(edges, int):
                unknown = dict.fromkeys(NAMES, f"residual-too-large: {edges} edges, and no edge was searched")
            elif (of := self.options.stretches) is not None:
                is_open = may_be_cyclic(edges, self.places, self._chunks(), of, self.options.forbidden)
                unknown = dict.fromkeys(NAMES, "cycles-of-generations: some may be made of several") if is_open else {}
            else:
                found = self._found(edges)
        unknown |= _unsought(found, self.options.forbidden)
        findings = self._findings(found)
        names = {finding.anomaly for finding in findings}
        seen = (self.options.facts or Facts()).of((self.parts[0].source, "chances of watermarks"), self._chances)
        return Judgement(
            checker=WATERMARKS,
            findings=tuple(one for one in findings if one.anomaly in self.options.forbidden),
            witnesses=witnesses(seen, self._by_kind([one.kinds for one in summaries if one.kinds])),
            unknown={name: reason for name, reason in unknown.items() if name not in names},
            facts=self._facts(found, findings, len(windows.start)),
        )

    def _found(self, edges: Edges) -> Found:
        return search(
            edges,
            self.places,
            self.marks,
            forbidden=self.options.forbidden,
            details=self._details,
            processes=partial(processes_of, self._chunks()),
        )

    def _facts(self, found: Found, findings: Sequence[Finding], windows: int) -> dict[str, Json]:
        counts: Counter[str] = Counter()
        for one in self.summaries:
            counts.update(one.counts)
        orders, readers = dict(self.summaries[0].orders), self.places.readers
        orders["deliveries"] = len(distinct(self.known.agreement.write))
        # An unclear operation without a position counts once a subscriber received it.
        orders["none"] = max(0, orders["none"] - orders["deliveries"])
        merged_reads = np.count_nonzero(readers.node != NO_NODE)
        legal = {one.anomaly: one.sentence for one in findings if one.anomaly not in self.options.forbidden}
        return {
            "cut": self.contract.cut,
            "watermarks": len(self.marks.seq),
            "nodes": int(self.node.max()) + 1,
            "chains": len(np.unique(self.marks.chain)),
            **counts,
            "version_order": {name: count for name, count in orders.items() if count},
            "forbidden": [name for name in NAMES if name in self.options.forbidden],
            "observations": dict[str, Json](legal),
            "reads_as_of": {"one-with-a-watermark": int(merged_reads), "left-out": len(readers.op) - int(merged_reads)},
            "windows": windows,
            "components": found.component_count,
        }

    def _by_kind(self, of_parts: Sequence[Mapping[str, Bools]]) -> dict[str, Bools]:
        """For each kind of edge, (generations,): True for generations whose transactions have an edge of the kind."""
        nowhere = Weights(self.options.stretches).generations(np.empty(0, np.int64))
        return {kind: np.logical_or.reduce([nowhere, *(each[kind] for each in of_parts)]) for kind in KINDS}

    def _chances(self) -> Chances:
        """The chances to see each kind of class; for a history of stretches over all its generations."""
        marks, node, stretches = self.marks, self.node, self.options.stretches
        chains = node[first_rows(node, marks.chain)]
        is_shared = (np.bincount(chains, minlength=int(node.max(initial=-1)) + 1) > 1)[node]
        if stretches is None:
            return chances_of_one(marks, is_shared)
        with_marks = [one for one in self.summaries if len(one.marks.log)]
        begins = [int(self.places.begin[one.marks.log[0]]) for one in with_marks]
        entered, passing = (
            concat([replace(each, mark=each.mark + begin) for begin, each in zip(begins, every, strict=True)])
            for every in zip(*((one.entered, one.passing) for one in with_marks), strict=True)
        )
        return chances(marks, is_shared, stretches, entered=entered, passing=passing)

    def _first_after(self) -> Int64s | None:
        """For each watermark the first operation invoked after its receipt; None if real time does not order reads."""
        if self.contract.realtime != "reads":
            return None
        order = np.argsort(self.marks.seq, kind="stable")
        counts = self.engine.over(self.sources).map(partial(invoked_before, seq=self.marks.seq[order])).collect()
        result = np.empty(len(order), np.int64)
        result[order] = np.sum(counts, axis=0, dtype=np.int64) if counts else 0
        return result

    def _readers(self) -> Readers:
        """The reads as of a position, each with the node of the watermarks at that position."""
        sources = [source for source in self.sources if may_read_as_of(source)]
        parts = self.engine.over(sources).map(as_of).collect() if sources else []
        op = np.concatenate([np.empty(0, np.int64), *(op for op, _ in parts)])
        position = np.concatenate([np.empty(0, np.int64), *(position for _, position in parts)])
        order = np.argsort(op)
        return Readers(op=op[order], node=nodes_at(self.marks, self.node, position[order], self.contract))

    def _inferred(self) -> Dataset[Noted[Inference, PartitionSummary]]:
        """The dependencies that follow from the operations alone."""
        options = self.options
        rules = Rules(
            order=options.order,
            initial=options.initial,
            weights=Weights(options.stretches),
            partitions=options.partitions,
        )
        every = inferred(self.sources, self.engine, rules, shared=options.facts).items()
        return every.map(partial(of_nodes, places=self.places)).keep()

    def _residual(
        self, inferred: Dataset[Inference], windows: certificate.Windows, ends: certificate.Ends
    ) -> Edges | int:
        """The edges that no certificate covers; only their number, if they are too many."""
        count = edge_count(inferred, windows, ends)
        return count if count > self.options.residual_edges else edges_inside(inferred, windows, ends)

    def _details(self, op: Int64s, mark: Int64s) -> list[Detail]:
        look = partial(details, contract=self.contract, known=self.known, begin=self.places.begin, op=op, mark=mark)
        found = self.engine.over(self.parts).map(look).collect()
        self.known.shared.clear()
        return [detail for both in found for detail in both]

    def _findings(self, found: Found) -> list[Finding]:
        if not found.cycles:
            return []
        ops = {op for one in found.cycles for op, is_mark in zip(one.nodes, one.is_mark, strict=True) if not is_mark}
        explain = explainer(
            self._chunks(),
            ops=ops,
            versions=(),
            name=self.options.name,
            order=self.options.order,
            initial=self.options.initial,
        )
        cycle_explainer = CycleExplainer(explain, self.marks, self.parts[0].log.subscribers, self.options.name)
        return [cycle_explainer.finding(one) for one in found.cycles]

    def _chunks(self) -> Dataset[Source]:
        return self.engine.over([*self.sources])


def _unsought(found: Found, forbidden: frozenset[str]) -> dict[str, str]:
    """The reason for each class that may be present although it was not found."""
    there = [one.loop.anomaly for one in found.cycles if one.loop.anomaly in forbidden]
    result = {
        name: f"undecided: the {narrower.replace('-', ' ')} found here hides any weaker violation"
        for narrower in reversed(there)
        for name in forbidden - implied([narrower])
        if is_wider(name, narrower)
    }
    result |= dict.fromkeys(found.undecided, "search-too-long: not every path that may show it was tried")
    if found.unsearched:
        reason = f"search-too-long: {found.unsearched} components of the residual graph were not searched"
        result |= dict.fromkeys(NAMES, reason)
    return result


def witnesses(seen: Chances, has_kind: Mapping[str, Bools]) -> dict[str, int]:
    """For each class the number of watermarks that could have shown it, in generations that have its kind of edge."""
    by_kind = {kind: int(seen.in_each[is_there].sum()) for kind, is_there in has_kind.items()}
    needed = {
        ORDERED: seen.shared,
        INTERMEDIATE: seen.passing,
        TORN: seen.torn,
        SPLIT: seen.shared,
        FORK: seen.of_many,
        G0: by_kind["ww"],
        G1C: by_kind["wr"],
    }
    return {name: needed.get(base_of(name), by_kind["rw"]) for name in NAMES}


_OF_BOTH: Final = Check(
    name=WATERMARKS,
    anomalies={name: WATERMARK[name] for name in NAMES},
    judge=check,
    when=When.ALWAYS,
    needs_contract=True,
    by_generation=True,
    of_stretches=True,
    has_kernels=True,
    family=WATERMARKS,
)
CHECKS: Final = (
    _OF_BOTH,
    replace(_OF_BOTH, name=LOCKED, judge=check_locked, when=When.NAMED, is_locked=True),
)
