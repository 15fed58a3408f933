"""Histories in Jepsen's shape: a map for each invocation and completion, with index, type, process, f, value and time.

The conversion:
1. An invocation opens an operation of its process, the next completion of that process ends it. A process that never
   invokes has completions only: each is an operation of its own, invoked just before it. If several operations of a
   process are open at once, they go to several sessions (`harness.record.formats.sessions`); a completion must then
   match exactly one of the open operations (the same transaction; or the same f, and the same value if the invocation
   has one).
2. A missing process is process 0; an index or time that is missing or -1 is the map's position in the file. Indexes
   must ascend. If times fall, `harness.record.formats.edn.times` orders the records.
3. A transaction is a list of micro-operations [f, key, value], where f is append, r or w (or read, write). A
   successful read of nil saw the empty list; or nothing, if the history writes registers. An operation that failed or
   is unclear has unknown reads, unless it carries results. A list of send and poll is a plain value; other steps are
   refused, as no check would judge them.
4. A map with a :key that is not a transaction has the value [key, value].
5. Maps of a process with a name (the nemesis) become faults of phase "effect", as the maps do not say when a fault
   began and ended. If it is not called nemesis, they must be of type info, as all of Jepsen's nemesis are: else it may
   be a client, and a history without its operations would pass. Other fields of a map are left out, except `error`.
Source: jepsen.history, elle.list-append.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final, Literal, NamedTuple, cast

import msgspec

from checkers.invariants.log_acts import POLL, SEND
from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Fault, Invoke, Json, MicroOp, Outcome
from harness.record.formats.edn.plain import PlainTransaction
from harness.record.formats.edn.times import Times
from harness.record.formats.edn.values import shown
from harness.record.formats.parquet.operations import is_identical, same_request
from harness.record.formats.sessions import in_sessions

Mark = Literal[":", ""]  # The prefix of field names: a colon in EDN, nothing in JSON.
Mops = tuple[MicroOp, ...]

_KINDS: Final[Mapping[str, Literal["r", "append", "w"]]] = {
    "append": "append",
    "r": "r",
    "w": "w",
    "read": "r",
    "write": "w",
}
_MOPS: Final = {mark + word: kind for word, kind in _KINDS.items() for mark in ("", ":")}
SAMPLE: Final = 10_000  # The number of maps from which it is decided whether a history is about lists or registers.
OVERLAPPING_MAX: Final = 100  # The most open operations of one process; a completion is compared with all of them.
_TYPES: Final = ("invoke", "ok", "fail", "info")
_INT_MAX: Final = (1 << 63) - 1


class FieldNames:
    """The names of a map's fields."""

    def __init__(self, mark: Mark) -> None:
        self.mark = mark
        self.type, self.index, self.process = f"{mark}type", f"{mark}index", f"{mark}process"
        self.f, self.value, self.time, self.error = f"{mark}f", f"{mark}value", f"{mark}time", f"{mark}error"
        self.key = f"{mark}key"


class Map(NamedTuple):
    """One map, checked. `f` is None if absent. `mops` is the value, if it is known to be a transaction."""

    place: str
    type: str
    process: int | None  # None: not a numbered process.
    f: str | None
    value: Json
    time_ns: int
    error: str | None
    mops: Mops | None = None
    has_time: bool = True


class Open(NamedTuple):
    """An operation without completion yet."""

    place: str
    number: int
    f: str | None
    value: Json
    mops: Mops | None


def records_of_maps(
    source: str, maps: Iterable[tuple[str, Json | PlainTransaction]], mark: Mark, times: Times | None = None
) -> Iterator[Evidence]:
    """The records of a history, from its maps in the order of the file `source`, each with its place there.

    `times` learns the times of the maps. If it knows already that they fall, the records come in its order.
    Raises HistoryError with the file, the place, and the problem of that map.
    """
    if times is None or not times.fall:
        return in_sessions(_paired(source, maps, mark, times or Times()))
    return in_sessions(times.ordered(list(_paired(source, maps, mark, Times()))))


def _paired(
    source: str, maps: Iterable[tuple[str, Json | PlainTransaction]], mark: Mark, times: Times
) -> Iterator[Evidence]:
    names, maps = FieldNames(mark), iter(maps)
    sample = list(islice(maps, SAMPLE))
    pairing = Pairing(is_of_lists=is_of_lists(sample, names))
    previous = -1
    for number, (place, fields) in enumerate(chain(sample, maps)):
        try:
            each, previous = checked(fields, names, place=place, number=number, previous=previous)
            if each.process is not None:
                times.see(each.process, each.time_ns if each.has_time else None)
            records = pairing.records(each)
        except ValueError as error:
            raise HistoryError(f"{source}, {place}: {error}") from None
        yield from records


class Pairing:
    """Pairs completions with their invocations. `first_op` is the number of operations invoked before."""

    def __init__(self, *, is_of_lists: bool, first_op: int = 0) -> None:
        self._is_of_lists = is_of_lists
        self._open: dict[int, list[Open]] = {}
        self._invokes: dict[int, bool] = {}  # By process: True if it has invocations, False if completions only.
        self._count, self._fault_count = first_op, 0

    def records(self, each: Map) -> tuple[Evidence, ...]:
        """The records of one map. Raises ValueError if it does not fit the maps before it."""
        process = each.process
        if process is None:
            note = msgspec.json.encode(each.value).decode()
            self._fault_count += 1
            return (Fault(each.time_ns, self._fault_count - 1, "effect", each.f or "nemesis", (), note=note),)
        if each.type == "invoke":
            return (self.invoked(each, process),)
        if self._invokes.setdefault(process, False):
            return (self.completed(each, process),)
        return self.invoked(each, process), self.completed(each, process)

    def invoked(self, each: Map, process: int) -> Invoke:
        """The invocation in that map; for a completion without one, the invocation assumed just before it."""
        if each.type == "invoke" and not self._invokes.setdefault(process, True):
            raise ValueError(f"process {process} invokes, after it completed without an invocation")
        mops = _mops(each)
        if mops is None and each.f == "txn":
            _require_steps(each.value)
        requested = None if mops is None else _without_results(mops)
        value = each.value if requested is None else None
        others = self._open.setdefault(process, [])
        if len(others) == OVERLAPPING_MAX:
            raise ValueError(f"process {process} invokes, but its invocation in {others[0].place} is open")
        opened = Open(each.place, self._count, each.f, value, requested)
        others.append(opened)
        self._count += 1
        f = each.f or ("operation" if requested is None else "txn")
        return Invoke(opened.number, each.time_ns, each.time_ns, process, f, value, requested)

    def resume(self, process: int, opened: Open) -> None:
        """Continue an operation that was invoked elsewhere."""
        self._open[process] = [opened]

    def request(self, process: int) -> Open:
        """The last operation of this process that has not completed."""
        return self._open[process][-1]

    def completed(self, each: Map, process: int) -> Complete:
        """The completion in that map. Raises ValueError if it matches no open invocation of its process."""
        opened = self._taken(each, process)
        if each.f != opened.f:
            raise ValueError(
                f"f is {shown(each.f or '')}, and was {shown(opened.f or '')} when {opened.place} invoked it"
            )
        is_ok = each.type == "ok"
        mops = None
        if opened.mops is not None and (is_ok or _is_transaction(each)):
            mops = _mops(each, is_empty=is_ok and self._is_of_lists)
            if mops is None or not same_request(opened.mops, mops):
                raise ValueError(f"its transaction differs from its invocation, {opened.place}")
        value = _value(each) if mops is None else None
        if mops is not None and not is_ok and all(mop.f != "r" or mop.value is None for mop in mops):
            mops = None
        return Complete(opened.number, each.time_ns, cast("Outcome", each.type), value, mops, each.error)

    def _taken(self, each: Map, process: int) -> Open:
        """The invocation that a completion ends. It is removed from the open ones."""
        candidates = self._open.get(process)
        if not candidates:
            raise ValueError(f"process {process} completes, but has no open invocation")
        if len(candidates) == 1:
            return candidates.pop()
        mops = _mops(each)
        same = [one for one in candidates if _is_like(one, each, mops)]
        if len(same) != 1:
            raise ValueError(f"process {process} completes, and {len(same)} of its open invocations are like it")
        candidates.remove(same[0])
        return same[0]


def _is_like(opened: Open, each: Map, mops: Mops | None) -> bool:
    """True if that completion, with `mops` if it is a transaction, can belong to that invocation."""
    if opened.f != each.f:
        return False
    if opened.mops is not None:
        return mops is not None and same_request(opened.mops, mops)
    return opened.value is None or is_identical(opened.value, _value(each))


def _value(each: Map) -> Json:
    """The value as written, also of a map whose steps were read as a transaction at once."""
    return each.value if each.mops is None else [[f":{mop.f}", mop.key, mop.value] for mop in each.mops]


def _without_results(mops: Mops) -> Mops:
    """The micro-operations as invoked: reads without results."""
    if any([mop.value is not None and mop.f == "r" for mop in mops]):  # noqa: C419  A list is faster.
        return tuple([MicroOp("r", mop.key) if mop.f == "r" else mop for mop in mops])
    return mops


def checked(
    fields: Json | PlainTransaction, names: FieldNames, *, place: str, number: int, previous: int
) -> tuple[Map, int]:
    """The map, and its index. Raises ValueError."""
    if isinstance(fields, PlainTransaction):
        index = number if fields.index is None else fields.index
        if index <= previous:
            raise ValueError(_order(index, previous))
        time_ns = number if fields.time is None else fields.time
        steps = fields.value
        mops = tuple([MicroOp(step.f, step.key, step.value) for step in steps]) if steps or fields.f else None
        has_time = fields.time is not None
        return Map(place, fields.type, fields.process or 0, fields.f, [], time_ns, fields.error, mops, has_time), index
    if isinstance(fields, dict) and len(fields) == 1 and "#jepsen.history.Op" in fields:
        fields = fields["#jepsen.history.Op"]
    if not isinstance(fields, dict):
        raise ValueError("it is not a map")
    kind = _word(fields.get(names.type))
    if kind not in _TYPES:
        advice = "" if names.type.startswith(":") else "; for a change stream, --suggest prints a mapping file"
        raise ValueError(f"its type must be one of {', '.join(_TYPES)}{advice}")
    index = _place(fields, names.index, number)
    if index <= previous:
        raise ValueError(_order(index, previous))
    name = fields.get(names.process)
    is_numbered = not isinstance(name, str) or name.isdecimal()
    process = _number(fields, names.process, 0) if is_numbered else None
    if process is None and kind != "info" and _word(name) != "nemesis":
        raise ValueError(f"its process is {shown(_word(name) or '')}: give clients integers for names")
    time_ns = _place(fields, names.time, -1)
    has_time = time_ns >= 0
    error = fields.get(names.error)
    text = error if isinstance(error, str | None) else msgspec.json.encode(error).decode()
    f, value = _word(fields.get(names.f)), fields.get(names.value)
    if names.key in fields and f != "txn":
        value = [fields[names.key], value]
    return Map(place, kind, process, f, value, time_ns if has_time else number, text, has_time=has_time), index


def _order(index: int, previous: int) -> str:
    return f"its index is {index}, and the index before is {previous}: indexes must rise"


def _number(fields: dict[str, Json], name: str, default: int) -> int:
    """A number of the map. Raises ValueError unless it is an integer of at least 0."""
    value = fields.get(name)
    if value is None:
        return default
    if type(value) is not int or not 0 <= value <= _INT_MAX:
        raise ValueError(f"its {name.removeprefix(':')} is not an integer from 0 to {_INT_MAX}")
    return value


def _place(fields: dict[str, Json], name: str, default: int) -> int:
    """An index or a time of the map; -1 is none. Raises ValueError unless it is an integer of at least 0."""
    return default if fields.get(name) == -1 else _number(fields, name, default)


def _word(value: Json) -> str | None:
    """A name without the colon of a keyword; JSON text if the value is not a name."""
    if isinstance(value, str):
        return value.removeprefix(":")
    return None if value is None else msgspec.json.encode(value).decode()


def is_of_lists(sample: Iterable[tuple[str, Json | PlainTransaction]], names: FieldNames) -> bool:
    """True if these maps are about lists, that is, unless they write registers and append nothing."""
    kinds: set[str] = set()
    for _, fields in sample:
        if isinstance(fields, PlainTransaction):
            kinds.update([step.f for step in fields.value])
            continue
        steps = fields.get(names.value) if isinstance(fields, dict) else None
        for step in steps if isinstance(steps, list) else ():
            if isinstance(step, list) and step and isinstance(step[0], str):
                kinds.add(_MOPS.get(step[0], ""))
    return "append" in kinds or "w" not in kinds


def _require_steps(value: Json) -> None:
    """Raise ValueError unless that is a list of steps over logs: no check knows other transactions."""
    if not isinstance(value, list) or not all(
        isinstance(step, list) and step and type(step[0]) is str for step in value
    ):
        raise ValueError("a transaction is a list of [f, key, value], where f is append, r or w")
    for place, name in enumerate([cast("str", cast("list[Json]", step)[0]) for step in value], start=1):
        if name not in {*SEND, *POLL}:
            raise ValueError(
                f"step {place} of its transaction is {shown(name)}, which no check knows: write append, r or w"
            )


def _is_transaction(each: Map) -> bool:
    """True if its value looks like micro-operations. Raises ValueError if only part of it does."""
    if each.mops is not None:
        return True
    if each.f not in {"txn", None} or not isinstance(each.value, list):
        return False
    known = [isinstance(mop, list) and mop and isinstance(mop[0], str) and mop[0] in _MOPS for mop in each.value]
    if all(known):
        return each.f is not None or bool(known)
    if any(known):
        step = next(place for place, is_known in enumerate(known, start=1) if not is_known)
        raise ValueError(f"step {step} of its transaction is not [f, key, value] with an f of append, r or w")
    return False


def _mops(each: Map, *, is_empty: bool = False) -> Mops | None:
    """The micro-operations of a transaction, else None. `is_empty`: a read of nil saw the empty list."""
    if each.mops is not None:
        if is_empty and any([mop.value is None for mop in each.mops]):  # noqa: C419  A list is faster.
            return tuple([MicroOp("r", m.key, []) if m.f == "r" and m.value is None else m for m in each.mops])
        return each.mops
    if not _is_transaction(each):
        return None
    return tuple([_mop(parts, is_empty=is_empty) for parts in cast("list[list[Json]]", each.value)])


def _mop(parts: list[Json], *, is_empty: bool) -> MicroOp:
    f = _MOPS[cast("str", parts[0])]
    if len(parts) == 3:
        value = parts[2]
    elif len(parts) == 2 and f == "r":
        value = None
    else:
        raise ValueError(f"a micro-operation has {len(parts)} parts, not [f, key, value]")
    return MicroOp(f, parts[1], [] if f == "r" and is_empty and value is None else value)
