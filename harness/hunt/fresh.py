"""Runs drawn without a parent: seed, parameters, load and workload, and a fault plan in one of the styles."""

from typing import Final

import msgspec

from harness.core.draw import Stream
from harness.hunt.space import SEEDS, Space, any_value
from harness.shrink.case import Case
from nemesis.styles.apart import apart
from nemesis.styles.dense import dense
from nemesis.styles.menu import Menu

CLIENTS, RATES = (3, 5, 8), (1, 2, 3)  # Numbers of clients; factors of the given rate.
RATE_MAX: Final = 10_000.0  # The greatest rate of a scenario.
APART: Final = (1, 2)  # The share of plans with strikes apart.


def fresh(space: Space, menu: Menu, stream: Stream, *, is_apart: bool | None = None) -> Case:
    """A run drawn without a parent. `is_apart`: with strikes apart, or another style; None: at random."""
    scenario = msgspec.structs.replace(
        space.with_seed(stream.below(SEEDS)),
        clients=stream.choice(CLIENTS),
        rate=min(RATE_MAX, space.scenario.rate * stream.choice(RATES)),
        parameters={each.name: any_value(each, stream) for each in space.parameters} | space.scenario.parameters,
    )
    if is_apart is None:
        is_apart = stream.chance(*APART)
    draw = apart if is_apart else dense
    return Case(scenario=scenario, plan=draw(space.field, menu, stream))
