"""One fault after another, some of them with a second one at the same time.

Every second plan has long faults, which divide a cluster for long enough; the others have short ones, mostly in pairs,
each package as often as the others. Source: Groce et al., "Swarm testing", ISSTA 2012: what a run leaves out matters as
much as what it has.
"""

from typing import Final

from harness.core.draw import Stream
from nemesis.fault import MS, step_of
from nemesis.faults import partition
from nemesis.plan import Plan, Step
from nemesis.styles.apart import TOTAL_NS
from nemesis.styles.field import LEAST_NS, Field
from nemesis.styles.menu import Menu
from nemesis.styles.narrow import DIVIDED

SHORT_NS: Final = (150 * MS, 600 * MS)
LONG_NS: Final = (700 * MS, 2_000 * MS)
PAUSES_NS: Final = (100 * MS, 300 * MS, 900 * MS)  # The mean pause between two faults.
SELDOM, OFTEN = (1, 4), (3, 4)  # The share of faults during which a second one begins.


def dense(field: Field, menu: Menu, stream: Stream) -> Plan:
    """One fault after another, of at least three packages, some of them with a second one at the same time.

    Every second run has long faults, which divide a cluster for long enough; the others have short ones, mostly in
    pairs, each package as often as the others.
    """
    packages = stream.sample(field.packages, stream.between(min(3, len(field.packages)), len(field.packages)))
    is_long, pause_ns = stream.chance(1, 2), stream.choice(PAUSES_NS)
    lengths_ns, together = (LONG_NS, SELDOM) if is_long else (SHORT_NS, OFTEN)
    steps: list[Step] = []

    def struck(begin_ns: int, beside: Step | None = None) -> int:
        """Add a step that begins at `begin_ns`, and return its end."""
        chosen = menu.strike(packages if is_long else (stream.choice(packages),), stream, beside)
        if chosen is None:
            return begin_ns
        if chosen[0] is partition.PACKAGE and stream.chance(*DIVIDED):
            division = partition.draw_division(field.topology, stream)
            chosen = chosen if division is None else (partition.PACKAGE, division)
        length_ns = stream.between(*lengths_ns)
        length_ns = min(length_ns, TOTAL_NS) if chosen[1].is_total else length_ns
        steps.append(step_of(*chosen, at_ns=begin_ns, until_ns=begin_ns + length_ns))
        return begin_ns + length_ns

    at_ns = stream.between(LEAST_NS, pause_ns)
    while at_ns < field.end_ns:
        begin_ns, at_ns = at_ns, struck(at_ns)
        if steps and stream.chance(*together):
            at_ns = max(at_ns, struck(stream.between(begin_ns, at_ns), steps[-1]))
        at_ns += stream.exponential(pause_ns)
    return field.settled(steps)
