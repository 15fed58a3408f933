"""The dependencies of a history's transactions, which several checks need: computed once for all of them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.facts import Facts
from checkers.engine.datasets import Dataset, Engine, Noted
from checkers.graph import certificate
from checkers.graph.edges import NO_IMPLICIT, Edges, Inference, all_edges
from checkers.graph.sightings import Report, Sighting
from checkers.history.registers import Initial, Order
from checkers.history.stretches import Weights
from checkers.history.transactions import Source, op_count
from checkers.transactions.partition import Share, infer, shares
from harness.core.columns import Bools

_OPS_PER_PARTITION: Final = 200_000
_OPS_WORTH_A_TASK: Final = 20_000


class Summary(Struct, frozen=True):
    """The part of one partition's inference that the driver needs."""

    report: Report
    left_out: tuple[Sighting, ...]
    open_sources: Edges
    last_index: int
    kinds: Mapping[str, Bools]


class Rules(Struct, frozen=True, kw_only=True):
    """What dependencies follow from besides the operations, and the number of partitions of keys, if it is given."""

    order: Order
    initial: Initial
    weights: Weights
    partitions: int | None = None


def inferred(
    sources: Sequence[Source], engine: Engine, rules: Rules, *, shared: Facts | None = None, has_edges: bool = True
) -> Dataset[Noted[Inference, Summary]]:
    """The inference of each partition of keys; without `has_edges` only the summary, as nothing will use its edges.

    With `shared`, the facts of the history, it is computed once, with edges. Raises HistoryError if a chunk is damaged.
    """
    if shared is not None:
        return shared.of((*sources, "dependencies"), partial(inferred, sources, engine, rules))
    partitions = rules.partitions or _partitions(op_count(sources), engine.parallelism)
    route = partial(shares, partitions=partitions, initial=rules.initial, weights=rules.weights)
    kernel = partial(_inferred, rules=rules, has_edges=has_edges)
    return engine.over(sources).shuffle(route, kernel, partitions=partitions).keep()


def _partitions(op_count: int, parallelism: int) -> int:
    """The number of partitions of keys: enough for all threads, but none too large, and none too small for a task."""
    return max(op_count // _OPS_PER_PARTITION, min(parallelism, op_count // _OPS_WORTH_A_TASK), 1)


def _inferred(parts: Sequence[Share], *, rules: Rules, has_edges: bool) -> Noted[Inference, Summary]:
    inference = infer(parts, order=rules.order, initial=rules.initial, weights=rules.weights)
    kept = inference if has_edges else replace(inference, edges=all_edges([]), implicit=NO_IMPLICIT)
    return Noted(kept, summary(inference))


def summary(inference: Inference) -> Summary:
    """The part of an inference that the driver needs."""
    return Summary(
        inference.report,
        inference.left_out,
        certificate.open_sources(inference),
        certificate.last_index(inference),
        inference.kinds,
    )
