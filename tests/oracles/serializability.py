"""Independent on purpose: the slow, obvious twin of the check of transactions. Plain loops, all edges, all cycles."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, product

import networkx as nx

from checkers.history.transactions import Append, Operation, Read
from checkers.words.models import implied
from harness.core.columns import FAIL, INFO, OK

Labels = dict[tuple[int, int], set[str]]


def reads(operations: Sequence[Operation]) -> list[tuple[Operation, int, tuple[int, ...]]]:
    """All reads that tell something: operation, key, elements."""
    return [
        (operation, mop.key, mop.elements)
        for operation in operations
        if operation.outcome == OK
        for mop in operation.mops
        if isinstance(mop, Read) and mop.elements is not None
    ]


def appends(operations: Sequence[Operation]) -> list[tuple[Operation, int, int]]:
    """The appends that count: operation, key, element; a failed one does not beside another one of the element."""
    every = all_appends(operations)
    others = {(key, element) for op, key, element in every if op.outcome != FAIL}
    return [each for each in every if each[0].outcome != FAIL or each[1:] not in others]


def all_appends(operations: Sequence[Operation]) -> list[tuple[Operation, int, int]]:
    return [(op, mop.key, mop.element) for op in operations for mop in op.mops if isinstance(mop, Append)]


def duplicated_keys(operations: Sequence[Operation]) -> set[int]:
    """Keys to which an element was appended more than once."""
    pairs = [(key, element) for _, key, element in appends(operations)]
    return {key for key, element in pairs if pairs.count((key, element)) > 1}


def without_keys(operations: Sequence[Operation], keys: set[int]) -> list[Operation]:
    """The same operations, with nothing about those keys."""
    return [
        Operation(op.index, op.process, op.outcome, op.after, tuple(mop for mop in op.mops if mop.key not in keys))
        for op in operations
    ]


def longest(operations: Sequence[Operation], key: int) -> tuple[int, ...]:
    """The longest read of the key, the earliest if there are several."""
    return max((seen for _, read_key, seen in reads(operations) if read_key == key), key=len, default=())


def agreed(operations: Sequence[Operation], key: int) -> int:
    """The number of first elements on which all reads of the key agree; all there are, if none disagrees."""
    whole = longest(operations, key)
    others = [seen for _, read_key, seen in reads(operations) if read_key == key and seen != whole[: len(seen)]]
    pairs = [[one == other for one, other in zip(seen, whole, strict=False)] for seen in others]
    return min((same.index(False) for same in pairs), default=len(whole))


def labels(operations: Sequence[Operation]) -> Labels:
    """Every pair of operations of which the first must precede the second, and why."""
    result: Labels = {}
    writers = {(key, element): op for op, key, element in appends(operations) if op.outcome != FAIL}

    def add(before: Operation | None, after: Operation | None, label: str) -> None:
        if before and after and before.index != after.index:
            result.setdefault((before.index, after.index), set()).add(label)

    for op, key, element in appends(operations):
        # As far as all reads agree. What is not there is newer, in no order.
        order = list(dict.fromkeys(longest(operations, key)[: agreed(operations, key)]))
        place = order.index(element) if element in order else len(order)
        if op.outcome != FAIL:
            nodes = [at for at in range(place) if (key, order[at]) in writers]
            add(writers[key, order[nodes[-1]]] if nodes else None, op, "ww")
            # Those who saw the last node before it, or what failed or is of nobody after that.
            missed_by = order[nodes[-1] if nodes else 0 : place]
            for reader, read_key, seen in reads(operations):
                is_sure = len(seen) <= agreed(operations, key)
                if read_key == key and is_sure and (seen[-1] in missed_by if seen else not nodes):
                    add(reader, op, "rw")
    for reader, key, seen in reads(operations):
        is_prefix = longest(operations, key)[: len(seen)] == seen
        # An element that occurs twice stands where it stood first.
        before = seen[: seen.index(seen[-1])] if seen else ()
        shown = [element for element in dict.fromkeys(before) if (key, element) in writers]
        if seen and (key, seen[-1]) in writers:
            add(writers[key, seen[-1]], reader, "wr")
        elif is_prefix and shown:
            add(writers[key, shown[-1]], reader, "wr")
    return with_time(result, operations)


def with_time(pairs: Labels, operations: Sequence[Operation]) -> Labels:
    """The same pairs, and those that the order of processes and real time make."""
    result = {pair: set(why) for pair, why in pairs.items()}
    for one in operations:
        for other in operations:
            if one.outcome == OK and other.outcome != FAIL and one.after <= other.index:
                result.setdefault((one.index, other.index), set()).add("realtime")
            if (
                one.outcome == OK
                and one.process == other.process
                and one.after <= other.index
                and other.outcome != FAIL
            ):
                result.setdefault((one.index, other.index), set()).add("process")
    return result


def classes(operations: Sequence[Operation]) -> set[str]:
    """The names of all cycles, those left out that another one in the same component implies."""
    return {anomaly for _, anomaly in classes_by_component(operations)}


def classes_by_component(operations: Sequence[Operation]) -> set[tuple[int, str]]:
    """The names of all cycles, each with the least operation of its component."""
    return classes_of(labels(without_keys(operations, duplicated_keys(operations))))


def occurrences_in(operations: Sequence[Operation]) -> dict[str, int]:
    """How often each class of cycle occurs in a history."""
    return occurrences(labels(without_keys(operations, duplicated_keys(operations))))


def classes_of(pairs: Labels, *, is_said_once: bool = True) -> set[tuple[int, str]]:
    """The names of all cycles of those pairs, each with the least operation of its component."""
    graph: nx.DiGraph[int] = nx.DiGraph(list(pairs))
    result: set[tuple[int, str]] = set()
    for component in nx.strongly_connected_components(graph):
        cycles = list(nx.simple_cycles(graph.subgraph(component)))
        found = {name(steps) for cycle in cycles for steps in readings(pairs, cycle, is_said_once=is_said_once)}
        kept = {name for name in found if not any(name in implied([other]) - {other} for other in found - {name})}
        result |= {(min(component), name) for name in kept}
    return result


def occurrences(pairs: Labels, *, is_said_once: bool = True) -> dict[str, int]:
    """How often each class occurs: with one rw, the transactions that miss something; else the components."""
    graph: nx.DiGraph[int] = nx.DiGraph(list(pairs))
    classes = classes_of(pairs, is_said_once=is_said_once)
    counts = Counter[str]()
    for component in nx.strongly_connected_components(graph):
        missing: dict[str, set[int]] = {name: set() for least, name in classes if least == min(component)}
        for cycle in nx.simple_cycles(graph.subgraph(component)):
            for steps in readings(pairs, cycle, is_said_once=is_said_once):
                if name(steps).startswith("G-single") and name(steps) in missing:
                    missing[name(steps)] |= {at for at, step in zip(cycle, steps, strict=True) if step == "rw"}
        counts.update({name: max(1, len(ops)) for name, ops in missing.items()})
    return dict(counts)


def readings(pairs: Labels, cycle: list[int], *, is_said_once: bool) -> Iterator[tuple[str, ...]]:
    """One label for each step of the cycle, in all ways; with `is_said_once`, a weaker label counts only by itself."""
    labels = [pairs[step] for step in pairwise([*cycle, cycle[0]])]
    for steps in product(*(step - set(weaker(step)) if is_said_once else step for step in labels)):
        if set(steps) - {"process", "realtime"}:
            yield steps


def weaker(labels_of_step: set[str]) -> Iterator[str]:
    """The labels that say no more beside stronger ones: rw beside ww and wr, what follows from time beside both."""
    timed = {"ww-process", "ww-realtime", "rw-process", "rw-realtime"}
    if labels_of_step & {"ww", "wr"}:
        yield from {"rw", *timed}
    if "rw" in labels_of_step:
        yield from {"rw-process", "rw-realtime"}


def name(steps: tuple[str, ...]) -> str:
    """The class of a cycle with those labels."""
    ends = {step.rpartition("-")[2] for step in steps}
    suffix = "-realtime" if "realtime" in ends else "-process" if "process" in ends else ""
    missed = [step.startswith("rw") for step in steps]
    if sum(missed) == 0 and any(step.startswith("ww-") for step in steps):
        return "G-single" + suffix
    if sum(missed) == 0:
        return ("G1c" if "wr" in steps else "G0") + suffix
    if sum(missed) == 1:
        return "G-single" + suffix
    return ("G2-item" if any(a and b for a, b in pairwise([*missed, missed[0]])) else "G-nonadjacent") + suffix


def others(operations: Sequence[Operation]) -> dict[str, int]:
    """How often each anomaly without cycle occurs, by the count of its finding."""
    keys = duplicated_keys(operations)
    clean = without_keys(operations, keys)
    counts = {
        "internal": sum(op.outcome == OK and contradicts_itself(op) for op in operations),
        "missed-own-write": sum(op.outcome == OK and misses_its_own(op) for op in operations),
        "future-read": sum(len(foreseen(op)) for op in clean if op.outcome == OK),
        "duplicate-elements": sum(len(set(seen)) < len(seen) for _, _, seen in reads(clean)),
        "incompatible-order": len(
            {key for _, key, seen in reads(clean) if longest(clean, key)[: len(seen)] != seen},
        )
        + sum(map(partial(disordered, clean), clean)),
        "garbage-read": garbage(clean),
        "G1a": aborted(clean),
        "G1b": intermediate(clean),
        "dirty-update": dirty(clean),
        "lost-update": lost(clean),
    }
    return {name: count for name, count in counts.items() if count}


def contradicts_itself(op: Operation) -> bool:
    """Whether a read of the transaction is not what it knew."""
    known: dict[int, tuple[bool, tuple[int, ...]]] = {}  # Is all of it known? If not, only the end is.
    for mop in op.mops:
        is_whole, end = known.get(mop.key, (False, ()))
        if isinstance(mop, Append):
            known[mop.key] = (is_whole, (*end, mop.element))
        elif isinstance(mop, Read) and mop.elements is not None:
            if mop.elements != end if is_whole else mop.elements[len(mop.elements) - len(end) :] != end:
                return True
            if not is_whole and len(mop.elements) < len(end):
                return True
            known[mop.key] = (True, mop.elements)
    return False


def misses_its_own(op: Operation) -> bool:
    """True if a read after an own append does not end with what that appended."""
    last: dict[int, int] = {}
    for mop in op.mops:
        if isinstance(mop, Append):
            last[mop.key] = mop.element
        is_read = isinstance(mop, Read) and mop.elements is not None
        if isinstance(mop, Read) and is_read and mop.key in last and (mop.elements or ())[-1:] != (last[mop.key],):
            return True
    return False


def disordered(operations: Sequence[Operation], op: Operation) -> int:
    """How often the operation appended an element after one that comes later in the key's order, or that nobody saw."""
    count = 0
    for key in {mop.key for mop in op.mops}:
        order = longest(operations, key)
        mine = [mop.element for mop in op.mops if isinstance(mop, Append) and mop.key == key]
        places = [order.index(element) if element in order else len(order) for element in mine]
        count += sum(later < earlier for earlier, later in pairwise(places))
    return count if op.outcome != FAIL else 0


def foreseen(op: Operation) -> set[Append]:
    """The appends of an operation whose element it read before."""
    return {
        mop
        for place, mop in enumerate(op.mops)
        if isinstance(mop, Append)
        for read in op.mops[:place]
        if isinstance(read, Read) and mop.key == read.key and mop.element in (read.elements or ())
    }


def aborted(operations: Sequence[Operation]) -> int:
    """How many reads show an element of a failed operation."""
    failed = {(key, element) for op, key, element in appends(operations) if op.outcome == FAIL}
    return sum(any((key, element) in failed for element in seen) for _, key, seen in reads(operations))


def garbage(operations: Sequence[Operation]) -> int:
    """How many reads show an element that nobody appended."""
    known = {(key, element) for _, key, element in appends(operations)}
    return sum(any((key, element) not in known for element in seen) for _, key, seen in reads(operations))


def intermediate(operations: Sequence[Operation]) -> int:
    """How many reads end at an element after which its transaction, another one, appended more."""
    last = {(op.index, key): element for op, key, element in all_appends(operations)}
    passing = {(key, element): op.index for op, key, element in appends(operations) if last[op.index, key] != element}
    return sum(bool(seen) and passing.get((key, seen[-1]), op.index) != op.index for op, key, seen in reads(operations))


def dirty(operations: Sequence[Operation]) -> int:
    """How many elements of ok operations come after those of failed ones, with at most unclear ones between."""
    writers = {(key, element): op.outcome for op, key, element in appends(operations)}
    count = 0
    for key in {key for _, key, _ in reads(operations)}:
        status = OK
        for element in dict.fromkeys(longest(operations, key)):
            outcome = writers.get((key, element), INFO)
            count += status == FAIL and outcome == OK
            status = status if outcome == INFO else outcome
    return count


def lost(operations: Sequence[Operation]) -> int:
    """How many versions were read by two or more ok operations that appended to the key afterwards."""
    versions: list[tuple[int, tuple[int, ...]]] = []
    for op in operations:
        for key in {mop.key for mop in op.mops}:
            known = [
                mop
                for mop in op.mops
                if mop.key == key and (isinstance(mop, Append) or (isinstance(mop, Read) and mop.elements is not None))
            ]
            first = known[0] if known else None
            if op.outcome == OK and isinstance(first, Read) and len({type(mop) for mop in known}) > 1:
                versions.append((key, first.elements or ()))
    return sum(versions.count(version) > 1 for version in set(versions))
