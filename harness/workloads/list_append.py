"""Transactions of reads and appends on lists: the workload whose histories say most about isolation.

Every element is appended once, so a list that was read tells which appends came before it, and in which order. Keys
give way to new ones after a drawn number of appends, which keeps lists short; a few keys get most of the traffic, so
that transactions meet. Many transactions read one key and append to two others: such a dependency shows at once when
half of a transaction, or its past, is lost. Source: Kingsbury and Alvaro, "Elle", VLDB 2020, section 3.
"""

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

import msgspec

from harness.core.combinators import Answer, Event, Stagger, TimeLimit, planned
from harness.core.dice import Dice
from harness.core.generator import PENDING, Context, Generator, Planned
from harness.core.record import MicroOp
from harness.core.seams import Invocation, Workload
from harness.core.until_ok import EachUntilOk
from harness.workloads.options import WorkloadOptions

DEPENDENT_PERCENT = 35  # Transactions that read one key and append to up to two others.
READ_ONLY_PERCENT = 15
FINAL_ATTEMPTS = 240
FINAL_PAUSE_NS = 250_000_000  # With the attempts a minute: the settling bound of any cluster ends the wait before.


def list_append(options: WorkloadOptions) -> Workload:
    """List-append at an open loop of `rate_per_s`; at the end each key that was planned is read until that succeeds."""
    source = Transactions(
        max_length=options.max_txn_length,
        max_appends=options.max_appends_per_key,
        slots=(),
        next_key=0,
        dice=Dice.named(options.seed, "workload"),
    ).opened(options.key_count)
    paced = Stagger(source, options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    load = TimeLimit(paced, options.duration_ns)
    return Workload(name="list-append", load=load, final=FinalReads(load), types=("txn",), checks=("list-append",))


class Slot(msgspec.Struct, frozen=True):
    """A key in use: its next element, and the element after which it is retired."""

    key: int
    element: int
    last: int


class Transactions(msgspec.Struct, frozen=True):
    """An endless source of transactions. The first slots are the busiest; keys are numbered from 0 as they come up."""

    max_length: int
    max_appends: int
    slots: tuple[Slot, ...]
    next_key: int
    dice: Dice

    def opened(self, count: int) -> "Transactions":
        """The same source with `count` slots, each with a new key."""
        drawn, dice = self.dice.each_below([self._spread()] * count)
        slots = tuple(self._slot(self.next_key + place, number) for place, number in enumerate(drawn))
        return Transactions(self.max_length, self.max_appends, slots, self.next_key + count, dice)

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        mops, after = self._transaction()
        return planned(context, Invocation(f="txn", mops=mops)), after

    def update(self, context: Context, event: Event) -> Generator:
        return self

    def _transaction(self) -> "tuple[tuple[MicroOp, ...], Transactions]":
        """The next transaction, and the source after it. For each place: slot, coin, limit."""
        weights = _running_weights(len(self.slots))
        bounds = (100, self.max_length, *(weights[-1], 2, self._spread()) * self.max_length)
        drawn, dice = self.dice.each_below(bounds)
        places = [bisect_right(weights, number) for number in drawn[2::3]]
        forms = self._forms(drawn[0], 1 + drawn[1], drawn[3::3])
        if drawn[0] < DEPENDENT_PERCENT:
            places = _different(places[: len(forms)], len(self.slots))
        slots, next_key = list(self.slots), self.next_key
        mops = []
        for nth, is_append in enumerate(forms):
            place = places[nth]
            slot = slots[place]
            if not is_append:
                mops.append(MicroOp("r", slot.key))
                continue
            mops.append(MicroOp("append", slot.key, slot.element))
            if slot.element < slot.last:
                slots[place] = Slot(slot.key, slot.element + 1, slot.last)
            else:
                slots[place] = self._slot(next_key, drawn[4 + 3 * nth])
                next_key += 1
        return tuple(mops), Transactions(self.max_length, self.max_appends, tuple(slots), next_key, dice)

    def _forms(self, kind: int, length: int, coins: list[int]) -> list[int]:
        """For each micro-operation of a transaction, is it an append?"""
        if kind < DEPENDENT_PERCENT:
            return [0, 1, 1][: self.max_length]
        if kind < DEPENDENT_PERCENT + READ_ONLY_PERCENT:
            return [0] * length
        return coins[:length]

    def _slot(self, key: int, number: int) -> Slot:
        return Slot(key, 1, self.max_appends - number)

    def _spread(self) -> int:
        """Keys live for a quarter of the most appends, up to all of them."""
        return self.max_appends - self.max_appends // 4 + 1


class FinalReads(msgspec.Struct, frozen=True):
    """Reads of every key that `load` would use were it never late; keys that it did not come to are read as empty.

    The load's operations do not depend on what happens, so they can be known without having seen them. They are gone
    through once, when the first read is asked for: about 10 microseconds for each operation.
    """

    load: Generator

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        reads = tuple(Invocation(f="txn", mops=(MicroOp("r", key),)) for key in range(planned_key_count(self.load)))
        return EachUntilOk(reads, FINAL_ATTEMPTS, FINAL_PAUSE_NS).op(context)

    def update(self, context: Context, event: Event) -> Generator:
        return self


def planned_key_count(load: Generator) -> int:
    """How many keys that list-append load comes to use, if a thread is always free: they are 0, 1, ... below it."""
    idle = Context(time_ns=0, free=(0,), processes=(0,))
    highest = -1
    answer = load.op(idle)
    while answer is not None and isinstance(answer[0], Planned):
        highest = max(highest, *[mop.key for mop in answer[0].mops or () if isinstance(mop.key, int)])
        answer = answer[1].op(idle)
    return highest + 1


def _different(places: list[int], count: int) -> list[int]:
    """The same places below `count`, each that occurred before moved up to the next free one, if there is any."""
    chosen: list[int] = []
    for place in places:
        free = ((place + step) % count for step in range(count))
        chosen.append(next((each for each in free if each not in chosen), place))
    return chosen


@lru_cache(maxsize=64)
def _running_weights(count: int) -> tuple[int, ...]:
    """Running sums of weights about as 1, 1/2, 1/3, ...: Zipf's law, in integers."""
    return tuple(accumulate(5040 // rank for rank in range(1, count + 1)))
