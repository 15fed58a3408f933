"""The protocol of checks, `check(history, context) -> Judgement`, and `Check`, a row of the table of checks.

A module of checks exports its rows as `CHECKS`, and `checkers/catalogue.py` names the module. All else follows from
the row: which histories get the check, which of its anomalies a promise can forbid, and how a history is cut for it.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path

from msgspec import Struct, field

from checkers.columns.facts import Facts
from checkers.engine.datasets import Engine
from checkers.history.names import PLAIN, Names
from checkers.history.registers import EMPTY, ORDER, Initial, Order, Register
from checkers.history.stretches import Stretches
from checkers.words.anomalies import Declared
from harness.core.promises import Bounds, Excuses, Promise, StreamContract
from harness.core.verdict import Judgement


class Context(Struct, frozen=True, kw_only=True):
    """Everything a check may need besides the history: the engine for its kernels, and the declarations.

    `prohibited` holds the anomalies of transactions that count: for each check a set for each promise. `whole` is the
    folder of the whole history if a check judges a part: only that folder has the streams and the dictionary. With
    `stretches` the history has several generations at once: a cycle in it is no finding, but leaves the check
    undecided, and witnesses count once for each generation. With `is_locked` of all reads only those under a lock
    count. `facts` are those that several checks need; their names begin with the folder that they are of.
    """

    engine: Engine
    name: Names = PLAIN
    promises: Sequence[Promise] = ()
    prohibited: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)
    bounds: Bounds = Bounds()
    contract: StreamContract | None = None
    register: Register = Register()
    order: Order = ORDER  # The sources of the version order of registers in transactions.
    initial: Initial = EMPTY  # The initial state of registers in transactions.
    excuses: Excuses = field(default_factory=dict)
    whole: Path | None = None
    stretches: Stretches | None = None
    is_locked: bool = False
    apt: frozenset[str] = frozenset()  # Checks of the workload that the operations resemble.
    facts: Facts = field(default_factory=Facts)

    def home(self, history: Path) -> Path:
        """The folder of the whole history that `history` is, or is a part of."""
        return self.whole or history


Judge = Callable[[Path, Context], Judgement]


class When(Enum):
    """The histories that get a check."""

    ALWAYS = "every one"
    NAMED = "one with a promise that names the check; or, if it has the check's operations, anything it looks for"
    NEEDED = "one with a promise that names the check, or anything that it looks for"


class Check(Struct, frozen=True, kw_only=True):
    """A check as data. `anomalies` are those that it may report.

    `needs_contract`: only histories with a stream contract get it. `by_generation`: it judges the operations between
    two restarts of the whole cluster by themselves; with `is_locked` it sees only their reads under a lock;
    `of_stretches` says that it can judge many generations together, as one history of stretches, and counts the
    witnesses of each. `has_kernels`: it runs on the engine, so for a small history it is one task; in other processes
    those of the same `family` are one task together, as they have most of their work in common.
    """

    name: str
    anomalies: Declared
    judge: Judge
    when: When = When.NEEDED
    needs_contract: bool = False
    by_generation: bool = False
    of_stretches: bool = False
    is_locked: bool = False
    has_kernels: bool = False
    family: str | None = None

    def is_wanted(self, context: Context) -> bool:
        """True if a history gets the check, given the promises and the stream contract of `context`."""
        if self.needs_contract and context.contract is None:
            return False
        if self.when is When.ALWAYS or any(promise.check == self.name for promise in context.promises):
            return True
        forbidden = (name for promise in context.promises if promise.check is None for name in promise.forbids)
        is_apt = self.when is When.NEEDED or self.name in context.apt
        return is_apt and not set(self.anomalies).isdisjoint(forbidden)
