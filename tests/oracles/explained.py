"""Independent on purpose: the models that explain a history in which something is unclear, by trying all there is.

Tried are all initial states, outcomes of unclear transactions, writers of each value, and orders of commits, against
the axioms of `tests.oracles.axioms`. A model explains a history if one of all these does. Plain loops.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations, product
from typing import NamedTuple

from checkers.history.transactions import Append, Load, Mop, Operation, Read, Store
from harness.core.columns import INFO, NOTHING, OK
from tests.oracles.axioms import INITIAL, VISIBLE, ExternalRead, Facts, explains, timed

BELOW_ATOMIC = ("committed", "non-monotonic-view")  # Models in which a key may change between two reads.
Firsts = dict[int, tuple[int, ...]]  # Of each key the list, or the register's value, that was there at first.


class Model(NamedTuple):
    """An axiom's name, and the order of time that commits obey: "", "process" or "realtime"."""

    axiom: str
    time: str = ""


class _Seen(NamedTuple):
    """An external read: its place in its operation, and what it shows of others."""

    op: int
    place: int
    mop: Load | Read


def explained(operations: Sequence[Operation], models: Iterable[Model]) -> set[Model]:
    """Those of the models that explain the history."""
    ok = [one for one in operations if one.outcome == OK]
    wanted, found = set(models), set[Model]()
    if not all(map(keeps_its_writes, ok)):
        return found
    if not all(map(is_consistent, ok)):
        wanted = {model for model in wanted if model.axiom in BELOW_ATOMIC}
    unclear = [one for one in operations if one.outcome == INFO]
    for happened in product((False, True), repeat=len(unclear)):
        live = ok + [one for one, is_so in zip(unclear, happened, strict=True) if is_so]
        for known, order in _readings(operations, ok, live):
            at = {op: place for place, op in enumerate(order)}
            base = {(read.writer, read.reader) for read in known.reads if read.writer not in {INITIAL, read.reader}}
            for model in wanted - found:
                pairs = base | timed(live, model.time)
                if all(at[a] < at[b] for a, b in pairs) and explains(known, at, VISIBLE[model.axiom](known, pairs, at)):
                    found.add(model)
    return found


def keeps_its_writes(operation: Operation) -> bool:
    """True if each read after an own write shows what that left: the value, or a list that ends with the element."""
    left: dict[int, Mop] = {}
    for mop in operation.mops:
        match mop:
            case Append() | Store():
                left[mop.key] = mop
            case Load() if mop.key in left and left[mop.key] != Store(mop.key, mop.value):
                return False
            case Read(elements=tuple() as elements) if mop.key in left:
                if not elements or left[mop.key] != Append(mop.key, elements[-1]):
                    return False
    return True


def is_consistent(operation: Operation) -> bool:
    """True if no read of the operation contradicts what it had read or written before."""
    value: dict[int, int] = {}
    known: dict[int, tuple[int, ...]] = {}
    appended: dict[int, tuple[int, ...]] = {}
    for mop in operation.mops:
        match mop:
            case Append():
                appended[mop.key] = (*appended.get(mop.key, ()), mop.element)
            case Store():
                value[mop.key] = mop.value
            case Load():
                if value.setdefault(mop.key, mop.value) != mop.value:
                    return False
            case Read(elements=tuple() as elements):
                own = appended.pop(mop.key, ())
                if elements[len(elements) - len(own) :] != own:
                    return False
                if mop.key in known and elements != known[mop.key] + own:
                    return False
                known[mop.key] = elements
    return True


def _readings(
    operations: Sequence[Operation], ok: Sequence[Operation], live: Sequence[Operation]
) -> Iterator[tuple[Facts, tuple[int, ...]]]:
    """All facts, each with an order of commits that its lists obey."""
    seen = [each for one in ok for each in _external(one)]
    writes = {(one.index, mop.key) for one in live for mop in one.mops if isinstance(mop, Append | Store)}
    lists = [(mop.key, mop.elements) for one in ok for mop in one.mops if isinstance(mop, Read)]
    registers = [each for each in seen if isinstance(each.mop, Load)]
    for firsts in _firsts(operations, seen):
        for order in permutations(one.index for one in live):
            versions = _versions(live, order, firsts)
            if not all(
                elements is None or (_elements(versions, key, elements) and len(elements) >= len(firsts.get(key, ())))
                for key, elements in lists
            ):
                continue
            of_lists = [list(_writer_of_list(each, versions)) for each in seen if isinstance(each.mop, Read)]
            of_registers = [list(_writers(each, live, firsts)) for each in registers]
            for reads in product(*of_lists, *of_registers):
                yield Facts(order, set(), reads, writes), order


def _external(one: Operation) -> Iterator[_Seen]:
    """The external reads; of a list that ends with just what the operation appended, the elements before that."""
    stored, appended = set[int](), dict[int, tuple[int, ...]]()
    for place, mop in enumerate(one.mops):
        match mop:
            case Store():
                stored.add(mop.key)
            case Append():
                appended[mop.key] = (*appended.get(mop.key, ()), mop.element)
            case Load() if mop.key not in stored | appended.keys():
                yield _Seen(one.index, place, mop)
            case Read(elements=tuple() as elements) if mop.key not in stored:
                size = len(elements) - len(appended.get(mop.key, ()))
                if size >= 0 and elements[:size] + appended.get(mop.key, ()) == elements:
                    yield _Seen(one.index, place, Read(mop.key, elements[:size]))


def _firsts(operations: Sequence[Operation], seen: Sequence[_Seen]) -> Iterator[Firsts]:
    """The possible initial states: of each register nothing, or a value that nobody wrote; lists as they must be."""
    written = {_written(mop) for one in operations for mop in one.mops}
    lists: Firsts = {}
    values: dict[int, set[int]] = {}
    for _, _, mop in seen:
        if isinstance(mop, Load):
            values.setdefault(mop.key, {NOTHING}).update({mop.value} if (mop.key, mop.value) not in written else ())
    # A read behind an own append shows the first elements as well.
    for mop in (mop for one in operations if one.outcome == OK for mop in one.mops if isinstance(mop, Read)):
        elements = mop.elements or ()
        count = next((at for at, each in enumerate(elements) if (mop.key, each) in written), len(elements))
        lists[mop.key] = max(lists.get(mop.key, ()), elements[:count], key=len)
    for chosen in product(*values.values()):
        yield lists | {key: (value,) for key, value in zip(values, chosen, strict=True)}


def _written(mop: Mop) -> tuple[int, int] | None:
    return (mop.key, mop[1]) if isinstance(mop, Append | Store) else None


def _versions(live: Sequence[Operation], order: Sequence[int], firsts: Firsts) -> dict[int, list[tuple[int, int]]]:
    """Of each list the elements, each with who appended it."""
    by_index = {one.index: one for one in live}
    result = {key: [(element, INITIAL) for element in elements] for key, elements in firsts.items()}
    for op in order:
        for mop in by_index[op].mops:
            if isinstance(mop, Append):
                result.setdefault(mop.key, []).append((mop.element, op))
    return result


def _elements(versions: dict[int, list[tuple[int, int]]], key: int, elements: tuple[int, ...]) -> bool:
    return tuple(element for element, _ in versions.get(key, [])[: len(elements)]) == elements


def _writer_of_list(each: _Seen, versions: dict[int, list[tuple[int, int]]]) -> Iterator[ExternalRead]:
    """The writer of what the list was, if it was there between two commits."""
    assert isinstance(each.mop, Read)
    size, every = len(each.mop.elements or ()), versions.get(each.mop.key, [])
    writer = every[size - 1][1] if size else INITIAL
    is_whole = size == len(every) or writer == INITIAL or every[size][1] != writer
    if is_whole and writer != each.op:
        yield ExternalRead(each.op, each.place, each.mop.key, writer)


def _writers(each: _Seen, live: Sequence[Operation], firsts: Firsts) -> Iterator[ExternalRead]:
    """The possible writers of a register's value: each one whose last write it is, or INITIAL."""
    assert isinstance(each.mop, Load)
    key, value = each.mop.key, each.mop.value
    for one in live:
        last = {mop.key: mop.value for mop in one.mops if isinstance(mop, Store)}
        if one.index != each.op and last.get(key) == value:
            yield ExternalRead(each.op, each.place, key, one.index)
    if firsts[key] == (value,):
        yield ExternalRead(each.op, each.place, key, INITIAL)
