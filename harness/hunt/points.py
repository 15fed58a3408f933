"""Each fault at each failpoint: the runs that a hunt with `--points` makes before anything is drawn."""

from collections.abc import Iterator
from typing import Final

from harness.core.draw import Draw
from harness.hunt.space import SEEDS, Space
from harness.shrink.case import Case
from nemesis.plan import Plan, Step

# When a fault begins to wait for its point, in parts of a run: the first time that it is reached, and a later one.
MOMENTS: Final = (8, 3)
WAIT_NS: Final = 1_000_000_000


def at_points(space: Space, seed: int) -> tuple[Case, ...]:
    """A run for each fault that can strike at a failpoint, each failpoint, and two moments, in that order.

    The fault strikes whichever node reaches the point first in half a second; if none does, the first node. All runs
    have one scenario, whose seed follows from the hunt's `seed`. Empty for a cluster without failpoints.
    """
    scenario = space.with_seed(Draw(seed).stream("points").below(SEEDS))
    return tuple(Case(scenario=scenario, plan=Plan(steps=(step,))) for step in _steps(space))


def _steps(space: Space) -> Iterator[Step]:
    for package in space.field.packages:
        for fault in package.faults:
            if "point" in fault.optional:
                for point in space.field.topology.points:
                    for moment in MOMENTS:
                        at_ns = space.field.end_ns // moment
                        yield Step(
                            fault=fault.name,
                            package=package.name,
                            at_ns=at_ns,
                            until_ns=min(at_ns + WAIT_NS, space.field.end_ns),
                            targets=space.field.topology.ids(),
                            args={"point": point},
                        )
