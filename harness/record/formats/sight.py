"""Recognizes the workload of a foreign history from its operations: a table of workloads, each with its promises.

Only histories without transactions are examined. A workload is recognized by the names of all operations and the
results of successful reads; if two workloads look the same, the one with the weaker promise is chosen.
"""

from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from checkers.columns.files import opened, read_columns, reading
from checkers.history.registers import Register
from checkers.invariants import bank, causal, counter, forks, ids, logs, monotonic, queues, sets
from checkers.invariants.log_acts import is_steps
from checkers.invariants.operations import collection, keyed, pairs
from checkers.linearizability.check import ANOMALIES as NOT_LINEARIZABLE
from checkers.linearizability.deeds import form_of
from checkers.words.checks import REGISTERS as LINEARIZABILITY
from harness.core.columns import OK
from harness.core.promises import Promise
from harness.core.record import Json

SOURCE: Final = "the shape of the operations"
READS: Final = ("read", "poll", "txn")  # In logs `txn` may poll, and is then no transaction over lists.
_READS_SUFFICE: Final = (bank.CHECKER, forks.LONG_FORK)
SAMPLE: Final = 1_000  # The number of reads that are examined.


class Shape(NamedTuple):
    """The names of all operations, and the results of the first successful reads."""

    names: frozenset[str]
    reads: tuple[Json, ...]

    def is_of(self, kind: "Kind") -> bool:
        """True if there are operations of the kind's names, and no others, and its test holds.

        Reads alone fit many kinds, and break none, but those that compare reads with each other.
        """
        is_known = bool(self.names) and self.names <= frozenset(kind.names)
        has_others = kind.check in _READS_SUFFICE or bool(self.names - {"read"})
        return is_known and has_others and kind.is_like(self)

    def all_reads(self, is_so: Callable[[Json], bool]) -> bool:
        """True if there are reads, and `is_so` is true for all of them."""
        return bool(self.reads) and all(map(is_so, self.reads))


class Kind(NamedTuple):
    """A workload: the names of its operations, a further test for its histories, and what its promise forbids."""

    names: tuple[str, ...]
    is_like: Callable[[Shape], bool]
    check: str
    forbids: tuple[str, ...]
    text: str


def sighted(history: Path) -> tuple[Promise, ...]:
    """The promises of the workload that this history resembles; empty if there is none, or if it has transactions.

    Raises HistoryError if the file is damaged.
    """
    shape = _shape(history)
    if shape is None:
        return ()
    registers = form_of(history, Register())
    kind = next((kind for kind in KINDS if shape.is_of(kind)), None)
    if registers is not None and (kind is None or registers.is_keyed):  # Histories that always name keys read no lists.
        kind = REGISTERS
    return () if kind is None else (_promise(kind),)


def registers(history: Path) -> tuple[Promise, ...]:
    """The promise that each register is linearizable; empty if the history is not about registers alone.

    Raises HistoryError if the file is damaged.
    """
    return () if form_of(history, Register()) is None else (_promise(REGISTERS),)


def nearest(names: frozenset[str]) -> Kind:
    """The known workload whose operations have the most names in common with these, or else the most similar ones."""

    def likeness(kind: Kind) -> tuple[int, float]:
        similar = (SequenceMatcher(None, a, b).ratio() for a in names for b in kind.names)
        return len(names & set(kind.names)), max(similar, default=0.0)

    return max((REGISTERS, *KINDS), key=likeness)


def _promise(kind: Kind) -> Promise:
    return Promise(id=kind.check.upper(), text=kind.text, source=SOURCE, forbids=kind.forbids, check=kind.check)


def _shape(history: Path) -> Shape | None:
    path = history / "ops.parquet"
    with reading(path, msgspec.DecodeError, RecursionError):
        table = read_columns(path, ["f", "is_txn", "outcome"])
        if table.num_rows == 0 or pc.any(table["is_txn"]).as_py():
            return None
        names = frozenset(table["f"].unique().to_pylist())
        return Shape(names, tuple(_reads(path)))


def _reads(path: Path) -> Iterator[Json]:
    """The values of the first successful reads that returned something."""
    left = SAMPLE
    with opened(path) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=["f", "outcome", "value"])
            is_read = pc.and_(pc.is_in(rows["f"], pa.array(READS)), pc.equal(rows["outcome"], OK))
            values = rows["value"].filter(is_read).drop_null()[:left]
            left -= len(values)
            yield from map(msgspec.json.decode, values.to_pylist())
            if not left:
                return


def _is_steps(value: Json) -> bool:
    steps = collection(value) or []
    is_step = [isinstance(step, list) and len(step) == 3 and step[0] in {"r", ":r"} for step in steps]
    return bool(is_step) and all(is_step)


def _is_number(value: Json) -> bool:
    return type(value) is int


def _is_members(value: Json) -> bool:
    return collection(value) is not None and not _is_steps(value)


def _is_keyed(value: Json) -> bool:
    return keyed(value) is not None


def _is_sight(value: Json) -> bool:
    """True for a number, or a number with its key: the reads of a monotonic value."""
    return _is_number(value) or (isinstance(value, list) and len(value) == 2 and _is_number(value[1]))


REGISTERS: Final = Kind(
    ("read", "write", "cas", "get", "put", "append", "acquire", "release"),
    lambda _: True,
    LINEARIZABILITY,
    tuple(NOT_LINEARIZABLE),
    "Each register is linearizable: one order of its operations explains every answer.",
)
KINDS: Final = (
    Kind(
        ("read", "transfer"),
        lambda shape: shape.all_reads(lambda value: pairs(value) is not None),
        bank.CHECKER,
        tuple(bank.ANOMALIES),
        "Every read shows the accounts of the bank, none below zero, and the same sum.",
    ),
    Kind(
        ("add", "read"),
        lambda shape: shape.all_reads(_is_number),
        counter.CHECKER,
        tuple(counter.ANOMALIES),
        "A counter shows what had been added when it was read.",
    ),
    Kind(
        ("add", "read"),
        lambda shape: shape.all_reads(_is_members),
        sets.SET_FULL,
        (sets.LOST, sets.UNEXPECTED, sets.TWICE),
        "An added element stays in the set, once, and the set contains no other elements.",
    ),
    Kind(
        ("enqueue", "dequeue", "drain"),
        lambda shape: "drain" in shape.names,
        queues.TOTAL,
        (queues.UNEXPECTED, queues.LOST),
        "Each element put into a queue comes out, and no other element does.",
    ),
    Kind(
        ("enqueue", "dequeue"),
        lambda _: True,
        queues.QUEUE,
        (queues.UNEXPECTED,),
        "Only elements that were put into a queue come out.",
    ),
    Kind(
        ("send", "poll", "txn", "assign"),
        lambda shape: shape.all_reads(is_steps),
        logs.CHECKER,
        logs.IN_ORDER,
        "A log holds each message once, at one offset, and a consumer polls all of them in that order.",
    ),
    Kind(
        ("send", "poll", "txn", "assign", "subscribe"),
        lambda shape: shape.all_reads(is_steps),
        logs.CHECKER,
        logs.PROMISED,
        "A log holds each message once, at one offset, and each poll shows its messages in that order.",
    ),
    Kind(
        ("generate",),
        lambda _: True,
        ids.CHECKER,
        tuple(ids.ANOMALIES),
        "Every id that is generated is unique.",
    ),
    Kind(
        ("read", "write"),
        lambda shape: shape.all_reads(_is_steps),
        forks.LONG_FORK,
        tuple(forks.FORK_ANOMALIES),
        "For two reads of the same keys, one sees everything that the other sees.",
    ),
    Kind(
        ("insert", "read"),
        lambda shape: "insert" in shape.names,
        forks.WRITE_SKEW,
        tuple(forks.SKEW_ANOMALIES),
        "At most one of two inserts for one key succeeds if each requires that the key is absent.",
    ),
    Kind(
        ("inc", "read"),
        lambda shape: "inc" in shape.names and shape.all_reads(_is_sight),
        monotonic.CHECKER,
        tuple(monotonic.ANOMALIES),
        "The values that a process reads never go back.",
    ),
    Kind(
        ("read", "write"),
        lambda shape: shape.all_reads(_is_keyed),
        causal.SEQUENTIAL,
        tuple(causal.SEQUENTIAL_ANOMALIES),
        "A read that shows a client's write shows all that this client had written before.",
    ),
    Kind(
        ("read", "write"),
        lambda shape: shape.all_reads(_is_members),
        causal.CAUSAL,
        tuple(causal.CAUSAL_ANOMALIES),
        "A read that shows a write shows all that had been written before it began.",
    ),
)
KNOWN: Final = tuple(sorted({"txn"}.union(*(kind.names for kind in (REGISTERS, *KINDS)))))
