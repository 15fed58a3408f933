"""Runs drawn without a parent: seed, parameters, load and workload, and a fault plan in one of the styles."""

from typing import Final

import msgspec

from harness.core.draw import Stream
from harness.hunt.space import SEEDS, Space, any_value
from harness.shrink.case import Case
from nemesis.styles.menu import Menu
from nemesis.styles.styles import STYLES

CLIENTS, RATES = (3, 5, 8), (1, 2, 3)  # Numbers of clients; factors of the given rate.
RATE_MAX: Final = 10_000.0  # The greatest rate of a scenario.
FIRST_STYLE: Final = "apart"  # Breaks a promise most often.
APART: Final = (1, 2)  # The share of plans with strikes apart.


def fresh(space: Space, menu: Menu, stream: Stream, *, style: str | None = None) -> Case:
    """A run drawn without a parent, with a plan of that style; None: half of them apart, the others of any."""
    scenario = msgspec.structs.replace(
        space.with_seed(stream.below(SEEDS)),
        clients=stream.choice(CLIENTS),
        rate=min(RATE_MAX, space.scenario.rate * stream.choice(RATES)),
        parameters={each.name: any_value(each, stream) for each in space.parameters} | space.scenario.parameters,
    )
    if style is None:
        style = FIRST_STYLE if stream.chance(*APART) else stream.choice(tuple(STYLES))
    return Case(scenario=scenario, plan=STYLES[style].draw(space.field, menu, stream))
