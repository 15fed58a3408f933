"""The room for a plan: its cluster, the packages that it may use, and its time."""

from collections.abc import Iterable

import msgspec

from nemesis.fault import MS, Package
from nemesis.overlap import conflict
from nemesis.plan import Plan, Step
from nemesis.topology import Topology

LEAST_NS = 20 * MS  # The shortest fault.
TAIL_PART = 10  # The last tenth of a run is free of faults.


class Field(msgspec.Struct, frozen=True):
    """Everything from which a plan is drawn but its stream. The load lasts `duration_ns`."""

    topology: Topology
    packages: tuple[Package, ...]
    duration_ns: int

    @property
    def end_ns(self) -> int:
        """The latest end of a fault."""
        return self.duration_ns - self.duration_ns // TAIL_PART

    def settled(self, steps: Iterable[Step]) -> Plan:
        """A plan of those steps, the most important first: of two that conflict the later is dropped.

        Steps at failpoints are placed last, as they can give up some of the nodes for which they wait.
        """
        kept: list[Step] = []
        for step in sorted(steps, key=_is_at_point):
            fitted = self._fitted(step, kept)
            if fitted is not None:
                kept.append(fitted)
        return Plan(steps=tuple(sorted(kept, key=lambda each: (each.at_ns, each.until_ns, each.targets))))

    def _fitted(self, step: Step, others: list[Step]) -> Step | None:
        """The step, cut to the time of a run; None if nothing is left of it.

        A step at a failpoint loses the nodes that other faults strike.
        """
        length_ns = max(LEAST_NS, step.until_ns - step.at_ns)
        at_ns = min(max(0, step.at_ns), self.end_ns - LEAST_NS)
        step = msgspec.structs.replace(step, at_ns=at_ns, until_ns=min(at_ns + length_ns, self.end_ns))
        beside = [each for each in others if each.until_ns > step.at_ns and step.until_ns > each.at_ns]
        if _is_at_point(step):
            alone = [msgspec.structs.replace(step, targets=(node,)) for node in step.targets]
            free = (
                each.targets[0] for each in alone if not any(_clash(each, other, self.topology) for other in beside)
            )
            step = msgspec.structs.replace(step, targets=tuple(free))
        if not step.targets or any(_clash(step, each, self.topology) for each in beside):
            return None
        return step


def _is_at_point(step: Step) -> bool:
    return "point" in step.args


def _clash(one: Step, other: Step, topology: Topology) -> bool:
    return conflict(one, other, topology) is not None
