"""The certificate: it lets no cycle pass, whatever the width of slices, and says nothing of what has none."""

from collections import Counter
from dataclasses import dataclass

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.graph import certificate
from checkers.graph.edges import NO_IMPLICIT, OPEN_END, RW, WW, Edges, ImplicitRw, Inference, Members
from checkers.graph.sightings import Report

Node = tuple[int, int]  # index, end
HORIZON = 20  # Beyond all indexes, and all ends but those far away.


def inference(nodes: list[Node], pairs: list[tuple[int, int]]) -> Inference:
    source = np.array([source for source, _ in pairs], np.int32)
    target = np.array([target for _, target in pairs], np.int32)
    end = np.array([end for _, end in nodes], np.int32)
    edges = Edges(source, target, end[source], end[target], np.full(len(pairs), WW, np.int8))
    return Inference(edges, NO_IMPLICIT, Report((), Counter()), ())


def windows(inferred: Inference, slice_ids: int) -> certificate.Windows:
    known = certificate.ends([certificate.open_sources(inferred)], last=certificate.last_index(inferred))
    mailboxes: dict[int, list[certificate.SliceShare]] = {}
    for number, share in certificate.route(inferred, known=known, slice_ids=slice_ids):
        mailboxes.setdefault(number, []).append(share)
    return certificate.union([certificate.certify(shares) for shares in mailboxes.values()])


def residual_nodes(inferred: Inference, found: certificate.Windows) -> set[int]:
    known = certificate.ends([certificate.open_sources(inferred)], last=certificate.last_index(inferred))
    edges = certificate.inside(inferred, windows=found, known=known)
    assert len(edges.source) == certificate.inside_count(inferred, windows=found, known=known)
    return set(edges.source.tolist()) | set(edges.target.tolist())


def cyclic_nodes(nodes: list[Node], pairs: list[tuple[int, int]]) -> set[int]:
    """Who is in a cycle of edges and real time, and has an edge to or from another such."""
    graph: nx.DiGraph[int] = nx.DiGraph(pairs)
    graph.add_edges_from((u, v) for u, (_, end) in enumerate(nodes) for v, _ in nodes if end <= v)
    parts = [part for part in nx.strongly_connected_components(graph) if len(part) > 1]
    return {node for part in parts for pair in pairs if set(pair) <= part for node in pair}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Node], list[tuple[int, int]]]:
    """Nodes in order of their index, most of which live for a short time, and edges between near ones."""
    count = draw(st.integers(2, 9))
    ends = [draw(st.one_of(st.integers(at + 1, at + 4), st.just(OPEN_END))) for at in range(count)]
    pair = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] != pair[1])
    pairs = draw(st.lists(pair, max_size=12))
    return [(at, min(end, OPEN_END)) for at, end in enumerate(ends)], pairs


@settings(max_examples=300)
@given(graph=graphs(), slice_ids=st.sampled_from((1, 2, 3, 100)))
def test_every_cyclic_node_is_residual(graph: tuple[list[Node], list[tuple[int, int]]], slice_ids: int) -> None:
    nodes, pairs = graph
    inferred = inference(nodes, pairs)
    found = windows(inferred, slice_ids)
    cyclic = cyclic_nodes(nodes, pairs)
    assert bool(len(found.start)) == bool(cyclic)
    assert cyclic <= residual_nodes(inferred, found)


def test_a_ring_of_concurrent_nodes_is_seen_in_slices_of_one_index() -> None:
    ring = inference([(at, 4) for at in range(4)], [(0, 1), (1, 2), (2, 3), (3, 0)])
    assert len(windows(ring, 1).start) == 1


def test_a_long_chain_of_concurrent_nodes_is_no_cycle() -> None:
    count = 40
    chain = inference([(at, count) for at in range(count)], [(at + 1, at) for at in range(count - 1)])
    assert len(windows(chain, 100).start) == 0


def test_an_edge_against_real_time_is_a_window_and_its_like_before_the_end_is_none() -> None:
    assert windows(inference([(0, 1), (1, 2)], [(1, 0)]), 10).start.tolist() == [0]
    assert windows(inference([(0, 2), (1, 2)], [(1, 0)]), 10).start.tolist() == []


def test_an_operation_without_end_must_precede_what_follows_it() -> None:
    # 2 may take effect at any time, but 0, which ended before 2 began, follows it.
    assert len(windows(inference([(0, 1), (1, 2), (2, OPEN_END)], [(2, 0)]), 10).start) == 1
    assert len(windows(inference([(0, 3), (1, 2), (2, OPEN_END)], [(2, 0)]), 10).start) == 0


def test_implicit_edges_are_written_out_where_real_time_does_not_imply_them() -> None:
    readers, writers = [2, 4], [0, 1, 3, 5]
    implicit = ImplicitRw(
        Members(np.zeros(2, np.int32), np.array(readers, np.int32), np.array([4, 5], np.int32)),
        Members(np.zeros(4, np.int32), np.array(writers, np.int32), np.array([1, 3, 6, 6], np.int32)),
    )
    inferred = Inference(inference([(0, 1)], []).edges, implicit, Report((), Counter()), ())
    nobody = certificate.ends([], last=9)
    shares = [share for _, share in certificate.route(inferred, known=nobody, slice_ids=100)]
    routed = {pair for one in shares for pair in zip(one.edges.source.tolist(), one.edges.target.tolist(), strict=True)}
    # 2 -> 0 and 4 -> 0, 4 -> 1 contradict real time: the window of the first stands for both.
    assert routed == {(2, 1), (2, 3), (4, 3)}
    found = certificate.union([one.windows for one in shares])
    assert (found.start.tolist(), found.stop.tolist()) == ([0], [5])
    everything = certificate.inside(inferred, windows=certificate.Windows(np.array([0]), np.array([9])), known=nobody)
    assert len(everything.source) == len(readers) * len(writers)
    assert set(everything.kinds.tolist()) == {RW}


def test_an_end_far_beyond_the_last_index_costs_nothing() -> None:
    far = OPEN_END - 1
    ring = inference([(0, far), (1, far)], [(0, 1), (1, 0)])
    known = certificate.ends([], last=certificate.last_index(ring))
    assert len(list(certificate.route(ring, known=known, slice_ids=1))) == 2
    assert windows(ring, 1).start.tolist() == [0]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Nodes with the ends of their records, those which rule 6 gives to some without one, edges, and implicit ones."""

    nodes: list[Node]
    given: dict[int, int]
    pairs: list[tuple[int, int]]
    readers: list[tuple[int, int]]  # group, node
    writers: list[tuple[int, int]]

    def inference(self) -> Inference:
        end = np.array([end for _, end in self.nodes], np.int32)
        columns = [np.array(rows, np.int32).reshape(-1, 2).T for rows in (self.readers, self.writers)]
        implicit = ImplicitRw(*(Members(group, op, end[op]) for group, op in columns))
        return Inference(inference(self.nodes, self.pairs).edges, implicit, Report((), Counter()), ())

    def known(self) -> certificate.Ends:
        op, end = np.array(sorted(self.given.items()), np.int64).reshape(-1, 2).T
        return certificate.Ends(op, end, certificate.last_index(self.inference()))

    def end(self, node: int) -> int:
        return self.given.get(node, self.nodes[node][1])

    def lifetime(self, *nodes: int) -> set[int]:
        """The indexes from the first of their beginnings to the last of their ends."""
        stop = max(max(self.end(node), node + 1) for node in nodes)
        return set(range(min(nodes), min(stop, HORIZON)))

    def implicit_pairs(self) -> list[tuple[int, int]]:
        """The implicit edges, without those to operations from which nothing leads on."""
        met = [(one, other) for group, one in self.readers for beside, other in self.writers if group == beside]
        return [(one, other) for one, other in met if one != other and self.end(other) != OPEN_END]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    count = draw(st.integers(2, 8))
    ends = [draw(st.one_of(st.integers(at + 1, at + 4), st.just(OPEN_END))) for at in range(count)]
    is_open = [end == OPEN_END for end in ends]
    given = {at: draw(st.sampled_from([at + 1, at + 2, at + 3, OPEN_END])) for at in range(count) if is_open[at]}
    for at in [at for at in given if draw(st.booleans())]:
        del given[at]
    node = st.integers(0, count - 1)
    pairs = draw(st.lists(st.tuples(node, node).filter(lambda pair: pair[0] != pair[1]), max_size=8, unique=True))
    member = st.tuples(st.integers(0, 2), node)
    readers, writers = (draw(st.lists(member, max_size=6, unique=True).map(sorted)) for _ in range(2))
    readers = [(group, op) for group, op in readers if not is_open[op]]
    return World(nodes=list(enumerate(ends)), given=given, pairs=pairs, readers=readers, writers=writers)


def points(found: certificate.Windows) -> set[int]:
    """The indexes in some windows."""
    pairs = zip(found.start.tolist(), found.stop.tolist(), strict=True)
    return {at for start, stop in pairs for at in range(start, min(stop, HORIZON))}


@settings(max_examples=300)
@given(world=worlds(), slice_ids=st.sampled_from((1, 2, 3, 100)))
def test_a_slice_gets_the_edges_of_its_time_that_real_time_neither_implies_nor_contradicts(
    world: World, slice_ids: int
) -> None:
    known = world.known()
    routed, windowed = set[tuple[int, int, int]](), set[int]()
    for number, share in certificate.route(world.inference(), known=known, slice_ids=slice_ids):
        columns = (share.edges.source.tolist(), share.edges.target.tolist())
        routed |= {(number, source, target) for source, target in zip(*columns, strict=True)}
        windowed |= points(share.windows)
    expected, contradicted = set[tuple[int, int, int]](), set[int]()
    for source, target in [*world.pairs, *world.implicit_pairs()]:
        is_passed = target in world.given and world.end(source) == OPEN_END
        if world.end(target) == OPEN_END and not is_passed:
            continue  # Nothing leads on from there.
        if world.end(target) == OPEN_END or world.end(target) <= source:
            contradicted |= world.lifetime(source, target)
        elif world.end(source) > target:
            spanned = [at // slice_ids for at in world.lifetime(source, target) if at <= known.last]
            last = known.last // slice_ids
            expected |= {(min(number, last), source, target) for number in spanned}
    assert routed == expected
    assert windowed == contradicted


@settings(max_examples=300)
@given(world=worlds(), spans=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=3))
def test_the_residual_graph_has_the_edges_between_nodes_that_touch_a_window(
    world: World, spans: list[tuple[int, int]]
) -> None:
    start, length = np.array(spans, np.int64).reshape(-1, 2).T
    found, known = certificate.union([certificate.Windows(start, start + length)]), world.known()
    edges = certificate.inside(world.inference(), windows=found, known=known)
    left = sorted(zip(edges.source.tolist(), edges.target.tolist(), strict=True))
    met = [(one, other) for group, one in world.readers for beside, other in world.writers if group == beside]
    is_near = [bool(world.lifetime(node) & points(found)) for node, _ in world.nodes]
    wanted = [pair for pair in [*world.pairs, *world.implicit_pairs()] if all(is_near[node] for node in pair)]
    assert left == sorted(wanted)
    to_itself = sum(one == other and is_near[one] for one, other in met)  # Who reads and writes: it is counted,
    count = certificate.inside_count(world.inference(), windows=found, known=known)
    assert count == len(wanted) + to_itself  # and not made.


def test_of_windows_what_lies_below_a_bound_is_kept_and_nothing_empty() -> None:
    found = certificate.Windows(np.array([0, 4, 9]), np.array([2, 8, 10]))
    for bound, wanted in ((3, [(0, 2)]), (4, [(0, 2)]), (6, [(0, 2), (4, 6)]), (9, [(0, 2), (4, 8)])):
        cut = certificate.before(found, bound)
        assert list(zip(cut.start.tolist(), cut.stop.tolist(), strict=True)) == wanted


def test_who_must_end_where_it_begins_has_no_moment() -> None:
    edges = inference([(0, 1), (1, 1)], [(0, 1)]).edges
    assert certificate.certify([certificate.SliceShare(edges, certificate.union([]))]).start.tolist() == [1]


def test_an_operation_without_an_end_ends_by_the_least_end_of_its_successors() -> None:
    inferred = inference(
        [(0, OPEN_END), (1, 9), (2, 5), (3, OPEN_END), (4, OPEN_END)], [(3, 0), (0, 1), (0, 2), (3, 4)]
    )
    known = certificate.ends([certificate.open_sources(inferred)], last=4)
    assert (known.op.tolist(), known.end.tolist()) == ([0, 3], [5, 5])


@settings(max_examples=300)
@given(graph=graphs())
def test_operations_without_an_end_have_one_if_something_with_an_end_or_a_cycle_follows(
    graph: tuple[list[Node], list[tuple[int, int]]],
) -> None:
    nodes, pairs = graph
    open_ops = {op for op, end in nodes if end == OPEN_END}
    after: nx.DiGraph[int] = nx.DiGraph((one, other) for one, other in pairs if one in open_ops)
    after.add_nodes_from(range(len(nodes)))
    reached = {op: nx.descendants(after, op) for op in open_ops}
    endless = {op for op in open_ops if any(op in reached[other] for other in reached[op] & open_ops)}
    expected = {}
    for op in sorted(open_ops):
        ends = [nodes[other][1] for other in reached[op] if other not in open_ops]
        if ends or (reached[op] | {op}) & endless:
            expected[op] = min(ends, default=OPEN_END)
    known = certificate.ends([certificate.open_sources(inference(nodes, pairs))], last=len(nodes))
    assert dict(zip(known.op.tolist(), known.end.tolist(), strict=True)) == expected
