"""Operations on each register, key by key, from a history's files.

If operations name their register, their value is [key, value]; else there is one register, and the value stands alone.
That of a cas is [old, new], and with a key also [key, old, new]; a read is invoked with null and answered with the
value that it saw. Transactions of reads and writes concern one multi-register, which has no key. A failed operation did
nothing, and an unclear read shows nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from zlib import crc32

import msgspec
import pyarrow.compute as pc
from msgspec import Struct

from checkers.columns.files import opened, read_group, reading
from checkers.history.names import Dictionary
from checkers.history.registers import ModelName, Register
from checkers.history.transactions import Chunk
from checkers.linearizability.models import FREE, HELD, NOTHING, OPERATIONS, Access, Step, json_of, named
from checkers.linearizability.search import Act
from harness.core.columns import APPEND, FAIL, NEVER, OK, READ
from harness.core.errors import HistoryError

SAMPLE: Final = 10_000  # The number of operations from which `form_of` infers whether they name keys.
_OPS: Final = [
    *("index", "process", "outcome", "f", "invoke_value", "value", "invoke_ns", "complete_ns"),
    *("invoke_seq", "complete_seq", "is_txn", "has_result"),
]
_READS: Final = ("read", "get")
_FLAT_CAS: Final = 3  # The parts of [key, old, new].
_PARTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_TEXT: Final = msgspec.json.Decoder(str)


class Form(Struct, frozen=True):
    """The kind of registers that a history is about; `is_keyed` if its operations name them."""

    model: ModelName
    is_keyed: bool


class RegisterOp(NamedTuple):
    """An operation on one register. `argument` and `result` are JSON, without the key; `accesses` are a transaction's.

    `call` and `end` are places in the journal; `end` and `end_ns` are NEVER without an answer that decides the outcome.
    """

    call: int
    end: int
    op: int
    process: int
    outcome: int
    f: str
    argument: str
    result: str
    call_ns: int
    end_ns: int
    accesses: tuple[tuple[Literal["r", "w"], str, str], ...] = ()

    @property
    def is_read(self) -> bool:
        """True if the operation only reads."""
        return self.f in _READS or (bool(self.accesses) and all(f == "r" for f, _, _ in self.accesses))


class RegisterHistory(Struct, frozen=True):
    """All operations on one register, in order. `key` is JSON; None if there is only one register."""

    key: str | None
    deeds: tuple[RegisterOp, ...]


def form_of(history: Path, register: Register) -> Form | None:
    """The form of that history's registers; None if its operations are not all operations on registers.

    Transactions are registers only if `register` says so. Raises HistoryError if the file is damaged.
    """
    if register.model == "multi-register":
        return Form(register.model, is_keyed=False)
    path = history / "ops.parquet"
    with reading(path, msgspec.DecodeError), opened(path) as file:
        names = file.read(columns=["f", "is_txn"])
        operations = names.filter(pc.invert(names["is_txn"]))["f"].unique().to_pylist()
        model = register.model or named(operations)
        if model is None or not operations or not OPERATIONS[model].issuperset(operations):
            return None
        batches = file.iter_batches(SAMPLE, columns=["f", "outcome", "is_txn", "invoke_value", "value"])
        return _form(model, [row for row in next(batches).to_pylist() if not row["is_txn"]])


def _form(model: ModelName, sample: Sequence[Mapping[str, Any]]) -> Form | None:
    is_keyed = all(_names_key(row["f"], row["invoke_value"], row["value"]) for row in sample)
    wrote = [row["invoke_value"] for row in sample if row["f"] in {"write", "put"}]
    seen = [row["value"] for row in sample if row["f"] in _READS and row["outcome"] == OK]
    if is_keyed:
        wrote, seen = ([_without_key(value) for value in values] for values in (wrote, seen))
    if any(map(_is_list, seen)) and not any(map(_is_list, wrote)):
        return None  # What is written as single values and read as a list is no register.
    return Form(model, is_keyed)


def lives_by_key(chunk: Chunk, *, form: Form, partitions: int) -> Iterable[tuple[int, list[RegisterHistory]]]:
    """Pairs of a partition and the registers whose keys belong to it, each with its operations in one chunk.

    Raises HistoryError if the chunk is damaged, or with the operation whose value does not have that form.
    """
    if form.model == "multi-register":
        return [(0, [RegisterHistory(None, tuple(_transactions(chunk)))])]
    lives: dict[str | None, list[RegisterOp]] = {}
    for key, deed in _deeds(chunk, form):
        lives.setdefault(key, []).append(deed)
    parts: dict[int, list[RegisterHistory]] = {}
    for key, deeds in lives.items():
        parts.setdefault(crc32((key or "").encode()) % partitions, []).append(RegisterHistory(key, tuple(deeds)))
    return parts.items()


def gathered(parts: Sequence[Sequence[RegisterHistory]]) -> tuple[RegisterHistory, ...]:
    """The registers of one partition, each with all its operations."""
    lives: dict[str | None, list[RegisterOp]] = {}
    for part in parts:
        for life in part:
            lives.setdefault(life.key, []).extend(life.deeds)
    return tuple(RegisterHistory(key, tuple(sorted(lives[key]))) for key in sorted(lives, key=str))


def acts_of(life: RegisterHistory, register: Register) -> list[Act]:
    """The operations that observe, or may have changed, something, as acts of a search."""
    places = {key: place for place, key in enumerate(registers_of(life))}
    steps = [(deed, _step(deed, register, places)) for deed in life.deeds if deed.outcome != FAIL]
    return [Act(deed.call, deed.end, step, deed.op) for deed, step in steps if step is not None]


def registers_of(life: RegisterHistory) -> list[str]:
    """The single registers of a multi-register, in the order of its state."""
    return sorted({key for deed in life.deeds for _, key, _ in deed.accesses})


def written(deed: RegisterOp) -> tuple[str, ...]:
    """The values that the operation tried to write, as JSON."""
    match deed.f:
        case "write" | "put" | "append":
            return (deed.argument,)
        case "cas":
            return (_pair(deed.argument, deed.op)[1],)
        case _:
            return tuple(value for f, _, value in deed.accesses if f == "w")


def _step(deed: RegisterOp, register: Register, places: Mapping[str, int]) -> Step | None:
    """The effect of an operation; None if it observes and changes nothing."""
    is_silent = deed.outcome != OK or (deed.result == NOTHING and (register.nil == "anything" or deed.f == "get"))
    if deed.is_read and is_silent and not deed.accesses:
        return None
    match deed.f:
        case "acquire":
            return Step(FREE, HELD)
        case "release":
            return Step(HELD, FREE)
        case "read":
            return Step(needs=deed.result)
        case "write":
            return Step(leads=deed.argument)
        case "cas":
            return Step(*_pair(deed.argument, deed.op))
        case "get":
            return Step(needs=_text(deed.result, deed.op))
        case "put":
            return Step(leads=_text(deed.argument, deed.op))
        case "append":
            return Step(more=_text(deed.argument, deed.op))
        case _:
            return _transaction_step(deed, register, places)


def _transaction_step(deed: RegisterOp, register: Register, places: Mapping[str, int]) -> Step | None:
    accesses = []
    for f, key, value in deed.accesses:
        is_silent = deed.outcome != OK or (value == NOTHING and register.nil == "anything")
        if f == "w" or not is_silent:
            accesses.append(Access(f == "w", places[key], value))
    return Step(more=tuple(accesses)) if accesses else None


def _names_key(f: str, argument: str | None, result: str | None) -> bool:
    """True if an operation with that argument names its key.

    A read is invoked as [key, null]; or, where the history has completions only, as it was answered.
    """
    parts = _PARTS.decode(argument) if argument and _is_list(argument) else []
    if len(parts) != 2:
        return f == "cas" and len(parts) == _FLAT_CAS
    second = bytes(parts[1]).decode()
    return _is_list(second) if f == "cas" else f not in _READS or second == NOTHING or argument == result


def _without_key(value: str | None) -> str | None:
    parts = _PARTS.decode(value) if value and _is_list(value) else []
    return bytes(parts[1]).decode() if len(parts) == 2 else value


def _is_list(text: str | None) -> bool:
    return text is not None and text.startswith("[")


def _deeds(chunk: Chunk, form: Form) -> Iterator[tuple[str | None, RegisterOp]]:
    """The operations of a chunk that are no transactions, each with its key."""
    for index, process, outcome, f, argument, result, call_ns, end_ns, call, end, is_txn, _ in _rows(chunk):
        if is_txn:
            continue
        key = None
        argument, result = argument or NOTHING, result or NOTHING  # noqa: PLW2901  Null is written as no text.
        if form.is_keyed:
            key, argument = _pair(_nested(argument) if f == "cas" else argument, index)  # noqa: PLW2901
            if f in _READS and outcome == OK:
                said, result = _pair(result, index)  # noqa: PLW2901
                if said != key:
                    raise HistoryError(f"operation {index} was invoked on key {key} and answered for {said}")
        is_open = outcome != OK
        times = (call_ns, NEVER if is_open else end_ns)
        yield key, RegisterOp(call, NEVER if is_open else end, index, process, outcome, f, argument, result, *times)


def _transactions(chunk: Chunk) -> Iterator[RegisterOp]:
    """The transactions of a chunk. Raises HistoryError for one that appends: a multi-register has no appends."""
    names = Dictionary(Path(chunk.directory))
    accesses: dict[int, list[tuple[Literal["r", "w"], str, str]]] = {}
    for op, f, key, value in _columns(chunk, "mops.parquet", ["op", "f", "key", "value"]):
        if f == APPEND:
            raise HistoryError(f"operation {op} appends: a multi-register is only read and written")
        shown = NOTHING if value is None else json_of(names.value(value))
        accesses.setdefault(op, []).append(("r" if f == READ else "w", json_of(names.value(key)), shown))
    for index, process, outcome, f, _, _, call_ns, end_ns, call, end, is_txn, has_result in _rows(chunk):
        if is_txn and index in accesses:
            is_open = outcome != OK or not has_result
            times = (call_ns, NEVER if is_open else end_ns)
            ends = NEVER if is_open else end
            yield RegisterOp(call, ends, index, process, outcome, f, NOTHING, NOTHING, *times, tuple(accesses[index]))


def _rows(chunk: Chunk) -> Iterable[tuple[Any, ...]]:
    return _columns(chunk, "ops.parquet", _OPS)


def _columns(chunk: Chunk, name: str, columns: list[str]) -> Iterable[tuple[Any, ...]]:
    table = read_group(Path(chunk.directory, name), chunk.group, columns)
    return zip(*(table[column].to_pylist() for column in columns), strict=True)


def _nested(text: str) -> str:
    """The value of a cas with its key as [key, [old, new]], also if it is [key, old, new]."""
    parts = [bytes(part).decode() for part in _PARTS.decode(text)] if _is_list(text) else []
    return f"[{parts[0]},[{parts[1]},{parts[2]}]]" if len(parts) == _FLAT_CAS else text


def _pair(text: str, index: int) -> tuple[str, str]:
    """The two elements of a list, as JSON. Raises HistoryError for anything else."""
    try:
        first, second = _PARTS.decode(text)
    except (msgspec.DecodeError, ValueError):
        raise HistoryError(f"operation {index} has the value {text[:60]}, where a list of two is needed") from None
    return bytes(first).decode(), bytes(second).decode()


def _text(text: str, index: int) -> str:
    """The string that this JSON encodes. Raises HistoryError for anything else."""
    try:
        return _TEXT.decode(text)
    except msgspec.DecodeError:
        raise HistoryError(f"operation {index} has the value {text[:60]}, where a text is needed") from None
