"""Small changes of a run: a new state is likely to be near the states that the run reached."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from harness.core.draw import Stream
from harness.hunt.space import SEEDS, Space, any_value
from harness.shrink.case import Case
from nemesis.fault import Package, step_of
from nemesis.plan import Step
from nemesis.registry import PACKAGES
from nemesis.styles.field import LEAST_NS
from nemesis.styles.menu import Menu

MS: Final = 1_000_000
LENGTHS_NS: Final = (50 * MS, 2_000 * MS)  # The duration of faults that are added.
NEAR_NS: Final = (1 * MS, 10 * MS, 100 * MS)  # The greatest distance of a fault from the moment at which it is aimed.
AROUND_NS: Final = 500 * MS  # A fault at a failpoint waits this long before and after the moment.


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A run to change, and everything that a change may use.

    `moments` are the times at which the run reached rare features; `other` is a run whose faults may be taken over.
    """

    case: Case
    moments: tuple[int, ...]
    other: Case
    space: Space
    menu: Menu
    stream: Stream

    @property
    def steps(self) -> tuple[Step, ...]:
        """The faults of the run."""
        return self.case.plan.steps

    def any_step(self) -> int | None:
        """The number of one of its steps, drawn at random; None if it has none."""
        return self.stream.below(len(self.steps)) if self.steps else None

    def with_steps(self, steps: Iterable[Step]) -> Case:
        """The run with those faults; where two conflict, the earlier in `steps` stays."""
        return Case(scenario=self.case.scenario, plan=self.space.field.settled(steps))

    def instead(self, number: int, step: Step) -> Case:
        """The run with another step in place of that one."""
        return self.with_steps((step, *self.steps[:number], *self.steps[number + 1 :]))


Mutation = Callable[[Setting], Case | None]


def mutated(at: Setting) -> tuple[Case, tuple[str, ...]]:
    """The run after one to three changes, and their names."""
    names = []
    for _ in range(at.stream.choice((1, 1, 2, 3))):
        name = at.stream.choice(NAMES)
        changed = MUTATIONS[name](at)
        if changed is not None and changed != at.case:
            names.append(name)
            at = msgspec.structs.replace(at, case=changed)
    return at.case, tuple(names)


def _moved(at: Setting) -> Case | None:
    """One step earlier or later: a little, or anywhere."""
    number = at.any_step()
    if number is None:
        return None
    step = at.steps[number]
    length_ns = step.until_ns - step.at_ns
    if at.stream.chance(1, 4):
        at_ns = at.stream.below(at.space.field.end_ns)
    else:
        at_ns = step.at_ns + at.stream.between(-length_ns, length_ns)
    at_ns = max(0, at_ns)
    return at.instead(number, msgspec.structs.replace(step, at_ns=at_ns, until_ns=at_ns + length_ns))


def _retargeted(at: Setting) -> Case | None:
    """One step with other targets or arguments: a new draw of its package."""
    number = at.any_step()
    if number is None:
        return None
    return _redrawn(at, number, (PACKAGES[at.steps[number].package],))


def _of_another_kind(at: Setting) -> Case | None:
    """One step of another package, at the same time."""
    number = at.any_step()
    return None if number is None else _redrawn(at, number, at.space.field.packages)


def _stretched(at: Setting) -> Case | None:
    """One step with another duration: much shorter, or longer."""
    number = at.any_step()
    if number is None:
        return None
    step = at.steps[number]
    length_ns = max(LEAST_NS, (step.until_ns - step.at_ns) * at.stream.choice((1, 2, 8, 16)) // 4)
    return at.instead(number, msgspec.structs.replace(step, until_ns=step.at_ns + length_ns))


def _added(at: Setting) -> Case | None:
    """One more step, at a random time."""
    return _with_new(at, at.stream.below(at.space.field.end_ns))


def _dropped(at: Setting) -> Case | None:
    """One step fewer."""
    number = at.any_step()
    steps = at.steps
    return None if number is None else at.with_steps((*steps[:number], *steps[number + 1 :]))


def _spliced(at: Setting) -> Case | None:
    """The faults of this run up to a time, and those of another from then on; or both together."""
    own, theirs = at.steps, at.other.plan.steps
    if at.stream.chance(1, 3):
        return at.with_steps((*own, *theirs))
    at_ns = at.stream.below(at.space.field.end_ns)
    return at.with_steps((*(s for s in own if s.at_ns < at_ns), *(s for s in theirs if s.at_ns >= at_ns)))


def _reparametrized(at: Setting) -> Case | None:
    """Another value of one parameter."""
    free = [each for each in at.space.parameters if each.name not in at.space.scenario.parameters]
    if not free:
        return None
    parameter = at.stream.choice(free)
    parameters = at.case.scenario.parameters | {parameter.name: any_value(parameter, at.stream)}
    return _with_scenario(at, parameters=parameters)


def _reseeded(at: Setting) -> Case | None:
    """The same faults with other operations, delays and choices."""
    return _with_scenario(at, seed=at.stream.below(SEEDS))


def _at_a_failpoint(at: Setting) -> Case | None:
    """A crash or pause of the server that first reaches a failpoint, around one of the moments."""
    able = [each for each in at.space.field.packages if any("point" in fault.optional for fault in each.faults)]
    if not able or not at.space.field.topology.points or not at.moments:
        return None
    chosen = at.menu.strike(able, at.stream)
    if chosen is None:
        return None
    package, strike = chosen
    at_ns = at.stream.choice(at.moments)
    args = strike.args | {"point": at.stream.choice(at.space.field.topology.points)}
    step = Step(
        fault=strike.fault,
        package=package.name,
        at_ns=max(0, at_ns - at.stream.below(AROUND_NS)),
        until_ns=at_ns + at.stream.between(LEAST_NS, AROUND_NS),
        targets=tuple(at.stream.shuffled(at.space.field.topology.servers())),
        args=args,
    )
    return at.with_steps((*at.steps, step))


def _at_a_moment(at: Setting) -> Case | None:
    """One more step that begins just when the run reached a rare feature, or an existing step shifted to that time."""
    if not at.moments:
        return None
    near_ns = at.stream.choice(NEAR_NS)
    at_ns = max(0, at.stream.choice(at.moments) + at.stream.between(-near_ns, near_ns // 4))
    number = at.any_step()
    if number is None or at.stream.chance(1, 2):
        return _with_new(at, at_ns)
    step = at.steps[number]
    shifted = msgspec.structs.replace(step, at_ns=at_ns, until_ns=at_ns + step.until_ns - step.at_ns)
    return at.instead(number, shifted)


def _cut_short(at: Setting) -> Case | None:
    """The run without faults that begin after one of the moments, so that no other fault ends what began there."""
    if not at.moments:
        return None
    until_ns = at.stream.choice(at.moments) + at.stream.choice(NEAR_NS)
    return at.with_steps(step for step in at.steps if step.at_ns <= until_ns)


def _beside_another(at: Setting) -> Case | None:
    """One more step that begins while another is in force."""
    number = at.any_step()
    if number is None:
        return None
    step = at.steps[number]
    return _with_new(at, at.stream.between(step.at_ns, step.until_ns), beside=step)


def _with_new(at: Setting, at_ns: int, beside: Step | None = None) -> Case | None:
    chosen = at.menu.strike(at.space.field.packages, at.stream, beside)
    if chosen is None:
        return None
    step = step_of(*chosen, at_ns=at_ns, until_ns=at_ns + at.stream.between(*LENGTHS_NS))
    return at.with_steps((step, *at.steps))


def _redrawn(at: Setting, number: int, packages: Sequence[Package]) -> Case | None:
    chosen = at.menu.strike(packages, at.stream)
    if chosen is None:
        return None
    step = at.steps[number]
    return at.instead(number, step_of(*chosen, at_ns=step.at_ns, until_ns=step.until_ns))


def _with_scenario(at: Setting, **changes: object) -> Case:
    return Case(scenario=msgspec.structs.replace(at.case.scenario, **changes), plan=at.case.plan)


MUTATIONS: Final[dict[str, Mutation]] = {
    "move": _moved,
    "retarget": _retargeted,
    "change kind": _of_another_kind,
    "stretch": _stretched,
    "add": _added,
    "drop": _dropped,
    "splice": _spliced,
    "parameter": _reparametrized,
    "seed": _reseeded,
    "aim at failpoint": _at_a_failpoint,
    "aim at moment": _at_a_moment,
    "cut short": _cut_short,
    "aim beside": _beside_another,
}
NAMES: Final = tuple(MUTATIONS)
