"""The digest of a part of plain transactions (`harness.record.formats.edn.columns`), by columns.

It is the same, bit for bit, as `harness.record.formats.edn.part` computes map by map. Only the few operations that are
open at the beginning or at the end of the part are read map by map here as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, repeat
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from checkers.columns.runs import expand
from harness.core import columns as core
from harness.core.columns import NEVER, Bools, Int8s, Int64s
from harness.core.record import Json
from harness.record.formats.edn.columns import INVOKE, TYPES, Events, even_lines, events_of
from harness.record.formats.edn.digest import Batch, Deferred, Digest, Opened, Part
from harness.record.formats.edn.jepsen import SAMPLE, Map, Pairing, checked, is_of_lists
from harness.record.formats.edn.notation import (
    APPEND,
    NOTATIONS,
    READ_EMPTY,
    READ_LIST,
    READ_NIL,
    READ_VALUE,
    WRITE,
    NotationName,
)
from harness.record.formats.parquet.operations import MOP_KINDS, OUTCOMES
from harness.record.formats.parquet.schema import SCHEMAS

_ENCODER: Final = msgspec.msgpack.Encoder()
_WORDS: Final = {APPEND: "append", WRITE: "w", READ_VALUE: "r", READ_NIL: "r", READ_EMPTY: "r", READ_LIST: "r"}
_WORD: Final = np.array([None, *(_WORDS[kind] for kind in sorted(_WORDS))], object)  # By kind of step.
_F: Final = np.array([-1, *(MOP_KINDS[_WORDS[kind]] for kind in sorted(_WORDS))], np.int8)
_OUTCOME: Final = np.array([OUTCOMES.get(name, -1) for name in TYPES], np.int8)
_NEMESIS: Final = b"nemesis"  # Its maps have many forms, and are few: each is read separately.
_REST: Final = (None,) * 6  # Fields of a completion after its error: Jepsen's maps have none of them.


class _Fault(NamedTuple):
    """A map of the nemesis: the number of maps before it, and its index, which is the same if it has none."""

    number: int
    position: int
    form: Json


class _Read(NamedTuple):
    """The events of clients in plain lines, with the numbers of their maps; and the maps of the nemesis."""

    lines: Sequence[bytes]
    number: Int64s
    events: Events
    faults: list[_Fault]


class _Pairs(NamedTuple):
    """The places of invocations and of their completions, and those of the other halves."""

    invoked: Int64s
    completed: Int64s
    deferred: Int64s
    opened: Int64s
    begun: list[int]


def plain_digest(part: Part, text: bytes) -> Digest | None:
    """The digest of a part with that text; None if it is not plain.

    Raises ValueError if a part that is plain cannot be read alone.
    """
    read = _read(even_lines(text, part.notation), part.notation, part.first_map)
    if read is None:
        return None
    lines, number, events, faults = read
    count, is_invoke = len(events.type), events.type == INVOKE
    time = np.where(events.time < 0, number, events.time)
    index = _indexes(read)
    if (np.diff(index) <= 0).any():
        raise ValueError("indexes fall")
    if (np.diff(time) < 0).any():
        raise ValueError("times fall")
    kind = _kinds(events, is_of_lists=part.is_of_lists)
    pairs = _paired(events.process, is_invoke)
    _require_answers(events, pairs)
    begun = part.first_op + np.cumsum(is_invoke)  # Invocations so far.
    op = begun - 1
    op[pairs.completed] = op[pairs.invoked]
    has_result = _has_result(events, kind)
    records = _Records(events, kind=kind, op=op, time=time, has_result=has_result)
    canonical, places = records.canonical(pairs.deferred) if part.is_hashed else (b"", [0] * len(pairs.deferred))
    maps = {place: _map(lines[place], part.notation, int(number[place])) for place in (*pairs.deferred, *pairs.opened)}
    return Digest(
        part=part,
        map_count=len(index),
        op_count=int(is_invoke.sum()),
        record_count=count,
        fault_count=len(faults),
        first_index=int(index[0]),
        last_index=int(index[-1]),
        first_ns=int(time[0]),
        last_ns=int(time[-1]),
        begun=pairs.begun,
        deferred=[
            Deferred(int(events.process[at]), maps[at], int(at), int(begun[at]), place)
            for at, place in zip(pairs.deferred, places, strict=True)
        ],
        opened=[_opened(part, maps[at], int(op[at]), int(at)) for at in pairs.opened],
        batch=records.batch(pairs, begun),
        canonical=canonical,
    )


def plain_is_of_lists(text: bytes, name: NotationName, *, is_whole: bool) -> bool | None:
    """The decision of `is_of_lists` on the file that begins with that text; None if the text does not decide it."""
    lines = even_lines(text, name)
    read = _read(lines[:SAMPLE], name, 0)
    if read is None:
        return None
    names = NOTATIONS[name].names
    steps: list[Json] = [[names.mark + _WORDS[kind]] for kind in np.unique(read.events.kind).tolist()]
    forms = [("", fault.form) for fault in read.faults]
    is_known = is_whole or len(lines) >= SAMPLE or [names.mark + "append"] in steps
    return is_of_lists([("", {names.value: steps}), *forms], names) if is_known else None


def _read(lines: Sequence[bytes], name: NotationName, first_map: int) -> _Read | None:
    """The maps in those lines; None unless all of them are plain or of the nemesis."""
    text, faults = b"\n".join(lines), list[_Fault]()
    number = np.arange(first_map, first_map + len(lines))
    if _NEMESIS in text:
        try:
            faults = [*_faults(lines, name, first_map)]
        except ValueError:
            return None
        number = np.delete(number, [fault.number - first_map for fault in faults])
        lines = [lines[place] for place in (number - first_map).tolist()]
        text = b"\n".join(lines)
    events = events_of(text, name) if lines else None
    return None if events is None else _Read(lines, number, events, faults)


def _faults(lines: Sequence[bytes], name: NotationName, first_map: int) -> Iterator[_Fault]:
    """The maps of the nemesis in those lines. Raises ValueError if a map that names it is of a client."""
    notation = NOTATIONS[name]
    for number, line in enumerate(lines, first_map):
        if _NEMESIS in line:
            form = notation.form(line)
            each, index = checked(form, notation.names, place="", number=number, previous=-1)
            if each.process is not None:
                raise ValueError("a map of a client names the nemesis")
            yield _Fault(number, index, form)


def _indexes(read: _Read) -> Int64s:
    """The indexes of all maps, in order of the lines."""
    index = np.where(read.events.index < 0, read.number, read.events.index)
    places = [fault.number for fault in read.faults]
    return np.insert(index, np.searchsorted(read.number, places), [fault.position for fault in read.faults])


def _kinds(events: Events, *, is_of_lists: bool) -> Int8s:
    """The kinds of all steps: an invocation's reads have no results, and a successful read of nil saw an empty list."""
    type_of = np.repeat(events.type, np.diff(events.step_start))
    kind = events.kind.copy()
    kind[(type_of == INVOKE) & (kind >= READ_VALUE)] = READ_NIL
    if is_of_lists:
        kind[(type_of == TYPES.index("ok")) & (kind == READ_NIL)] = READ_EMPTY
    return kind


def _paired(process: Int64s, is_invoke: Bools) -> _Pairs:
    """Each completion with the invocation before it of the same process. Raises ValueError unless the two alternate."""
    order = np.argsort(process, kind="stable")
    same, invokes = np.diff(process[order]) == 0, is_invoke[order]
    if (same & (invokes[1:] == invokes[:-1])).any():
        raise ValueError("operations of one process overlap, or one completes that is idle")
    is_first, is_last = np.append(True, ~same), np.append(~same, True)
    followed = np.flatnonzero(invokes & ~is_last)
    return _Pairs(
        invoked=order[followed],
        completed=order[followed + 1],
        deferred=np.sort(order[is_first & ~invokes]),
        opened=np.sort(order[is_last & invokes]),
        begun=process[order[is_first & invokes]].tolist(),
    )


def _require_answers(events: Events, pairs: _Pairs) -> None:
    """Raise ValueError unless each completion has the transaction of its invocation, but for the results of reads."""
    start, count = events.step_start[:-1], np.diff(events.step_start)
    if not np.array_equal(count[pairs.invoked], count[pairs.completed]):
        raise ValueError("a completion has other steps than its invocation")
    asked, done = (expand(start[each], count[each]) for each in (pairs.invoked, pairs.completed))
    f = _F[events.kind]
    is_read = f[asked] == core.READ
    is_same = (f[asked] == f[done]) & (events.key[asked] == events.key[done])
    if not (is_same & (is_read | (events.value[asked] == events.value[done]))).all():
        raise ValueError("a completion has another transaction than its invocation")


def _has_result(events: Events, kind: Int8s) -> Bools:
    """True for invocations, successes, and other completions that report the result of some read."""
    shows = np.append(0, np.cumsum((kind >= READ_VALUE) & (kind != READ_NIL)))
    reports = shows[events.step_start[1:]] > shows[events.step_start[:-1]]
    return np.asarray(reports | (events.type == INVOKE) | (events.type == TYPES.index("ok")), np.bool_)


class _Records:
    """The records of all events: as bytes for the history's hash, and as rows."""

    def __init__(self, events: Events, *, kind: Int8s, op: Int64s, time: Int64s, has_result: Bools) -> None:
        self._events, self._kind, self._op, self._time, self._has_result = events, kind, op, time, has_result

    def canonical(self, left_out: Int64s) -> tuple[bytes, list[int]]:
        """The records in canonical form, and the offsets of those that are left out."""
        records = list(self._tuples())
        parts, places, size = list[bytes](), list[int](), 0
        for begin, end in pairwise([-1, *left_out.tolist(), len(records)]):
            parts.append(_ENCODER.encode(records[begin + 1 : end])[_array_head(end - begin - 1) :])
            size += len(parts[-1])
            places.append(size)
        return b"".join(parts), places[:-1]

    def _tuples(self) -> Iterator[tuple[object, ...]]:
        """Each record as the sequence of its fields."""
        events = self._events
        steps = list(zip(_WORD[self._kind].tolist(), events.key.tolist(), self._values(), repeat(None), repeat(None)))
        mops = [steps[begin:end] for begin, end in pairwise(events.step_start.tolist())]
        columns = (events.type, self._op, self._time, events.process, events.error, self._has_result)
        fields = zip(*(column.tolist() for column in columns), mops, strict=True)
        for type_, op, time, process, error, has, some in fields:
            if type_ == INVOKE:
                yield ("invoke", op, time, time, process, "txn", None, some)
            else:
                yield ("complete", op, time, TYPES[type_], None, some if has else None, events.errors[error], *_REST)

    def _values(self) -> list[object]:
        """The value of each step: a number, a list, or None."""
        events = self._events
        elements, bounds = events.elements.tolist(), events.element_start.tolist()
        values: list[object] = events.value.tolist()
        for place in np.flatnonzero(self._kind == READ_NIL).tolist():
            values[place] = None
        for place in np.flatnonzero(self._kind >= READ_EMPTY).tolist():
            values[place] = elements[bounds[place] : bounds[place + 1]]
        return values

    def batch(self, pairs: _Pairs, begun: Int64s) -> Batch:
        """The rows of all paired operations."""
        events = self._events
        invoked, completed = pairs.invoked, pairs.completed
        source = np.where(self._has_result[completed], completed, invoked)
        start, count = events.step_start[:-1], np.diff(events.step_start)
        at = expand(start[source], count[source])
        outcome = _OUTCOME[events.type[completed]]
        length = np.where(self._kind == READ_LIST, np.diff(events.element_start), 0)
        read = np.append(0, np.cumsum(length[at]))
        columns = {
            "index": self._op[invoked],
            "process": events.process[invoked],
            "outcome": outcome,
            "f": pa.repeat("txn", len(invoked)),
            "intended_ns": self._time[invoked],
            "invoke_ns": self._time[invoked],
            "complete_ns": self._time[completed],
            "after": np.where(outcome == core.INFO, NEVER, begun[completed]),
            "invoke_seq": invoked,
            "complete_seq": completed,
            "is_txn": np.ones(len(invoked), np.bool_),
            "has_result": self._has_result[completed],
            "error": pa.array(events.errors, pa.string()).take(pa.array(events.error[completed])),
        }
        steps = {
            "op": np.repeat(self._op[invoked], count[source]),
            "position": np.arange(len(at)) - np.repeat(np.cumsum(count[source]) - count[source], count[source]),
            "f": _F[self._kind[at]],
            "key": events.key[at],
            "value": pa.array(events.value[at], mask=self._kind[at] >= READ_NIL),
            "read": self._reads(at, length),
        }
        ends = np.append(0, np.cumsum(count[source]))
        return Batch(_table("ops", columns), _table("mops", steps), np.diff(read[ends]), [])

    def _reads(self, at: Int64s, length: Int64s) -> pa.ListArray:
        """The lists that those steps read."""
        elements = self._events.elements[expand(self._events.element_start[at], length[at])]
        offsets = pa.array(np.append(0, np.cumsum(length[at])), pa.int32())
        return pa.ListArray.from_arrays(offsets, pa.array(elements), mask=pa.array(self._kind[at] < READ_EMPTY))


def _array_head(count: int) -> int:
    """The number of bytes before the elements of an array of msgpack."""
    return 1 if count < 16 else 3 if count < 1 << 16 else 5


def _table(name: str, columns: Mapping[str, pa.Array | NDArray[Any]]) -> pa.Table:
    """Those columns as a table; the other ones are null."""
    fields = SCHEMAS[name]
    size = len(columns["op" if name == "mops" else "index"])
    arrays = [
        pa.nulls(size, field.type) if field.name not in columns else pa.array(columns[field.name], field.type)
        for field in fields
    ]
    return pa.Table.from_arrays(arrays, schema=fields)


def _map(line: bytes, name: NotationName, number: int) -> Map:
    """The map in that line."""
    notation = NOTATIONS[name]
    return checked(notation.form(line), notation.names, place="", number=number, previous=-1)[0]


def _opened(part: Part, each: Map, op: int, seq: int) -> Opened:
    """The operation that this invocation opened."""
    pairing = Pairing(is_of_lists=part.is_of_lists, first_op=op)
    process = each.process or 0
    return Opened(process, pairing.invoked(each, process), seq, pairing.request(process))
