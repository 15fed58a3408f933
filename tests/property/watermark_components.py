"""The components of a graph by its full definition, in the form in which classes are sought in them."""

from bisect import bisect_right
from collections.abc import Sequence

import networkx as nx
import numpy as np

from checkers.graph.edges import CHAIN, IN, OPEN_END, OUT, RW, WR, WW
from checkers.graph.paths import UNORDERED
from checkers.watermarks.cycles.steps import Component, Step
from harness.core.columns import NEVER, OK
from tests.oracles.watermark_graph import Cuts
from tests.oracles.watermark_source import Chain, Edge, Node, World

CLIENT = {"ww": WW, "wr": WR, "rw": RW}
THROUGH = {"in": IN, "out": OUT, "chain": CHAIN}


def components_of(world: World, edges: Sequence[Edge]) -> list[Component]:
    """Every component of two nodes or more. Real time is that of the transactions' own ends."""
    graph = nx.DiGraph([(edge.source, edge.target) for edge in edges])
    groups = sorted(sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1)
    return [_component(world, edges, group) for group in groups]


def _component(world: World, edges: Sequence[Edge], group: list[Node]) -> Component:
    order = sorted(world.transactions, key=lambda t: (t.invoke, t.index))
    rank = {t.index: place for place, t in enumerate(order)}
    invoked = [t.invoke for t in order]
    nodes = sorted(group, key=lambda node: (node[0] != "t", rank.get(node[1], 0) if node[0] == "t" else node[1]))
    number, end, process = list[int](), list[int](), list[int]()
    operations = {t.index: t for t in world.transactions}
    for place, (kind, name) in enumerate(nodes):
        if kind == "t":
            t = operations[name]
            has_end = t.outcome == OK and t.complete != NEVER
            number.append(rank[name])
            end.append(bisect_right(invoked, t.complete) if has_end else OPEN_END)
            process.append(t.process)
        else:
            later = [rank[e.target[1]] for e in edges if (e.source, e.kind) == ((kind, name), "rt")]
            number.append(len(order) + place)
            end.append(min(later, default=OPEN_END))
            process.append(UNORDERED)
    is_mark = [kind != "t" for kind, _ in nodes]
    columns = (np.array(number), np.array(end), np.array(process))
    return Component(*columns, is_mark, tuple(_steps(world, edges, nodes)))


def _steps(world: World, edges: Sequence[Edge], nodes: list[Node]) -> list[Step]:
    at = {node: place for place, node in enumerate(nodes)}
    inside = [edge for edge in edges if edge.source in at and edge.target in at]
    chains: dict[Chain, int] = {}
    places = _places(world)
    kinds: dict[tuple[int, int], int] = {}
    result = []
    for edge in inside:
        pair = at[edge.source], at[edge.target]
        if edge.kind in CLIENT:
            kinds[pair] = min(kinds.get(pair, RW), CLIENT[edge.kind])
        elif edge.kind in THROUGH and edge.chain is not None:
            mark = edge.target if edge.kind == "in" else edge.source
            chain = chains.setdefault(edge.chain, len(chains))
            place = places.get((edge.chain, mark), 0)
            result.append(Step(*pair, THROUGH[edge.kind], chain, edge.key, place=place))
    return [*(Step(*pair, kind) for pair, kind in kinds.items()), *result]


def _places(world: World) -> dict[tuple[Chain, Node], int]:
    """Where each node stands in each chain."""
    cuts = Cuts(world)
    result: dict[tuple[Chain, Node], int] = {}
    for chain, marks in cuts.chains.items():
        for place, mark in enumerate(marks):
            result.setdefault((chain, cuts.nodes[mark]), place)
    return result
