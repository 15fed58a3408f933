"""Plans with one object: failpoints, a few links, the nodes of one role, or subscribers that are slow.

Many bugs need one fault to strike while another has just left its mark: at one node, or at one moment of a protocol. A
plan that strikes everywhere meets such a pair seldom; a plan with one object repeats it. Others need calm: bounds of
time count only when everything has recovered.
"""

from typing import Final

from harness.core.draw import Stream
from nemesis.fault import MS, step_of
from nemesis.faults import slow_link, slow_subscriber
from nemesis.plan import Plan, Step
from nemesis.styles.field import LEAST_NS, Field
from nemesis.styles.menu import Menu
from nemesis.styles.narrow import at_point, on_links, on_nodes
from nemesis.topology import ends

FIRST_NS: Final = (300 * MS, 1_000 * MS)
WAITS_NS: Final = ((150 * MS, 500 * MS), (400 * MS, 950 * MS))  # How long a fault waits for its failpoint, and lasts.
SHORT_NS: Final = (50 * MS, 500 * MS)
DOWN_NS: Final = (400 * MS, 950 * MS)  # Under a second: others may depend on the only node of a role.
LONG_NS: Final = (500 * MS, 4_000 * MS)
LASTING_NS: Final = (3_000 * MS, 9_000 * MS)  # Longer than most bounds of time.
CLOSE_NS: Final = (20 * MS, 300 * MS)
USUAL_NS: Final = (400 * MS, 1_500 * MS)
CALM_NS: Final = (6_000 * MS, 12_000 * MS)  # Longer than it takes to recover from anything.
TOTAL_NS: Final = 400 * MS  # While no node can answer, nothing else is tested.
FEW: Final = (2, 4)
BESIDE: Final = (2, 3)  # The share of strikes at failpoints during which something else begins.
SUBSCRIBED: Final = (3, 4)  # The share of subscribers, or links to them, among what is slow for long.
LOST: Final = (1, 2)  # The share of slow links at whose end a sender stops: what is under way may be lost.


def points(field: Field, _menu: Menu, stream: Stream) -> Plan:
    """Bursts of faults at failpoints, all or a few; mostly something else strikes while nodes are held there."""
    topology = field.topology
    every = topology.points
    chosen = stream.sample(every, min(stream.choice(FEW), len(every))) if stream.chance(1, 2) else every
    gap, wait = stream.choice((CLOSE_NS, CLOSE_NS, USUAL_NS)), stream.choice(WAITS_NS)
    waiting: list[Step] = []
    beside: list[Step] = []
    at_ns = stream.between(*FIRST_NS)
    while chosen and at_ns < field.end_ns - wait[0]:
        end_ns = at_ns
        for _ in range(stream.between(1, 3)):
            strike = at_point(topology, field.packages, stream, stream.choice(chosen))
            until_ns = at_ns + stream.between(*wait)
            if strike is not None:
                package = next(each for each in field.packages if any(f.name == strike.fault for f in each.faults))
                waiting.append(step_of(package, strike, at_ns=at_ns, until_ns=until_ns))
                end_ns = max(end_ns, until_ns)
        if end_ns == at_ns:
            break
        if stream.chance(*BESIDE):
            beside += _beside(field, stream, stream.between(at_ns + LEAST_NS, (at_ns + end_ns) // 2))
        at_ns = end_ns + stream.between(*gap)
    return field.settled((*beside, *waiting))


def links(field: Field, _menu: Menu, stream: Stream) -> Plan:
    """Up to four sets of links at a time, slow or cut for long; then a node that sends on one of them may stop."""
    steps: list[Step] = []
    gap = stream.choice((USUAL_NS, CALM_NS))
    at_ns = stream.between(*FIRST_NS)
    while at_ns < field.end_ns - LONG_NS[0]:
        length_ns = stream.between(*LONG_NS)
        for _ in range(stream.between(1, 4)):
            chosen = on_links(field.topology, field.packages, stream)
            if chosen is not None:
                until_ns = at_ns + (min(length_ns, TOTAL_NS) if chosen[1].is_total else length_ns)
                steps.append(step_of(*chosen, at_ns=at_ns, until_ns=until_ns))
        at_ns += length_ns
        if stream.chance(*LOST):
            steps += _sender_stops(field, stream, steps, at_ns)
        at_ns += stream.between(*gap)
    return field.settled(steps)


def _sender_stops(field: Field, stream: Stream, steps: list[Step], at_ns: int) -> list[Step]:
    """A fault that takes down a node from which links are slow until then; empty if there is none."""
    stopping = [package for package in field.packages if package.takes_down]
    slow = [ends(link)[0] for step in steps if step.until_ns == at_ns for link in step.targets]
    senders = [node for node in dict.fromkeys(slow) if node in field.topology.ids()]
    if not stopping or not senders:
        return []
    package = stream.choice(stopping)
    strike = on_nodes(field.topology, package, stream, (stream.choice(senders),))
    return [] if strike is None else [step_of(package, strike, at_ns=at_ns, until_ns=at_ns + stream.between(*SHORT_NS))]


def nodes(field: Field, _menu: Menu, stream: Stream) -> Plan:
    """One node, or the nodes of one role in turn: each fault follows on another at the same place."""
    topology = field.topology
    members = topology.of_role(stream.choice(topology.roles()))
    circle = stream.shuffled(members) if stream.chance(1, 2) else [stream.choice(members)]
    packages = stream.sample(field.packages, stream.between(min(2, len(field.packages)), len(field.packages)))
    gap = stream.choice((CLOSE_NS, USUAL_NS, CALM_NS))
    steps: list[Step] = []
    at_ns = stream.between(*FIRST_NS)
    while at_ns < field.end_ns - SHORT_NS[0]:
        until_ns = at_ns + stream.between(*stream.choice((SHORT_NS, DOWN_NS)))
        package = stream.choice(packages)
        strike = on_nodes(topology, package, stream, (circle[0],))
        if strike is not None:
            steps.append(step_of(package, strike, at_ns=at_ns, until_ns=until_ns))
        circle.append(circle.pop(0))
        at_ns = until_ns + stream.between(*gap)
    return field.settled(steps)


def slow(field: Field, _menu: Menu, stream: Stream) -> Plan:
    """One slow subscriber after another, or slow links: each lasts long, and no other fault is in force.

    A slow subscriber must not delay the others, and only another fault would excuse their delays.
    """
    packages = [package for package in (slow_subscriber.PACKAGE, slow_link.PACKAGE) if package in field.packages]
    steps: list[Step] = []
    at_ns = stream.between(*FIRST_NS)
    while packages and at_ns < field.end_ns - LASTING_NS[0]:
        package = packages[0] if stream.chance(*SUBSCRIBED) else packages[-1]
        strike = package.draw(field.topology, stream)
        until_ns = at_ns + stream.between(*LASTING_NS)
        if strike is not None:
            steps.append(step_of(package, strike, at_ns=at_ns, until_ns=until_ns))
        at_ns = until_ns + stream.between(*USUAL_NS)
    return field.settled(steps)


def _beside(field: Field, stream: Stream, at_ns: int) -> list[Step]:
    """A short strike on links, or on the nodes of a smaller role, or on one node."""
    topology = field.topology
    until_ns = at_ns + stream.between(*SHORT_NS)
    if stream.chance(1, 2):
        chosen = on_links(topology, field.packages, stream)
        return [] if chosen is None or chosen[1].is_total else [step_of(*chosen, at_ns=at_ns, until_ns=until_ns)]
    members = topology.of_role(stream.choice(topology.roles()))
    is_whole = len(members) < len(topology.largest_role()) and stream.chance(1, 2)
    package = stream.choice(field.packages)
    strike = on_nodes(topology, package, stream, members if is_whole else (stream.choice(members),))
    return [] if strike is None else [step_of(package, strike, at_ns=at_ns, until_ns=until_ns)]
