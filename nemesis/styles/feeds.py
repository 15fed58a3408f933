"""Nodes that feed subscribers stop, one after the other, while links to the subscribers have different delays.

A node that takes over finds that a subscriber has heard only from some nodes, and has not acknowledged everything. With
one delay for all links there is no such moment.
"""

from typing import Final

from harness.core.draw import Stream
from nemesis.fault import MS, Package, step_of
from nemesis.faults import slow_link
from nemesis.plan import Plan, Step
from nemesis.styles.field import Field
from nemesis.styles.menu import Menu
from nemesis.styles.narrow import on_nodes
from nemesis.topology import CLIENT, DIRECT, SUBSCRIBER, Strike, Topology

FIRST_NS: Final = (300 * MS, 1_000 * MS)
LENGTH_NS: Final = (800 * MS, 2_500 * MS)
DOWN_NS: Final = (50 * MS, 500 * MS)
RECOVERY_NS: Final = (600 * MS, 1_200 * MS)
LATENCIES_MS: Final = ((20, 250), (250, 1_200))  # About as much as time-outs, or more.
SLOW: Final = (1, 2)  # The share of links that are slow.
ALL: Final = (1, 2)  # The share of rounds with slow links to all subscribers.


def feeds(field: Field, _menu: Menu, stream: Stream) -> Plan:
    """Rounds with slow links between a role and its subscribers; in each a node of that role stops.

    In a cluster without subscribers, between any two roles of servers. Without faults of both kinds the plan is empty.
    """
    roles = _roles(field.topology)
    stopping = [package for package in field.packages if package.takes_down]
    steps: list[Step] = []
    at_ns = stream.between(*FIRST_NS)
    while roles and stopping and slow_link.PACKAGE in field.packages and at_ns < field.end_ns - LENGTH_NS[0]:
        until_ns = at_ns + stream.between(*LENGTH_NS)
        steps += _round(field.topology, stream, stream.choice(roles), stream.choice(stopping), at_ns, until_ns)
        at_ns = until_ns + stream.between(*RECOVERY_NS)
    return field.settled(steps)


def _roles(topology: Topology) -> list[tuple[str, str]]:
    """Pairs of linked roles, the feeding one first; only those with subscribers, if there are any."""
    linked = [pair for pair, kind in topology.links.items() if kind != DIRECT and CLIENT not in pair]
    return [pair for pair in linked if pair[1] == SUBSCRIBER] or linked


def _round(
    topology: Topology, stream: Stream, roles: tuple[str, str], package: Package, at_ns: int, until_ns: int
) -> list[Step]:
    """Slow links, in each direction by themselves, and a strike of that package in the middle."""
    senders, receivers = topology.of_role(roles[0]), topology.of_role(roles[1])
    near = receivers if stream.chance(*ALL) else (stream.choice(receivers),)
    stopped = stream.choice(senders)
    quarter_ns = (until_ns - at_ns) // 4
    stop_ns = stream.between(at_ns + quarter_ns, until_ns - quarter_ns)
    pairs = [(sender, receiver) for sender in senders for receiver in near]
    steps = []
    for source, target in dict.fromkeys((*pairs, *((target, source) for source, target in pairs))):
        if topology.kind(source, target) is not None and stream.chance(*SLOW):
            latency_ns = stream.between(*stream.choice(LATENCIES_MS)) * MS
            args: dict[str, int | str] = {"latency_ns": latency_ns, "jitter_ns": latency_ns // 2}
            delay = Strike(fault=slow_link.DELAY.name, targets=(f"{source}>{target}",), args=args)
            # Two faults of one node at a time could hide each other's effect.
            end_ns = stop_ns if stopped in (source, target) else until_ns
            steps.append(step_of(slow_link.PACKAGE, delay, at_ns=at_ns, until_ns=end_ns))
    strike = on_nodes(topology, package, stream, (stopped,))
    if strike is not None:
        steps.append(step_of(package, strike, at_ns=stop_ns, until_ns=stop_ns + stream.between(*DOWN_NS)))
    return steps
