"""Plans as files: read, checked against a cluster, written.

The user may have edited them, so every problem is reported.

Steps are numbered from 0, as in the records of a run.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

import msgspec

from harness.core.errors import ScenarioError
from harness.core.wording import mistake
from nemesis.fault import Allowed, Fault, Range, Targets
from nemesis.overlap import conflict
from nemesis.plan import Plan, Step
from nemesis.registry import FAULTS, PACKAGES
from nemesis.topology import CLIENT, DATAGRAM, DIRECT, Topology, ends

_MOST_PROBLEMS: Final = 8  # Further ones are only counted.


def plan_from_json(text: str | bytes) -> Plan:
    """The plan in that JSON text, not yet checked against a cluster. Raises ScenarioError naming step and field."""
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ScenarioError(f"plan: not valid JSON ({error})") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("steps"), list):
        raise ScenarioError('plan: must be an object with a list under "steps"')
    problems = list(_unknown_fields("plan", raw, Plan))
    steps = []
    for number, each in enumerate(raw["steps"]):
        where = f"step {number}"
        unknown = list(_unknown_fields(where, each, Step)) if isinstance(each, dict) else []
        try:
            steps.append(msgspec.convert(each, Step))
        except msgspec.ValidationError as error:
            problems += unknown or [f"{where}: {mistake(error)}"]
    try:
        drawn = msgspec.convert(raw.get("drawn", {}), dict[str, int | str])
    except msgspec.ValidationError as error:
        problems.append(f"plan: drawn: {mistake(error)}")
    _refuse(problems)
    return Plan(steps=tuple(steps), drawn=drawn)


def plan_to_json(plan: Plan) -> str:
    """The plan as indented JSON, which `plan_from_json` reads."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2).decode()


def validate(plan: Plan, topology: Topology, *, duration_ns: int | None = None, runtime: str = "sim") -> None:
    """Raise ScenarioError unless every step can have an effect in that cluster and runtime, within that load."""
    _refuse(problems(plan, topology, duration_ns=duration_ns, runtime=runtime))


def problems(plan: Plan, topology: Topology, *, duration_ns: int | None = None, runtime: str = "sim") -> list[str]:
    """The problems of a plan, one line each: step, field, and the allowed values. Empty if it is sound."""
    found: list[str] = []
    for number, step in enumerate(plan.steps):
        lines = [*_time_problems(step, duration_ns), *_name_problems(step)]
        fault = FAULTS.get(step.fault)
        if fault is not None and runtime in fault.beyond:
            lines.append(fault.beyond[runtime])
        elif fault is not None and fault.procedure not in (None, *topology.procedures):
            lines.append(f"this cluster does not declare {fault.procedure}")
        elif fault is not None:
            lines += [*_target_problems(fault, step, topology), *_argument_problems(fault, step, topology)]
        found += [f"step {number} ({step.fault}): {line}" for line in lines]
    for (number, step), (later, other) in combinations(enumerate(plan.steps), 2):
        reason = conflict(step, other)
        if reason is not None:
            found.append(f"steps {number} ({step.fault}) and {later} ({other.fault}) overlap in time: {reason}")
    return found


def _time_problems(step: Step, duration_ns: int | None) -> Iterator[str]:
    if step.at_ns < 0:
        yield f"at_ns is {step.at_ns}: it must be 0 or more"
    if step.until_ns <= step.at_ns:
        yield f"until_ns is {step.until_ns}: it must be after at_ns, {step.at_ns}"
    if duration_ns is not None and step.until_ns > duration_ns:
        yield f"until_ns is {step.until_ns}: the load ends at {duration_ns}"


def _name_problems(step: Step) -> Iterator[str]:
    if step.fault not in FAULTS:
        yield f"fault {step.fault!r} is unknown{_hint(step.fault, FAULTS)}"
    if step.package not in PACKAGES:
        yield f"package {step.package!r} is unknown{_hint(step.package, PACKAGES)}"


def _target_problems(fault: Fault, step: Step, topology: Topology) -> Iterator[str]:
    if not step.targets:
        yield "targets is empty: name at least one"
    for target in [each for place, each in enumerate(step.targets) if each in step.targets[:place]]:
        yield f"targets names {target!r} twice"
    for target in dict.fromkeys(step.targets):
        if fault.targets.are_links:
            problem = _link_problem(fault, target, topology)
        else:
            problem = _node_problem(fault, target, topology)
        if problem is not None:
            yield problem


def _node_problem(fault: Fault, target: str, topology: Topology) -> str | None:
    if target in topology.ids():
        is_clockless = fault.targets is Targets.CLOCKS and target in topology.clockless
        return f"target {target!r} has no separate clock" if is_clockless else None
    if ">" in target:
        return f"target {target!r} is a link, and this fault strikes nodes{_hint(target, topology.ids())}"
    return f"target {target!r} is not a node{_hint(target, topology.ids())}"


def _link_problem(fault: Fault, target: str, topology: Topology) -> str | None:
    links = topology.all_links()
    source, sink = ends(target)
    if not source:
        return f"target {target!r} is not a link: write source>target{_hint(target, links)}"
    for end in (source, sink):
        if end not in topology.ids() and end != CLIENT:
            return f"target {target!r}: {end!r} is neither a node nor {CLIENT!r}{_hint(end, (*topology.ids(), CLIENT))}"
    kind = topology.kind(source, sink)
    if kind is None:
        return f"target {target!r}: this cluster has no such link{_hint(target, links)}"
    if fault.targets is Targets.PACKETS and kind not in (DATAGRAM, DIRECT):
        return f"target {target!r} is a {kind} link: a connection cannot {fault.name} messages; cut, stall or delay it"
    if fault.targets is Targets.CLIENTS and source != CLIENT:
        return f"target {target!r} does not begin at a client"
    if kind == DIRECT and fault.targets not in (Targets.LINKS, Targets.PACKETS):
        return f"target {target!r} is a {kind} link: no proxy is in between; cut, stall or delay it"
    if fault.targets is Targets.CONNECTIONS and kind == DATAGRAM:
        return f"target {target!r} is a {kind} link: it has no connection; cut, stall or drop it"
    return None


def _argument_problems(fault: Fault, step: Step, topology: Topology) -> Iterator[str]:
    known = {**fault.required, **fault.optional}
    for name in fault.required:
        if name not in step.args:
            yield f"args lacks {name!r}, {_choices(known[name])}"
    if fault.needs_one and not any(name in step.args for name in fault.optional):
        yield f"args needs at least one of {', '.join(fault.optional)}"
    for name, value in step.args.items():
        if name not in known:
            yield f"args has {name!r}, which is unknown{_hint(name, known)}"
            continue
        allowed = topology.points if name == "point" else known[name]
        if not _is_allowed(value, allowed):
            yield f"args {name} is {value!r}: it must be {_choices(allowed)}"


def _is_allowed(value: int | str, allowed: Allowed) -> bool:
    if isinstance(allowed, Range):
        return isinstance(value, int) and allowed.low <= value <= allowed.high
    return value in allowed


def _choices(allowed: Allowed) -> str:
    if isinstance(allowed, Range):
        return f"from {allowed.low} to {allowed.high}"
    return f"one of {', '.join(allowed)}" if allowed else "left out: this cluster has no failpoints"


def _unknown_fields(where: str, raw: Mapping[str, object], form: type[Plan] | type[Step]) -> Iterator[str]:
    for name in raw:
        if name not in form.__struct_fields__:
            yield f"{where}: field {name!r} is unknown{_hint(name, form.__struct_fields__)}"


def _hint(name: str, choices: Iterable[str]) -> str:
    """The nearest of the choices as a question; all choices if none is near."""
    names = list(choices)
    nearest = difflib.get_close_matches(name, names, 1, 0.6)
    if nearest:
        return f": did you mean {nearest[0]!r}?"
    return f": choose from {', '.join(names)}" if names else ""


def _refuse(lines: Sequence[str]) -> None:
    if lines:
        more = len(lines) - _MOST_PROBLEMS
        raise ScenarioError("; ".join(lines[:_MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else ""))
