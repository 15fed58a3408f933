"""Narrow strikes (nodes that stop, links that are cut), one after the other, with time to recover in between.

Something is slow at each: what a node sends before it stops, or something that overlaps the strike. Damage by a narrow
strike lasts until the end of the run unless something restarts everything, as wide strikes do and, while a node is
still joining, the next strike. So such a run shows faults of recovery that a dense one hides.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from harness.core.draw import Stream
from nemesis.fault import MS, Package, step_of
from nemesis.faults import partition
from nemesis.plan import Plan, Step
from nemesis.styles.field import Field
from nemesis.styles.menu import Menu
from nemesis.topology import Strike, ends

TOTAL_NS: Final = 800 * MS  # Short: while no node can answer, nothing else is tested.
DOWN_NS: Final = (20 * MS, 400 * MS)  # A crash is soon noticed: the shorter, the more strikes.
PARTED_NS: Final = (700 * MS, 1_500 * MS)  # Mostly longer than the time-outs of systems.
RECOVERY_NS: Final = (600 * MS, 1_200 * MS)  # From the end of one strike to the next.
FIRST_NS: Final = (200 * MS, 1_000 * MS)
DIVIDED: Final = (2, 3)  # The share of partitions that divide the cluster completely.
BEFORE_NS, AFTER_NS = 600 * MS, 500 * MS  # The longest time before, and after, the beginning of the strike.
DRAWS: Final = 20  # The number of draws for a narrow strike.


def apart(field: Field, menu: Menu, stream: Stream) -> Plan:
    """One narrow strike after the other, from each package before any repeats. The first strike may be a wide one."""
    stopping = [package for package in field.packages if _stops(package)] or list(field.packages)
    slowing = [package for package in field.packages if package not in stopping]
    strikes: list[Step] = []
    slow: list[Step] = []
    at_ns = stream.between(*FIRST_NS)
    turns: list[Package] = []
    while at_ns <= field.end_ns - PARTED_NS[0]:  # A strike that is cut off at the end has no effect.
        turns = turns or stream.shuffled(stopping)
        package = turns.pop()
        strike = _strike(field, menu, stream, package, is_any=not strikes)
        if strike is not None:
            strike, lag = _with_lag(field, menu, stream, slowing, at_ns=at_ns, strike=strike)
            slow += lag or _overlapping(menu, stream, slowing, at_ns=at_ns, strike=strike)
            until_ns = at_ns + _length_ns(strike, stream)
            strikes.append(step_of(package, strike, at_ns=at_ns, until_ns=until_ns))
            at_ns = until_ns
        at_ns += stream.between(*RECOVERY_NS)
    return field.settled((*strikes, *slow))


def _stops(package: Package) -> bool:
    return any(fault.is_silencing for fault in package.faults)


def _strike(field: Field, menu: Menu, stream: Stream, package: Package, *, is_any: bool) -> Strike | None:
    """A narrow strike of that package, or with `is_any` any strike; None if none can be drawn here."""
    if package is partition.PACKAGE and stream.chance(*DIVIDED):
        division = partition.draw_division(field.topology, stream)
        if division is not None:
            return division
    for _ in range(DRAWS):
        chosen = menu.strike((package,), stream)
        if chosen is not None and (is_any or _is_narrow(chosen[1])):
            return chosen[1]
    return None


def _is_narrow(strike: Strike) -> bool:
    """True if the strike hits one node, or only links, and leaves some node that can answer."""
    return not strike.is_total and ("point" in strike.args or len(strike.targets) == 1 or _is_of_links(strike))


def _is_of_links(strike: Strike) -> bool:
    return any(">" in target for target in strike.targets)


def _length_ns(strike: Strike, stream: Stream) -> int:
    length_ns = stream.between(*(PARTED_NS if _is_of_links(strike) else DOWN_NS))
    return min(length_ns, TOTAL_NS) if strike.is_total else length_ns


def _with_lag(
    field: Field, menu: Menu, stream: Stream, slowing: Sequence[Package], *, at_ns: int, strike: Strike
) -> tuple[Strike, list[Step]]:
    """A narrow strike that stops nodes, on one of them only, and a step that slows down what this one sends until then.

    When messages in transit are lost, others know less of it than of its peers. Other strikes stay as they are, without
    a step.
    """
    if not slowing or not _is_narrow(strike) or _is_of_links(strike):
        return strike, []
    for _ in range(DRAWS):
        chosen = menu.strike((stream.choice(slowing),), stream, strike)
        if chosen is None or not _is_of_links(chosen[1]):
            continue
        package, slow = chosen
        node = stream.choice(strike.targets)
        links = field.topology.existing([(node, ends(link)[1]) for link in slow.targets])
        if links:
            lag = msgspec.structs.replace(slow, targets=links)
            begin_ns = max(0, at_ns - stream.below(BEFORE_NS))
            only = msgspec.structs.replace(strike, targets=(node,))
            return only, [step_of(package, lag, at_ns=begin_ns, until_ns=at_ns)]
    return strike, []


def _overlapping(menu: Menu, stream: Stream, slowing: Sequence[Package], *, at_ns: int, strike: Strike) -> list[Step]:
    """A step that slows something down at the beginning of the strike; empty if none can be drawn."""
    chosen = menu.strike((stream.choice(slowing),), stream, strike) if slowing else None
    if chosen is None or chosen[1].is_total:
        return []
    begin_ns = max(0, at_ns - stream.below(BEFORE_NS))
    return [step_of(*chosen, at_ns=begin_ns, until_ns=at_ns + stream.between(MS, AFTER_NS))]
