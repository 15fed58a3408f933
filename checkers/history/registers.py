"""Declarations about registers: how to read them, their initial state, and the sources of their version order."""

import json
from enum import Enum
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.files import footer
from checkers.columns.table import Join
from checkers.history.names import Dictionary
from checkers.history.transactions import chunks, load
from harness.core.columns import NOTHING, OK, READ, WRITE, Transactions
from harness.core.errors import ScenarioError
from harness.core.record import Json

ModelName = Literal["register", "cas-register", "mutex", "key-value", "multi-register"]


class Register(msgspec.Struct, frozen=True, kw_only=True):
    """Options for reading a history of registers.

    `model` None: derived from the names of the operations. `initial`: the initial value of each register; null is
    nothing, and for key-value the empty text. Unless the initial value is declared as known, a register may have held a
    value that no operation wrote. `nil`: the meaning of a read that answers null: "absent" says that nothing is there,
    "anything" says nothing at all.
    """

    model: ModelName | None = None
    initial: Json = None
    is_initial_known: bool = False
    nil: Literal["absent", "anything"] = "anything"


class Trust(Enum):
    """Use of an order of time for versions: not at all, only by rule 6 of the theory of operation, or always."""

    NONE = "not used"
    TIMED = "timed"
    GIVEN = "given"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of the order of versions. The initial state is always one.

    `commits`: the positions that the system itself reported for its transactions order their writes. `initial`: the
    value of registers before the history began, null for nothing; or, with `initial_by_first_transaction`, the writes
    of the first transaction, whatever its times and its session say.
    """

    writes_follow_reads: bool = True
    commits: bool = False
    process: Trust = Trust.TIMED
    real_time: Trust = Trust.TIMED
    initial: Json = None
    initial_by_first_transaction: bool = False

    def described(self) -> dict[str, str]:
        """Each source, and its use."""
        return {
            "initial-state": Trust.GIVEN.value,
            "commits": (Trust.GIVEN if self.commits else Trust.NONE).value,
            "writes-follow-reads": (Trust.GIVEN if self.writes_follow_reads else Trust.NONE).value,
            "process": self.process.value,
            "real-time": self.real_time.value,
        }


ORDER: Final = Order()


class Initial(Struct, frozen=True):
    """The initial state of registers, in ids of keys and values.

    A read of one of `values` reads the initial state, and a write of one resets the register to it. Transaction `op`
    (-1: none) wrote `written`, pairs of key and value, before all others: these are the initial state, too.
    """

    values: tuple[int, ...] = ()
    op: int = -1
    written: tuple[tuple[int, int], ...] = ()
    is_declared: bool = False  # If not, a register may have held a value that no operation wrote.

    def applied(self, whole: Transactions) -> Transactions:
        """The same transactions with NOTHING in place of the initial state; `op` reads it instead of writing it."""
        if not self.values and self.op < 0:
            return whole
        f = whole.f
        is_register = ~whole.is_known & ((f == READ) | (f == WRITE))
        is_empty = is_register & np.isin(whole.value, self.values)
        if self.op >= 0:
            keys, values = np.array(self.written, np.int64).reshape(-1, 2).T
            is_empty |= is_register & (Join((whole.key, whole.value), (keys, values)).first >= 0)
            is_own = np.repeat(whole.index, np.diff(whole.mop_start)) == self.op
            f = np.where(is_own & (f == WRITE), np.int8(READ), f)
        return replace(whole, f=f, value=np.where(is_empty, NOTHING, whole.value))


EMPTY: Final = Initial()


def initial_state(history: Path, order: Order, *, is_known: bool) -> Initial:
    """The declared initial state of that history: null, and what `order` declares; `is_known`: that is all.

    A first transaction that writes nothing but the declared value is the initial state as well. Raises ScenarioError if
    the first transaction is declared to be it and cannot be, HistoryError if the history is damaged.
    """
    is_undeclared = order.initial is None and not order.initial_by_first_transaction
    if is_undeclared and not footer(history / "mops.parquet").num_rows:
        return Initial(is_declared=is_known)  # Without registers nothing has to be looked up.
    dictionary = Dictionary(history)
    declared = {dictionary.identity(value) for value in (None, order.initial)}
    values = tuple(sorted(value for value in declared if value >= 0))
    if is_undeclared:
        return Initial(values, is_declared=is_known)
    first = next((part for chunk in chunks(history) if len((part := load(chunk)).index)), None)
    if first is not None and _only_writes(first):
        mops = slice(int(first.mop_start[0]), int(first.mop_start[1]))
        written = tuple(dict.fromkeys(zip(first.key[mops].tolist(), first.value[mops].tolist(), strict=True)))
        if order.initial_by_first_transaction or {value for _, value in written} <= set(values):
            return Initial(values, int(first.index[0]), written, is_declared=True)
    if order.initial_by_first_transaction:
        raise ScenarioError("the first transaction is no initial state: that one is ok, and only writes to registers")
    return Initial(values, is_declared=True)


def initial_name(order: Order) -> str:
    """What registers held at first, as sentences name it."""
    if order.initial_by_first_transaction:
        return "what the first transaction wrote"
    if order.initial is None:
        return "nothing"
    return order.initial if isinstance(order.initial, str) else json.dumps(order.initial, ensure_ascii=False)


def _only_writes(whole: Transactions) -> bool:
    """True if the first of those transactions is ok, and only writes registers."""
    f = whole.f[int(whole.mop_start[0]) : int(whole.mop_start[1])]
    return bool(whole.outcome[0] == OK and len(f) and np.all(f == WRITE))


def declared_initial(order: Order, text: str) -> Order:
    """The order with that initial state: "first", or a value as JSON. Raises ScenarioError if it is neither."""
    if text == "first":
        return msgspec.structs.replace(order, initial=None, initial_by_first_transaction=True)
    try:
        value: Json = json.loads(text)
    except ValueError:
        raise ScenarioError(
            f"--initial {text}: write the value as JSON, such as 0, or first, if the first transaction wrote it"
        ) from None
    return msgspec.structs.replace(order, initial=value, initial_by_first_transaction=False)
