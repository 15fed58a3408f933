"""The styles by name, with their weights, and the drawing of a plan in one of them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from harness.core.draw import Draw, Stream
from nemesis.plan import Plan
from nemesis.styles.apart import apart
from nemesis.styles.dense import dense
from nemesis.styles.feeds import feeds
from nemesis.styles.field import Field
from nemesis.styles.focused import links, nodes, points, slow
from nemesis.styles.menu import Menu

SWARM, SWARM_WEIGHT = "swarm", 4  # The style of nemesis/swarm.py.
EARLY: Final = (1, 4)  # The share of plans that end early.


class Style(NamedTuple):
    """How plans are drawn. `weight` is its share of drawn runs."""

    weight: int
    draw: Callable[[Field, Menu, Stream], Plan]


STYLES: Final[Mapping[str, Style]] = MappingProxyType(
    {
        "apart": Style(5, apart),
        "dense": Style(2, dense),
        "feeds": Style(4, feeds),
        "points": Style(4, points),
        "links": Style(3, links),
        "nodes": Style(2, nodes),
        "slow": Style(2, slow),
    }
)


def draw_styled(name: str, field: Field, draw: Draw) -> Plan | None:
    """The plan of that style for that seed; None if the style finds nothing to strike with those packages.

    Some plans end early: what must happen within a time without faults is judged in the rest of the run.
    """
    stream = draw.stream(f"faults/{name}")
    plan = STYLES[name].draw(field, Menu(field.topology), stream)
    last_ns = stream.between(field.end_ns // 4, field.end_ns // 2) if stream.chance(*EARLY) else field.end_ns
    steps = tuple(step for step in plan.steps if step.at_ns < last_ns)
    return Plan(steps=steps, drawn={"style": name}) if steps else None
