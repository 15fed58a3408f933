"""A history's operations as plain values, for checks that look at each of them once.

Real time needs no clock: u ended before v began iff `u.after <= v.number`, and u began before v ended iff `u.number <
v.after` (harness/core/columns.py). `after` is NEVER for an operation without a certain end.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from checkers.columns.files import reading
from checkers.engine.protocol import Check, Context, When
from checkers.history.names import Dictionary
from checkers.history.tables import rows
from checkers.words.anomalies import Declared
from harness.core.columns import APPEND, NEVER, OK, READ
from harness.core.record import Json
from harness.core.verdict import Judgement

_OPS: Final = ["index", "process", "outcome", "f", "invoke_value", "value", "after", "is_txn", "complete_seq"]
_MOPS: Final = ["op", "position", "f", "key", "value", "read"]
_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_LENGTH: Final = 60  # The greatest number of characters of a value in a sentence.

Token = int | str  # A hashable form of a value: an integer as it is, anything else as its JSON.


class Mop(NamedTuple):
    """A read of a list (`elements`, None if not known) or an append (`element`)."""

    key: Token
    element: Token | None
    elements: tuple[Token, ...] | None


class Op(NamedTuple):
    """One operation. `argument` and `value` are those of its invocation and completion; a transaction has `mops`."""

    number: int
    process: int
    outcome: int
    after: int
    f: str
    argument: Json = None
    value: Json = None
    mops: tuple[Mop, ...] | None = None
    ended: int = NEVER  # The place of its completion in the journal.

    @property
    def is_ok(self) -> bool:
        """True if the operation certainly happened."""
        return self.outcome == OK

    @property
    def given(self) -> Json:
        """The value of the invocation. The answer may be another one, such as a new id or total."""
        return self.value if self.argument is None else self.argument

    @property
    def appends(self) -> list[tuple[Token, Token]]:
        """The key and the element of each append."""
        return [(mop.key, mop.element) for mop in self.mops or () if mop.element is not None]

    @property
    def reads(self) -> list[tuple[Token, tuple[Token, ...]]]:
        """The key and the elements of each list that it certainly read."""
        known = self.mops if self.mops is not None and self.is_ok else ()
        return [(mop.key, mop.elements) for mop in known if mop.elements is not None]


def operations(history: Path, names: Path | None = None) -> tuple[Op, ...]:
    """All operations of that history, by index. Raises HistoryError if its files are damaged.

    If the history is a part of another one, `names` is the folder of the whole history, which has the dictionary.
    """
    mops = _transactions(history, Dictionary(names or history))
    with reading(history / "ops.parquet", msgspec.DecodeError, RecursionError):
        return tuple(sorted(_operation(row, mops) for row in rows(history, "ops", _OPS)))


def _operation(row: Mapping[str, Any], mops: Mapping[int, list[Mop]]) -> Op:
    return Op(
        number=row["index"],
        process=row["process"],
        outcome=row["outcome"],
        after=row["after"],
        f=row["f"],
        argument=_json(row["invoke_value"]),
        value=_json(row["value"]),
        mops=tuple(mops.get(row["index"], ())) if row["is_txn"] else None,
        ended=NEVER if row["complete_seq"] is None else row["complete_seq"],
    )


def _transactions(history: Path, names: Dictionary) -> dict[int, list[Mop]]:
    """For each operation its micro-operations on lists, in order."""
    known: dict[int, Token] = {}

    def named(identity: int) -> Token:
        if identity not in known:
            known[identity] = token(names.value(identity))
        return known[identity]

    found: dict[int, list[Mop]] = {}
    for row in sorted(rows(history, "mops", _MOPS), key=lambda each: (each["op"], each["position"])):
        elements = None if row["read"] is None else tuple(map(named, row["read"]))
        if row["f"] == READ:
            found.setdefault(row["op"], []).append(Mop(named(row["key"]), None, elements))
        elif row["f"] == APPEND:
            found.setdefault(row["op"], []).append(Mop(named(row["key"]), named(row["value"]), None))
    return found


def _json(text: str | None) -> Json:
    return None if text is None else msgspec.json.decode(text)


def token(value: Json) -> Token:
    """The value in hashable form. Two tokens are equal iff their values are the same JSON."""
    return value if type(value) is int else _ENCODER.encode(value).decode()


def shown(value: Token) -> str:
    """The value for a sentence: text without its quotes, cut if it is long."""
    text = str(value)
    if text.startswith('"'):
        text = str(msgspec.json.decode(text))
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]} ..."


def listed(values: Iterable[Token]) -> str:
    """Values for a sentence: the first few, and how many more there are."""
    every = list(values)
    few = ", ".join(map(shown, every[:4]))
    return few if len(every) <= 4 else f"{few} and {len(every) - 4} more"


def collection(value: Json) -> list[Json] | None:
    """The members of a list or set; None for anything else."""
    if isinstance(value, dict) and list(value) == ["#set"]:
        value = value["#set"]
    return value if isinstance(value, list) else None


def keyed(value: Json) -> tuple[Json, list[Json]] | None:
    """Key and members of a value such as [key, [members]]; None for anything else."""
    parts = collection(value)
    if parts is None or len(parts) != 2:
        return None
    members = collection(parts[1])
    return None if members is None else (parts[0], members)


def pairs(value: Json) -> list[tuple[Json, Json]] | None:
    """The entries of a map with keys of any type; None for anything else."""
    if not isinstance(value, dict):
        return None
    entries = value.get("#map")
    if len(value) == 1 and isinstance(entries, list):
        return [(each[0], each[1]) for each in entries if isinstance(each, list) and len(each) == 2]
    return None if any(name.startswith("#") for name in value) else list(value.items())


def invariant(
    name: str, anomalies: Declared, judged: Callable[[Sequence[Op]], Judgement], when: When = When.NEEDED
) -> Check:
    """A check for a simple workload: it needs plain operations only, and judges one generation at a time."""

    def judge(history: Path, context: Context) -> Judgement:
        return judged(operations(history, context.home(history)))

    return Check(name=name, anomalies=anomalies, judge=judge, when=when, by_generation=True)
