"""The part of the graph that no certificate covers (checkers/graph/certificate.py), gathered from all tasks."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from checkers.engine.datasets import Dataset
from checkers.graph import certificate
from checkers.graph.certificate import Ends, Windows
from checkers.graph.classes import kinds_of
from checkers.graph.edges import Edges, Inference, all_edges
from checkers.graph.residual import Residual, Search, has_cycle
from checkers.history.transactions import Source, load
from harness.core.columns import FAIL, Int64s


def windows_of(inferred: Dataset[Inference], known: Ends, *, slice_ids: int) -> Windows:
    """The windows of all slices that may hold a cycle; none if the certificate proves that there is no cycle."""
    route = partial(certificate.route, known=known, slice_ids=slice_ids)
    slice_count = known.last // slice_ids + 1
    return certificate.union(inferred.shuffle(route, certificate.certify, partitions=slice_count).collect())


def edge_count(inferred: Dataset[Inference], windows: Windows, known: Ends) -> int:
    """An upper bound of the number of edges in those windows."""
    return sum(inferred.map(partial(certificate.inside_count, windows=windows, known=known)).collect())


def edges_inside(inferred: Dataset[Inference], windows: Windows, known: Ends) -> Edges:
    """The edges in those windows."""
    return all_edges(inferred.map(partial(certificate.inside, windows=windows, known=known)).collect())


def possible(graph: Residual, forbidden: frozenset[str], covers: Mapping[str, str]) -> Search:
    """A search result that finds nothing: the forbidden classes are undecided if the graph may have one, else absent.

    `covers` maps some anomalies that no check looks for to a class of cycles that includes them.
    """
    kinds, is_timed = kinds_of(forbidden | {cover for name, cover in covers.items() if name in forbidden})
    is_possible = has_cycle(graph, kinds=kinds, is_timed=is_timed)
    return Search((), 0, tuple(sorted(forbidden)) if is_possible else ())


def processes_of(chunks: Dataset[Source], op: Int64s) -> tuple[Int64s, Int64s]:
    """Those of the operations that did not fail, ascending, and the process of each."""
    none = np.empty(0, np.int64)
    parts = [(none, none), *chunks.map(partial(_processes, op=op)).collect()]
    ops, processes = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(ops)
    return ops[order], processes[order]


def _processes(source: Source, *, op: Int64s) -> tuple[Int64s, Int64s]:
    transactions = load(source)
    rows = np.flatnonzero((transactions.outcome != FAIL) & np.isin(transactions.index, op))
    return transactions.index[rows], transactions.process[rows]
