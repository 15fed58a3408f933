"""Fault plans drawn from packages of faults.

Swarm: each seed draws its packages, the gaps between their windows, and their lengths, so that runs differ more than
with one average mixture. All of it comes from the stream "faults", before the run starts. Source: Groce et al., "Swarm
testing", ISSTA 2012.
"""

from collections.abc import Sequence
from typing import Final

from harness.core.draw import Draw, Stream
from harness.core.errors import ScenarioError
from nemesis.fault import Package, step_of
from nemesis.overlap import conflict
from nemesis.plan import Plan, Step
from nemesis.topology import Strike, Topology

SECOND = 1_000_000_000
# A run of a minute or more is cut into seconds; a shorter one into sixtieths, so that it has as many windows.
UNITS = 60
# Real processes need longer: a container restarts in half a second, and TCP retries more and more rarely what a
# silent link dropped, so that the link stays quiet for a while after it is healed.
UNITS_IN_CONTAINERS = 30
LEAD_UNITS, TAIL_UNITS = 2, 6  # Free of faults: start-up and recovery must be observed.
WINDOW_MILLIUNITS = 2000  # The shortest window: long enough for time-outs of some hundred milliseconds.
LONGEST_MILLIUNITS = (4000, 6000, 8000)
TOTAL_MILLIUNITS = (600, 950)  # Under a second: while no node can answer, nothing else is tested.
GAP_MILLIUNITS = (1000, 1800, 3000)
OVERLAP_PERCENT = (0, 25, 60)
MIN_PACKAGES = 3
ATTEMPTS = 40
# Every cluster gets these in containers, after its own packages. In the simulation they are drawn on request.
IN_CONTAINERS: Final = ("reset", "flaky-link", "full-disk")
# Every cluster of servers can have these in containers, if they are requested.
ON_REQUEST: Final = ("power", "late", "bit-rot", "packets", "rolling-restart", "rolling-upgrade", "membership")


def draw_plan(
    topology: Topology, packages: Sequence[Package], draw: Draw, *, duration_ns: int, units: int = UNITS
) -> Plan:
    """A plan for a load of that length: windows of at least three packages, with fault-free time between them.

    The load is cut into seconds, or if these are fewer than `units` into `units` parts; windows and gaps are measured
    in them. No two faults that are in force at the same time hide each other's effect. Without packages the plan is
    empty. A package is left out if its shortest step needs more than its share of the load. Raises ScenarioError if a
    package has nothing to strike in this topology, or if the load is too short for all of them.
    """
    for package in packages:
        reason = package.unfit(topology)
        if reason is not None:
            raise ScenarioError(f"the fault package {package.name!r} does not fit this cluster: {reason}")
    if not packages:
        return Plan(steps=())
    unit_ns = min(SECOND, duration_ns // units)
    room_ns = duration_ns - (LEAD_UNITS + TAIL_UNITS) * unit_ns
    share_ns = room_ns // min(MIN_PACKAGES, len(packages))
    fitting = [package for package in packages if package.least_ns <= share_ns]
    if not fitting:
        least = min(packages, key=lambda package: package.least_ns)
        raise ScenarioError(
            f"the fault package {least.name!r} needs {least.least_ns / SECOND:g} s, and a load of "
            f"{duration_ns / SECOND:g} s has room for faults of {room_ns / SECOND:.2g} s: choose a longer --time"
        )
    swarm = _Swarm(topology, fitting, draw.stream("faults"), duration_ns, unit_ns)
    steps = tuple(sorted(swarm.steps(), key=lambda step: (step.at_ns, step.until_ns)))
    return Plan(steps=steps, drawn=swarm.choices() | _totals(steps))


class _Swarm:
    """The choices of one seed, and the steps that they give."""

    def __init__(
        self, topology: Topology, packages: Sequence[Package], stream: Stream, duration_ns: int, unit_ns: int
    ) -> None:
        self._topology, self._stream = topology, stream
        count = stream.between(min(MIN_PACKAGES, len(packages)), len(packages))
        self._chosen = self._packages = stream.sample(packages, count)
        self._gap = stream.choice(GAP_MILLIUNITS)
        self._longest = stream.choice(LONGEST_MILLIUNITS)
        self._overlap_percent = stream.choice(OVERLAP_PERCENT)
        self._unit_ns = unit_ns
        self._end_ns = duration_ns - TAIL_UNITS * unit_ns

    def choices(self) -> dict[str, int | str]:
        """The values drawn for the whole run, for display."""
        return {
            "packages": ", ".join(package.name for package in self._chosen),
            "gap between faults": self._seconds(self._gap),
            "longest fault": self._seconds(self._longest),
            "overlap": f"{self._overlap_percent} %",
        }

    def steps(self) -> list[Step]:
        """The steps, in windows one after the other, some with a second fault inside.

        Each package gets a first turn.
        """
        last = [package for package in self._packages if package.is_last]
        self._packages = [package for package in self._packages if not package.is_last]
        ending = [self._at_the_end(package) for package in last[:1]]
        return [*self._before_the_end(), *ending]

    def _at_the_end(self, package: Package) -> Step:
        """A window for the package at the end of the time left. Less time is left for all others."""
        strike = self._strike(package)
        until_ns = self._end_ns
        at_ns = until_ns - self._length_ns(package, strike)
        self._end_ns = at_ns - self._drawn_ns(self._gap // 2, self._gap * 3 // 2)
        return step_of(package, strike, at_ns=at_ns, until_ns=until_ns)

    def _before_the_end(self) -> list[Step]:
        steps: list[Step] = []
        turns = list(self._packages)
        at_ns = LEAD_UNITS * self._unit_ns
        while self._packages:
            package = turns.pop(0) if turns else self._stream.choice(self._packages)
            strike = self._strike(package)
            length_ns = self._length_ns(package, strike)
            if at_ns + length_ns > self._end_ns:
                return steps
            first = step_of(package, strike, at_ns=at_ns, until_ns=at_ns + length_ns)
            second = None if strike.is_total else self._second(first)
            steps += [first] if second is None else [first, second]
            at_ns = max(step.until_ns for step in steps) + self._drawn_ns(self._gap // 2, self._gap * 3 // 2)
        return steps

    def _second(self, first: Step) -> Step | None:
        """A fault of another package that begins in the middle of `first`; None if none is drawn, or none fits."""
        others = [package for package in self._packages if package.name != first.package]
        if not others or not self._stream.chance(self._overlap_percent, 100):
            return None
        quarter_ns = (first.until_ns - first.at_ns) // 4
        for _ in range(ATTEMPTS):
            package = self._stream.choice(others)
            strike = self._strike(package)
            at_ns = first.at_ns + self._stream.between(quarter_ns, 2 * quarter_ns)
            second = step_of(package, strike, at_ns=at_ns, until_ns=at_ns + self._length_ns(package, strike))
            is_fit = not strike.is_total and second.until_ns <= self._end_ns
            if is_fit and conflict(first, second, self._topology) is None:
                return second
        return None

    def _strike(self, package: Package) -> Strike:
        for _ in range(ATTEMPTS):
            strike = package.draw(self._topology, self._stream)
            if strike is not None and strike.targets:
                return strike
        raise ScenarioError(f"the fault package {package.name!r} found nothing to strike in this cluster")

    def _length_ns(self, package: Package, strike: Strike) -> int:
        low, high = TOTAL_MILLIUNITS if strike.is_total else (WINDOW_MILLIUNITS, self._longest)
        return max(self._drawn_ns(low, high), package.least_ns)

    def _drawn_ns(self, low_milliunits: int, high_milliunits: int) -> int:
        return self._stream.between(low_milliunits, high_milliunits) * self._unit_ns // 1000

    def _seconds(self, milliunits: int) -> str:
        return f"{milliunits * self._unit_ns / 1000 / SECOND:.3g} s"


def _totals(steps: Sequence[Step]) -> dict[str, int | str]:
    """For each package the number of its strikes and their total time."""
    lengths: dict[str, list[int]] = {}
    for step in steps:
        lengths.setdefault(step.package, []).append(step.until_ns - step.at_ns)
    return {name: f"{_times(len(each))}, {sum(each) / SECOND:.3g} s in all" for name, each in lengths.items()}


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
