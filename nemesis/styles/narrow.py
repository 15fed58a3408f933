"""Narrow strikes, aimed by role and by failpoint: a node, its links, and what a node is about to do."""

from typing import Final

import msgspec

from harness.core.draw import Stream
from nemesis.fault import MS, Package
from nemesis.faults import partition, slow_link
from nemesis.plan import FaultName
from nemesis.topology import CLIENT, DIRECT, ENOUGH, Strike, Topology, ends

DRAWS: Final = 20  # The number of draws for a strike that can be aimed.
LATENCIES_MS: Final = ((20, 60), (60, 250), (250, 1_200))  # Less than time-outs, about as much, more.
WHOLE_ROLE: Final = (1, 3)  # The share of ends of links at which all nodes of a role are meant.
ALIKE: Final = (1, 4)  # The share of links inside the largest role, where there are quorums.
HELD: Final = (1, 2)  # The share of strikes at failpoints that only hold the node there.
DIVIDED: Final = (1, 2)  # The share of partitions that divide the cluster completely.
ONE: Final = (1, 2)  # The share of strikes at failpoints that wait for one node of the role.


def at_point(topology: Topology, packages: tuple[Package, ...], stream: Stream, point: str) -> Strike | None:
    """A strike at that failpoint, of one node that may reach it, or of whichever reaches it first.

    None if no package has a fault that strikes at failpoints.
    """
    able = [package for package in packages if any("point" in fault.optional for fault in package.faults)]
    pausing = [package for package in able if all(fault.name == "pause" for fault in package.faults)]
    if not able:
        return None
    package = stream.choice(pausing if pausing and stream.chance(*HELD) else able)
    nodes = topology.reaching(point)
    targets = (stream.choice(nodes),) if stream.chance(*ONE) else nodes
    for _ in range(DRAWS):
        strike = package.draw(topology, stream)
        if strike is not None:
            return Strike(fault=strike.fault, targets=targets, args=strike.args | {"point": point})
    return None


def on_nodes(topology: Topology, package: Package, stream: Stream, nodes: tuple[str, ...]) -> Strike | None:
    """A strike of that package on those nodes, or on the drawn links that end there.

    None if none was drawn that can be aimed at them.
    """
    for _ in range(DRAWS):
        strike = package.draw(topology, stream)
        if strike is None or not strike.targets or "point" in strike.args:
            continue
        if ">" in strike.targets[0]:
            targets = tuple(link for link in strike.targets if not set(nodes).isdisjoint(ends(link)))
        elif strike.fault == "consumer":
            targets = tuple(node for node in strike.targets if node in nodes)
        else:
            targets = tuple(node for node in nodes if strike.fault != "clock" or node not in topology.clockless)
        if targets:
            return msgspec.structs.replace(strike, targets=targets, is_total=strike.is_total and len(targets) > 1)
    return None


def on_links(topology: Topology, packages: tuple[Package, ...], stream: Stream) -> tuple[Package, Strike] | None:
    """Links between two roles, or from one node to some of its like, slow or silent, in one direction or both; or a
    complete division.

    None without a package for that, or if there are no such links.
    """
    able = [package for package in (slow_link.PACKAGE, slow_link.PACKAGE, partition.PACKAGE) if package in packages]
    links = _links(topology, stream) if able else ()
    if not links:
        return None
    package = stream.choice(able)
    if package is partition.PACKAGE:
        division = partition.draw_division(topology, stream) if stream.chance(*DIVIDED) else None
        if division is not None:
            return package, division
        fault: FaultName = stream.choice((partition.CUT.name, partition.STALL.name))
        is_total = any(CLIENT in ends(link) for link in links) and len(links) > 1
        return package, Strike(fault=fault, targets=links, is_total=is_total)
    latency_ns = stream.between(*stream.choice(LATENCIES_MS)) * MS
    args: dict[str, int | str] = {"latency_ns": latency_ns, "jitter_ns": latency_ns // 2}
    return package, Strike(fault=slow_link.DELAY.name, targets=links, args=args)


def _links(topology: Topology, stream: Stream) -> tuple[str, ...]:
    members = topology.largest_role()
    if len(members) >= ENOUGH and stream.chance(*ALIKE):
        one, *others = stream.shuffled(members)
        near: tuple[str, ...] = (one,)
        far = tuple(stream.sample(others, stream.between(1, len(others))))
    else:
        source, target = stream.choice(tuple(topology.links))
        near, far = _end(topology, stream, source), _end(topology, stream, target)
    pairs = [(a, b) for a in near for b in far]
    back = [(b, a) for a, b in pairs]
    found = topology.existing(stream.choice((pairs, back, pairs + back)))
    return tuple(link for link in found if topology.kind(*ends(link)) != DIRECT)


def _end(topology: Topology, stream: Stream, role: str) -> tuple[str, ...]:
    nodes = topology.of_role(role)
    return nodes if stream.chance(*WHOLE_ROLE) else (stream.choice(nodes),)
