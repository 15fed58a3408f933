"""Names that a scenario may leave to its seed: the workload, and the style of the fault plan.

Each is a function of the seed and of a list alone, from a stream of its own. So nothing else of a run depends on
whether the name was drawn or given.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from harness.core.draw import Draw, Stream
from nemesis.styles.styles import STYLES, SWARM, SWARM_WEIGHT

ANY: Final = "any"
STYLE_NAMES: Final = (SWARM, *STYLES, ANY)


def workload_of(draw: Draw, workloads: Sequence[str]) -> str:
    """One of a cluster's workloads. A design lists its own first: the squares of places from the end decide, and no
    workload is left out.
    """
    count = len(workloads)
    return _weighted(
        draw.stream("workload-name"), {name: (count - at) ** 2 + count for at, name in enumerate(workloads)}
    )


def style_of(draw: Draw) -> str:
    """One of the styles of fault plans, by their weights."""
    weights = {SWARM: SWARM_WEIGHT} | {name: style.weight for name, style in STYLES.items()}
    return _weighted(draw.stream("style-name"), weights)


def _weighted(stream: Stream, weights: Mapping[str, int]) -> str:
    drawn = stream.below(sum(weights.values()))
    for name, weight in weights.items():
        if drawn < weight:
            return name
        drawn -= weight
    raise AssertionError
