"""A run of NDB as its slow oracles look at it: transactions, restarts, and what sessions of streams closed.

1. A transaction committed if it was answered ok, or if it is unclear and any of its elements was seen anywhere.
2. Its epoch is that of the answer; of an unclear one, that of its rows in a stream. Its generation follows from it.
3. After a restart of the whole cluster a transaction of an earlier generation is void if its global checkpoint is
   above the restored one, and stays so, whatever later restarts restore.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from harness.core.record import Complete, Evidence, Invoke, Json, Mark, State, StreamEvent

GCI_BITS = 32
GROUPS = (("d1", "d2"), ("d3", "d4"))
Key = int | str
Element = tuple[Key, int]  # Key and value.


@dataclass(slots=True)
class Transaction:
    """One transaction. `final` are its last elements by key; `is_seen`: something of it was."""

    index: int
    outcome: str
    appends: list[Element]
    reads: list[tuple[Key, list[int]]]
    epoch: int | None
    transid: int | None
    is_final_phase: bool
    is_seen: bool = False
    final: dict[Key, int] = field(default_factory=dict)

    @property
    def is_committed(self) -> bool:
        return self.outcome == "ok" or (self.outcome == "info" and self.is_seen)


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart of the whole cluster; number 0 is the initial start."""

    number: int
    restored: int
    first_epoch: int


@dataclass(slots=True)
class Stretch:
    """What one session closed by one watermark, and which part it followed without a break: epochs in (after, to]."""

    subscriber: str
    session: int
    after: int
    to: int
    rows: list[StreamEvent]
    began_after: int


class Observed:
    """A run's records, as the oracles look at them."""

    def __init__(self, records: Sequence[Evidence]) -> None:
        self.records = records
        self.transactions = list(_transactions(records))
        reports = {
            number(s.key): pair_of(s.value) for s in reversed(states_of(records, "restart"))
        }  # The first counts.
        self.restarts = [Restart(key, *pair) for key, pair in sorted(reports.items())]
        self.rows = states_of(records, "row")
        self.restored = states_of(records, "restored")
        self.stretches = list(_stretches(records))
        self.writer = {each: t for t in self.transactions for each in t.appends}
        self.sightings = list(self._sightings())
        for key, elements in self.sightings:
            self._see(key, elements)
        for event in records:
            if isinstance(event, StreamEvent) and event.kind == "row":
                self._deliver(event)
        self.placed = sorted(
            (t for t in self.transactions if t.is_committed and t.appends and t.epoch is not None), key=epoch_of
        )

    def is_void(self, transaction: Transaction, restart: int) -> bool:
        """Is it lost by that restart of the whole cluster, or by one before?"""
        epoch = epoch_of(transaction)
        own = self.generation(epoch)
        return any(own < each.number <= restart and epoch >> GCI_BITS > each.restored for each in self.restarts)

    def generation(self, epoch: int) -> int:
        """The number of the restart with which its generation began."""
        return max((each.number for each in self.restarts if each.first_epoch <= epoch), default=0)

    def due(self, after: int, to: int) -> list[Transaction]:
        """The committed writers with epochs in (after, to], as far as their epochs are known."""
        low, high = (bisect_right(self.placed, bound, key=epoch_of) for bound in (after, to))
        return self.placed[low:high]

    def _sightings(self) -> Iterator[tuple[Key, list[int]]]:
        """All lists that were read or dumped."""
        for transaction in self.transactions:
            yield from transaction.reads
        for state in (*self.rows, *self.restored):
            yield named(state.key), numbers(state.value)

    def _see(self, key: Key, elements: list[int]) -> None:
        for element in elements:
            if (key, element) in self.writer:
                self.writer[key, element].is_seen = True

    def _deliver(self, event: StreamEvent) -> None:
        transaction = self.writer.get((named(event.key), number(event.value)))
        if transaction is not None:
            transaction.is_seen = True
            if transaction.outcome == "info":
                transaction.epoch = event.epoch


def group_of(key: Key) -> int:
    """The node group of a key: even fragments of four belong to the first, odd ones to the second."""
    return (key if isinstance(key, int) else crc32(key.encode())) % 4 % 2


def named(key: Json) -> Key:
    assert isinstance(key, int | str)
    return key


def number(value: Json) -> int:
    assert isinstance(value, int)
    return value


def numbers(value: Json) -> list[int]:
    assert isinstance(value, list)
    return [number(each) for each in value]


def pair_of(value: Json) -> tuple[int, int]:
    first, second = numbers(value)
    return first, second


def epoch_of(transaction: Transaction) -> int:
    assert transaction.epoch is not None
    return transaction.epoch


def states_of(records: Sequence[Evidence], thing: str) -> list[State]:
    return [record for record in records if isinstance(record, State) and record.object == thing]


def _transactions(records: Sequence[Evidence]) -> Iterator[Transaction]:
    asked: dict[int, Invoke] = {}
    is_final_phase = False
    for record in records:
        match record:
            case Mark(phase="final"):
                is_final_phase = True
            case Invoke():
                asked[record.index] = record
            case Complete():
                appends = [
                    (named(mop.key), number(mop.value)) for mop in asked[record.index].mops or () if mop.f == "append"
                ]
                reads = [(named(mop.key), numbers(mop.value)) for mop in record.mops or () if mop.f == "r"]
                yield Transaction(
                    index=record.index,
                    outcome=record.outcome,
                    appends=appends,
                    reads=reads if record.outcome == "ok" else [],
                    epoch=record.epoch,
                    transid=record.txn,
                    is_final_phase=is_final_phase,
                    final=dict(appends),
                )


def _stretches(records: Sequence[Evidence]) -> Iterator[Stretch]:
    """What each watermark closed, where the session had told from where on it follows."""
    open_ones: dict[tuple[str, int], Stretch] = {}
    for record in records:
        if not isinstance(record, StreamEvent):
            continue
        who = (record.subscriber, record.session)
        current = open_ones.get(who)
        match record.kind:
            case "open":
                after = number(record.position)
                open_ones[who] = Stretch(*who, after, after, [], after)
            case "row" if current is not None:
                current.rows.append(record)
            case "watermark" if current is not None:
                to, began = number(record.position), current.began_after
                yield Stretch(*who, current.after, to, current.rows, began)
                open_ones[who] = Stretch(*who, to, to, [], began)
            case "gap" | "close":
                open_ones.pop(who, None)
            case _:
                pass
