"""The passes that make a case smaller, in the order in which they run.

Passes that make runs short come first, as short runs are cheap to try; those that make them simple to read come last.
"""

from itertools import pairwise

import msgspec

from harness.core.record import Json
from harness.scenario.scenario import SECOND
from harness.shrink.case import MS, Case
from harness.shrink.evidence import Evidence
from harness.shrink.search import Search
from nemesis.plan import Step

ROUNDS = 4  # One pass can enable another to leave out more; later rounds hardly ever do.
SLICE_NS = 250 * MS
PAUSE_NS = 50 * MS  # A pause between two operations that has no effect.
# How long before the evidence the run may begin, and how many seeds are tried with that, in this order.
BEFORE = ((300 * MS, 8), (1_000 * MS, 8), (3_000 * MS, 100))
AFTER_NS = 200 * MS
# Without evidence its moment is searched in quarters of the time, and quarters of these, down to `NEAR_NS`.
PARTS, NEAR_NS = 4, 200 * MS
SEEDS_WHEN_SHORT = 2
SHORT_S, SHORT_OPERATIONS, FEW = 4.0, 300, 10
MANY = 30  # Operations that nobody reads one by one.
LITTLE = 4  # A round that leaves out less than that part of many operations is the last.
SLICES = 32  # The parts into which the load is cut; a short load has fewer, as pauses are left out as well.


def shrink(search: Search, evidence: Evidence | None, lows: dict[str, int]) -> None:
    """Make the search's case as small as these passes can.

    `lows` are the least values of parameters. Raises Exhausted when the allowed tries are used up.
    """
    if evidence is None:
        search.adopt([search.case.with_final(())])
        evidence = _soonest(search)
    else:
        short = _until(search.case, evidence.until_ns + AFTER_NS)
        search.adopt([short.with_final(()), short, search.case.with_final(())])
    _around(search, evidence)
    for _ in range(ROUNDS):
        before = search.case
        search.seeds = SEEDS_WHEN_SHORT if _is_short(search.case) else 1
        _shorter(search)
        search.thin(search.case.plan.steps, search.case.with_steps)
        _fewer_keys(search)
        search.adopt([_denser(search.case, part) for part in (20, 5, 2)])
        search.thin(search.case.script.load, search.case.with_load)
        search.thin(search.case.script.final, search.case.with_final)
        if len(search.case.script.load) <= MANY:
            search.thin(_places(search.case), lambda kept, case=search.case: case.with_mops(frozenset(kept)))  # type: ignore[misc]
        _simpler_steps(search)
        _without_pauses(search)
        _fewer_clients(search)
        if search.case == before or _is_stuck(before, search.case):
            break
    search.adopt([_rounded(search.case, unit * MS) for unit in (100, 10, 1)])
    for name, low in lows.items():
        search.adopt([search.case.with_parameter(name, low)])


def _until(case: Case, until_ns: int) -> Case:
    """The run up to that time. It is the same until there, so an earlier symptom nearly always stays."""
    end_ns = int(case.scenario.time_s * SECOND)
    return case.without([(until_ns, end_ns)]) if until_ns < end_ns else case


def _soonest(search: Search) -> Evidence:
    """The earliest moment at which the run can end and still show the symptom. The search's case then ends there.

    A missing event, as in a stall, leaves no operation or event as evidence. But its cause is in every run that goes on
    beyond that moment, and in no shorter one.
    """
    case = search.case
    low_ns, high_ns = 0, int(case.scenario.time_s * SECOND)
    while high_ns - low_ns > NEAR_NS:
        edges = [low_ns + (high_ns - low_ns) * part // PARTS for part in range(1, PARTS)]
        found = search.first([_until(case, edge) for edge in edges])
        if found is None:
            low_ns = edges[-1]
        else:
            low_ns, high_ns = ([low_ns, *edges])[found], edges[found]
    return Evidence(high_ns, high_ns)


def _around(search: Search, evidence: Evidence) -> None:
    """Leave out most of what happened before the evidence, and all faults if that is possible; the run ends with it.

    Another seed may decide a race differently. A short run costs little, so several seeds are tried, and many before
    the run stays long: each later try would cost as much as ten short ones.
    """
    case = search.case
    end_ns = int(case.scenario.time_s * SECOND)
    for before_ns, seeds in BEFORE:
        start_ns = max(0, evidence.from_ns - before_ns)
        if end_ns - start_ns < end_ns // 2:
            search.seeds = seeds
            if search.adopt([case.without([(0, start_ns)])]):
                search.adopt([search.case.with_steps(())])
                break
    search.seeds = 1


def _is_short(case: Case) -> bool:
    """True if a try costs little, and there may still be much to leave out."""
    return case.scenario.time_s <= SHORT_S and FEW < len(case.script.load) <= SHORT_OPERATIONS


def _is_stuck(before: Case, after: Case) -> bool:
    """True if a round left many operations, and hardly fewer than there were: another one would cost as much."""
    count = len(after.script.load)
    return count > MANY and len(before.script.load) - count < count // LITTLE and after.plan.steps == before.plan.steps


def _shorter(search: Search) -> None:
    """Leave out as many slices of the time as possible, with all that happens in them."""
    case = search.case
    end_ns = int(case.scenario.time_s * SECOND)
    count = min(SLICES, end_ns // SLICE_NS)
    edges = [end_ns * number // count for number in range(count + 1)]

    def only(kept: tuple[tuple[int, int], ...]) -> Case:
        return case.without([span for span in pairwise(edges) if span not in kept])

    search.thin(tuple(pairwise(edges)), only)


def _denser(case: Case, part: int) -> Case:
    """The same operations in 1 / `part` of the time, from the first one on."""
    first_ns = min((due.at_ns for due in case.script.load), default=0)
    return case.with_load(
        msgspec.structs.replace(due, at_ns=first_ns + (due.at_ns - first_ns) // part) for due in case.script.load
    )


def _fewer_keys(search: Search) -> None:
    """Leave out all operations on a key, for as many keys as possible."""
    case = search.case

    def without(kept: tuple[Json, ...]) -> Case:
        reduced = case
        for key in keys:
            if key not in kept:
                reduced = reduced.without_key(key)
        return reduced

    keys = tuple({repr(mop.key): mop.key for due in case.script.load for mop in due.mops or ()}.values())
    search.thin(keys, without)


def _places(case: Case) -> tuple[tuple[int, int], ...]:
    """The places of all micro-operations: operation, and place in it."""
    return tuple((number, at) for number, due in enumerate(case.script.load) for at in range(len(due.mops or ())))


def _simpler_steps(search: Search) -> None:
    """Let steps strike fewer targets, for a shorter time."""
    for number in range(len(search.case.plan.steps)):
        step = search.case.plan.steps[number]

        def struck(targets: tuple[str, ...], step: Step = step, number: int = number) -> Case:
            return _with_step(search.case, number, msgspec.structs.replace(step, targets=targets))

        if len(step.targets) > 1:
            search.thin(step.targets, struck)
        step = search.case.plan.steps[number]
        lengths = ((step.until_ns - step.at_ns) // part // MS * MS for part in (16, 8, 4, 2))
        search.adopt(
            _with_step(search.case, number, msgspec.structs.replace(step, until_ns=step.at_ns + length))
            for length in lengths
            if length
        )


def _with_step(case: Case, number: int, step: Step) -> Case:
    steps = case.plan.steps
    return case.with_steps((*steps[:number], step, *steps[number + 1 :]))


def _without_pauses(search: Search) -> None:
    """Leave out pauses: all at once, or one by one, the latest first."""
    search.adopt([search.case.without(_pauses(search.case))])
    for pause in reversed(_pauses(search.case)):
        search.adopt([search.case.without([pause])])


def _pauses(case: Case) -> list[tuple[int, int]]:
    """The spans in which nothing begins or ends, shortened by a moment on both sides."""
    times = {0, *(due.at_ns for due in case.script.load)}
    times |= {time for step in case.plan.steps for time in (step.at_ns, step.until_ns)}
    return [(before + PAUSE_NS, after) for before, after in pairwise(sorted(times)) if after - before > 2 * PAUSE_NS]


def _fewer_clients(search: Search) -> None:
    """Use fewer threads."""
    search.adopt(search.case.with_clients(count) for count in range(1, search.case.scenario.clients))


def _rounded(case: Case, unit_ns: int) -> Case:
    """The same case with times rounded to that unit."""

    def rounded(time_ns: int) -> int:
        return time_ns // unit_ns * unit_ns

    steps = (
        msgspec.structs.replace(
            step, at_ns=rounded(step.at_ns), until_ns=max(rounded(step.until_ns), rounded(step.at_ns) + unit_ns)
        )
        for step in case.plan.steps
    )
    load = (msgspec.structs.replace(due, at_ns=rounded(due.at_ns)) for due in case.script.load)
    return case.with_steps(steps).with_load(load)
