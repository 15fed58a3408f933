"""Meaning of operations on registers: the states in which each is possible, and the state that it leaves.

A state is the JSON text of a register's value ("null": nothing yet), or a tuple of such texts for several registers
that are written together; a key-value store's is the text itself. So 1, 1.0 and true are three values.

- register: read, write
- cas-register: read, write, cas [old, new]
- mutex: acquire, release; a register that is free or held
- key-value: get, put, append, which adds its text at the end
- multi-register: transactions of reads and writes; several registers as one
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, assert_never

import msgspec

from checkers.history.registers import ModelName, Register
from harness.core.record import Json

State = str | tuple[str, ...]

OPERATIONS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "register": frozenset({"read", "write"}),
        "cas-register": frozenset({"read", "write", "cas"}),
        "mutex": frozenset({"acquire", "release"}),
        "key-value": frozenset({"get", "put", "append"}),
    }
)
NOTHING: Final = "null"
FREE, HELD = "free", "held"
_JSON: Final = msgspec.json.Encoder(order="sorted")


class Step(NamedTuple):
    """The effect of an operation.

    `needs` is the only state in which it is possible; None: any. `leads` is the state that it leaves, if that does not
    depend on the state before; None: the state stays. `more` is the part of the effect that these two cannot express.
    """

    needs: str | None = None
    leads: str | None = None
    more: "str | tuple[Access, ...] | None" = None

    @property
    def is_read(self) -> bool:
        """True if the operation certainly leaves the state as it is."""
        if isinstance(self.more, tuple):
            return not any(access.is_write for access in self.more)
        return self.more is None and (self.leads is None or self.leads == self.needs)

    @property
    def depends(self) -> bool:
        """True if the operation is impossible in some state."""
        if isinstance(self.more, tuple):
            return not all(access.is_write for access in self.more)
        return self.needs is not None


class Access(NamedTuple):
    """A read or write inside a transaction over several registers: the place of the register, and the value."""

    is_write: bool
    place: int
    value: str


class Model(Protocol):
    """The rules of one kind of register."""

    @property
    def initial(self) -> State:
        """The state before the first operation."""

    def after(self, state: State, step: Step) -> State | None:
        """The state after that step; None if it is impossible in `state`."""


class OneRegister:
    """The model of a register, or of a mutex."""

    def __init__(self, initial: str) -> None:
        self.initial: State = initial

    def after(self, state: State, step: Step) -> State | None:
        if step.needs is not None and step.needs != state:
            return None
        return state if step.leads is None else step.leads


class OneText:
    """The model of a key whose value is a text."""

    def __init__(self, initial: str) -> None:
        self.initial: State = initial

    def after(self, state: State, step: Step) -> State | None:
        if step.needs is not None and step.needs != state:
            return None
        if isinstance(step.more, str) and isinstance(state, str):
            return state + step.more
        return state if step.leads is None else step.leads


class ManyRegisters:
    """The model of registers that transactions read and write together."""

    def __init__(self, initial: tuple[str, ...]) -> None:
        self.initial: State = initial

    def after(self, state: State, step: Step) -> State | None:
        held = list(state)
        for access in step.more or ():
            assert isinstance(access, Access)
            if access.is_write:
                held[access.place] = access.value
            elif held[access.place] != access.value:
                return None
        return tuple(held)


def model_of(register: Register, name: ModelName, *, count: int = 1) -> Model:
    """The model of that name; `count` is the number of registers of a multi-register."""
    initial = json_of(register.initial)
    match name:
        case "register" | "cas-register":
            return OneRegister(initial)
        case "mutex":
            return OneRegister(FREE)
        case "key-value":
            return OneText(register.initial if isinstance(register.initial, str) else "")
        case "multi-register":
            return ManyRegisters((initial,) * count)
        case _:
            assert_never(name)


def named(operations: Sequence[str]) -> ModelName | None:
    """The smallest model that has all those operations; None if there is none, or if no operation observes anything."""
    names = frozenset(operations)
    if names <= OPERATIONS["mutex"] and "acquire" in names:
        return "mutex"
    if names <= OPERATIONS["key-value"] and "get" in names:
        return "key-value"
    if not names <= OPERATIONS["cas-register"] or not names & {"write", "cas"}:
        return None
    return "cas-register" if "cas" in names else "register"


def json_of(value: Json) -> str:
    """The value as a state."""
    return _JSON.encode(value).decode()
