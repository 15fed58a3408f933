"""Strongly connected components: by scipy, or in Python where loading scipy would take longer.

The graph alone decides which: their numbers of components may differ, and with these the cycle that a finding shows.
"""

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np

from checkers.columns.index import ascending
from checkers.columns.runs import bounds
from harness.core.columns import Int64s

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Loading scipy takes 0.27 CPU s, a step or a node in Python 0.6 us. A check looks at several graphs, most of them
# small: a check of 10,000 registers takes 0.45 CPU s, 0.62 with scipy, and 0.55 with networkx.
FEW_STEPS: Final = 20_000


def strong_labels(source: Int64s, target: Int64s, size: int) -> Int64s:
    """The number of the strongly connected component of each node, shape (size,). No step leads to a higher number."""
    if not len(source):
        return np.arange(size)
    if max(len(source), size) <= FEW_STEPS:
        return _depth_first(source, target, size)
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  It takes longer than most checks.

    _, label = connected_components(matrix(source, target, size), directed=True, connection="strong")
    return label.astype(np.int64)


def matrix(source: Int64s, target: Int64s, size: int) -> "csr_array":
    """The steps as scipy takes them."""
    from scipy.sparse import coo_array  # noqa: PLC0415  As above.

    return coo_array((np.ones(len(source), np.int8), (source, target)), (size, size)).tocsr()


def _depth_first(source: Int64s, target: Int64s, size: int) -> Int64s:
    """The search begins at the least node, and goes on to the greatest target first.

    Source: Tarjan, Depth-first search and linear graph algorithms, SIAM Journal on Computing 1972.
    """
    order = ascending(source, -target)
    targets, starts = target[order].tolist(), bounds(source[order], size).tolist()
    label, labels, turns = [-1] * size, count(), count()
    turn = [-1] * size  # When the search came to a node: -1 before that, `size` once the node has its label.
    least = [0] * size  # The least turn that steps from there are known to lead to.
    waiting = list[int]()  # The nodes without a label to which the search has come, by turn.
    path = list[tuple[int, Iterator[int]]]()  # From the first node to the current one, each with its steps to come.

    def enter(node: int) -> None:
        turn[node] = least[node] = next(turns)
        waiting.append(node)
        path.append((node, iter(targets[starts[node] : starts[node + 1]])))

    for first in range(size):
        if turn[first] < 0:
            enter(first)
        while path:
            node, left = path[-1]
            for reached in left:
                if turn[reached] < 0:
                    enter(reached)
                    break
                least[node] = min(least[node], turn[reached])
            else:
                path.pop()
                if path and least[node] < least[path[-1][0]]:
                    least[path[-1][0]] = least[node]
                if least[node] == turn[node]:
                    number = next(labels)
                    while label[node] < 0:
                        done = waiting.pop()
                        label[done], turn[done] = number, size
    return np.array(label, np.int64)
