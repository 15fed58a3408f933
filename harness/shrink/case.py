"""A run as one value that holds everything that decides it, and can be made smaller."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import msgspec

from harness.core.generators.scripted import Due, Script
from harness.core.record import Json, MicroOp
from harness.core.seams import Invocation
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan, Step

MS = 1_000_000
LEAST_S = 1.0  # The shortest load that a scenario may have.


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario with its script, and its fault plan."""

    scenario: Scenario
    plan: Plan

    @property
    def script(self) -> Script:
        """The script of the scenario."""
        assert self.scenario.script is not None
        return self.scenario.script

    def key(self) -> str:
        """The digest, in hex, of everything that decides the run."""
        return blake2b(msgspec.msgpack.encode(self, order="sorted"), digest_size=16).hexdigest()

    def size(self) -> "Size":
        """The size of the case, in what a person must read."""
        script = self.script
        keys = {repr(mop.key) for each in script.load for mop in each.mops or ()}
        return Size(
            steps=len(self.plan.steps),
            operations=len(script.load),
            keys=len(keys),
            processes=len({due.thread for due in script.load}),
            seconds=self.scenario.time_s,
        )

    def with_steps(self, steps: Iterable[Step]) -> "Case":
        """The same case with those steps. The load lasts as long as the last step and the last operation need."""
        return _in_time(self.scenario, tuple(steps), self.script)

    def with_load(self, load: Iterable[Due]) -> "Case":
        """The same case with that load."""
        return _in_time(self.scenario, self.plan.steps, Script(load=tuple(load), final=self.script.final))

    def with_final(self, final: Iterable[Invocation]) -> "Case":
        """The same case with those final operations."""
        return _in_time(self.scenario, self.plan.steps, Script(load=self.script.load, final=tuple(final)))

    def with_seed(self, seed: int) -> "Case":
        """The same case with other delays and other random choices of the nodes."""
        scenario = msgspec.structs.replace(self.scenario, seed=seed)
        return self if seed == self.scenario.seed else Case(scenario=scenario, plan=self.plan)

    def with_parameter(self, name: str, value: int) -> "Case":
        """The same case with another value of one parameter."""
        parameters = self.scenario.parameters | {name: value}
        scenario = msgspec.structs.replace(self.scenario, parameters=dict(sorted(parameters.items())))
        return _in_time(scenario, self.plan.steps, self.script)

    def without(self, spans: Sequence[tuple[int, int]]) -> "Case":
        """The same case without those spans of time (from, until), which ascend.

        Operations and steps that begin in a span are left out, all later ones begin earlier, and a step that lasts
        through a span is shorter by it.
        """

        def shifted(time_ns: int) -> int:
            return time_ns - sum(min(until, time_ns) - start for start, until in spans if start < time_ns)

        steps = (
            msgspec.structs.replace(step, at_ns=shifted(step.at_ns), until_ns=shifted(step.until_ns))
            for step in self.plan.steps
        )
        load = (
            msgspec.structs.replace(due, at_ns=shifted(due.at_ns))
            for due in self.script.load
            if not any(start <= due.at_ns < until for start, until in spans)
        )
        return self.with_steps(step for step in steps if step.until_ns > step.at_ns).with_load(load)

    def with_mops(self, kept: "frozenset[tuple[int, int]]") -> "Case":
        """The same case with only the micro-operations at those (operation, place).

        An operation without any is left out.
        """
        load = []
        for number, due in enumerate(self.script.load):
            mops = tuple(mop for place, mop in enumerate(due.mops or ()) if (number, place) in kept)
            if mops or due.mops is None:
                load.append(msgspec.structs.replace(due, mops=mops if due.mops is not None else None))
        return self.with_load(load)

    def without_key(self, key: Json) -> "Case":
        """The same case without any operation on that key."""
        load = (msgspec.structs.replace(due, mops=_without(due.mops, key)) for due in self.script.load)
        final = (msgspec.structs.replace(each, mops=_without(each.mops, key)) for each in self.script.final)
        return self.with_load(due for due in load if due.mops != ()).with_final(e for e in final if e.mops != ())

    def with_clients(self, count: int) -> "Case":
        """The same operations on that many threads."""
        load = tuple(msgspec.structs.replace(due, thread=due.thread % count) for due in self.script.load)
        script = Script(load=load, final=self.script.final)
        scenario = msgspec.structs.replace(self.scenario, clients=count, script=script)
        return _in_time(scenario, self.plan.steps, script)


class Size(msgspec.Struct, frozen=True):
    """The size of a case."""

    steps: int
    operations: int
    keys: int
    processes: int
    seconds: float


def _without(mops: tuple[MicroOp, ...] | None, key: Json) -> tuple[MicroOp, ...] | None:
    return None if mops is None else tuple(mop for mop in mops if mop.key != key)


def _in_time(scenario: Scenario, steps: tuple[Step, ...], script: Script) -> Case:
    """The case of those parts, with a load that lasts as long as its last step and last operation need."""
    end_ns = max((*(step.until_ns for step in steps), *(due.at_ns for due in script.load)), default=0)
    time_s = max(LEAST_S, (end_ns // MS + 2) / 1000)  # In whole milliseconds, for readers.
    scenario = msgspec.structs.replace(scenario, script=script, time_s=min(scenario.time_s, time_s))
    return Case(scenario=scenario, plan=Plan(steps=steps))
