"""Strongly connected components: the search in Python and scipy find the same ones."""

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

from checkers.graph import strong
from checkers.graph.strong import strong_labels
from harness.core.columns import Int64s


def members(label: Int64s) -> set[frozenset[int]]:
    """The nodes of each component."""
    return {frozenset(np.flatnonzero(label == number).tolist()) for number in label.tolist()}


@pytest.mark.parametrize("seed", range(300))
def test_python_scipy_and_networkx_find_the_same_components(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(seed)
    size = int(draw.integers(1, 40))
    source, target = draw.integers(0, size, (2, int(draw.integers(1, 100))))
    graph = nx.DiGraph(zip(source.tolist(), target.tolist(), strict=True))
    graph.add_nodes_from(range(size))
    expected = {frozenset(each) for each in nx.strongly_connected_components(graph)}
    for most in (strong.FEW_STEPS, 0):
        monkeypatch.setattr(strong, "FEW_STEPS", most)
        label = strong_labels(source, target, size)
        assert members(label) == expected
        assert set(label.tolist()) == set(range(len(expected)))
        assert np.all(label[source] >= label[target]), "no step leads to a higher number"


def test_a_small_graph_does_not_load_scipy() -> None:
    code = """
import sys
import numpy as np
from checkers.graph.strong import strong_labels
strong_labels(np.array([0, 1]), np.array([1, 0]), 2)
sys.exit("scipy" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_chain_is_no_deeper_than_its_memory() -> None:
    size = strong.FEW_STEPS
    ahead = np.arange(size - 1)
    assert strong_labels(ahead, ahead + 1, size).tolist() == list(reversed(range(size)))
    assert set(strong_labels(np.append(ahead, size - 1), np.append(ahead + 1, 0), size).tolist()) == {0}
