"""Strongly connected components: the search in Python and scipy give the same numbers."""

import sys

import numpy as np
import pytest

from checkers.graph import strong
from checkers.graph.strong import strong_labels


@pytest.fixture
def without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not loaded scipy: small graphs are searched in Python."""
    monkeypatch.delitem(sys.modules, "scipy.sparse.csgraph", raising=False)


@pytest.mark.parametrize("seed", range(300))
def test_the_search_in_python_numbers_components_as_scipy_does(
    seed: int, without_scipy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(seed)
    size = int(draw.integers(1, 40))
    source, target = draw.integers(0, size, (2, int(draw.integers(1, 100))))
    label = strong_labels(source, target, size)
    assert np.all(label[source] >= label[target]), "no step leads to a higher number"
    assert "scipy.sparse.csgraph" not in sys.modules
    monkeypatch.setattr(strong, "FEW_STEPS", 0)
    assert strong_labels(source, target, size).tolist() == label.tolist()


def test_a_chain_is_no_deeper_than_its_memory(without_scipy: None) -> None:
    size = strong.FEW_STEPS
    ahead = np.arange(size - 1)
    assert strong_labels(ahead, ahead + 1, size).tolist() == list(reversed(range(size)))
    assert set(strong_labels(np.append(ahead, size - 1), np.append(ahead + 1, 0), size).tolist()) == {0}
    assert "scipy.sparse.csgraph" not in sys.modules
