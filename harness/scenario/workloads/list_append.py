"""Transactions of reads and appends on lists: the workload whose histories reveal most about isolation.

Every element is appended once, so a list that was read shows which appends came before it, and in which order. Keys
are replaced by new ones after a drawn number of appends, which keeps lists short; a few keys get most of the traffic,
so that transactions conflict. Many transactions read one key and append to two others: such a dependency shows at once
when half of a transaction, or its past, is lost. `populations` defines the kinds of transactions; they share the keys.
Source: Kingsbury and Alvaro, "Elle", VLDB 2020, section 3.
"""

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import Protocol

import msgspec

from harness.core.generators.combinators import Answer, Event, Stagger, TimeLimit, all_planned, planned
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator
from harness.core.generators.until_ok import FINAL_PAUSE_NS, EachUntilOk
from harness.core.record import MicroOp
from harness.core.seams import Invocation, Workload
from harness.scenario.workloads.options import WorkloadOptions
from harness.scenario.workloads.populations import ORDERLY, Drawn, Mix, Population, Step


def list_append(name: str, mix: Mix, options: WorkloadOptions, *, is_single: bool = False) -> Workload:
    """List-append at an open loop of `rate_per_s`. At the end each planned key is read until that succeeds."""
    assert sum(percent for percent, _ in mix) == 100, name
    source = Transactions(
        mix=mix,
        max_length=options.max_txn_length,
        max_appends=options.max_appends_per_key,
        slots=(),
        next_key=0,
        dice=Dice.named(options.seed, "workload"),
    ).opened(options.key_count)
    paced = Stagger(source, options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    load = TimeLimit(paced, options.duration_ns)
    return Workload(
        name=name,
        load=load,
        final=FinalReads(load),
        types=("txn",),
        checks=("list-append",),
        is_single=is_single,
    )


class Slot(msgspec.Struct, frozen=True):
    """A key in use: its next element, and the element after which it is retired."""

    key: int
    element: int
    last: int


class Transactions(msgspec.Struct, frozen=True, eq=False):
    """An endless source of transactions. The first slots are the busiest; keys are numbered from 0 in order of use.

    A source equals only itself, so that what follows from it is remembered (`next_of`).
    """

    mix: Mix
    max_length: int
    max_appends: int
    slots: tuple[Slot, ...]
    next_key: int
    dice: Dice

    def opened(self, count: int) -> "Transactions":
        """The same source with `count` slots, each with a new key."""
        drawn, dice = self.dice.each_below([self._spread()] * count)
        slots = tuple(self._slot(self.next_key + place, number) for place, number in enumerate(drawn))
        return self._with(slots, self.next_key + count, dice)

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        mops, after = next_of(self)
        return planned(context, Invocation(f="txn", mops=mops)), after

    def update(self, context: Context, event: Event) -> Generator:
        return self

    def transaction(self) -> "tuple[tuple[MicroOp, ...], Transactions]":
        """The next transaction, and the source after it. Drawn for each place: slot, coin, limit of a new key."""
        weights = _running_weights(len(self.slots))
        count = max(self.max_length, *[population.places for _, population in self.mix])
        drawn, dice = self.dice.each_below((100, 100, self.max_length, *(weights[-1], 2, self._spread()) * count))
        population = self._population(drawn[0])
        steps = population.steps(
            Drawn(
                percent=drawn[1],
                length=1 + drawn[2],
                longest=self.max_length,
                places=[bisect_right(weights, number) for number in drawn[3::3]],
                coins=drawn[4::3],
                keys=[slot.key for slot in self.slots],
            )
        )
        slots, next_key = self._with_room(steps, drawn[5::3])
        if population.is_orderly and drawn[1] % ORDERLY:
            steps.sort(key=lambda step: slots[step.place].key)
        mops = _mops(steps, population, slots)
        return mops, self._with(tuple(slots), next_key, dice)

    def _population(self, percent: int) -> Population:
        for share, population in self.mix[:-1]:
            if percent < share:
                return population
            percent -= share
        return self.mix[-1][1]

    def _with_room(self, steps: list[Step], limits: list[int]) -> tuple[list[Slot], int]:
        """The slots, with a new key where the transaction would append beyond a key's last element; and the next key.

        So a transaction that appends to a place twice appends to one key twice.
        """
        slots, next_key = list(self.slots), self.next_key
        appends: dict[int, int] = {}
        for place, is_append in steps:
            if is_append:
                appends[place] = appends.get(place, 0) + 1
        for (place, count), limit in zip(appends.items(), limits, strict=False):
            if slots[place].element + count - 1 > slots[place].last:
                slots[place] = self._slot(next_key, limit)
                next_key += 1
        return slots, next_key

    def _slot(self, key: int, number: int) -> Slot:
        return Slot(key, 1, self.max_appends - number)

    def _spread(self) -> int:
        """The spread of key lifetimes: from a quarter of the most appends up to all of them."""
        return self.max_appends - self.max_appends // 4 + 1

    def _with(self, slots: tuple[Slot, ...], next_key: int, dice: Dice) -> "Transactions":
        return Transactions(self.mix, self.max_length, self.max_appends, slots, next_key, dice)


class Source(Protocol):
    """A source of transactions that depend on nothing but the source. It equals only itself."""

    def transaction(self) -> tuple[tuple[MicroOp, ...], Generator]:
        """The next transaction, and the source after it."""


@lru_cache(maxsize=8_192)  # A minute's load: some 10 MB.
def next_of(source: Source) -> tuple[tuple[MicroOp, ...], Generator]:
    """The source's next transaction and what follows. An interpreter asks twice for most, and final reads once more."""
    return source.transaction()


class FinalReads(msgspec.Struct, frozen=True):
    """Reads of every key that `load` uses if it is never late; keys that it did not reach are read as empty.

    The load's operations do not depend on events, so they are gone through again, once, at the first read.
    """

    load: Generator

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        reads = tuple(Invocation(f="txn", mops=(MicroOp("r", key),)) for key in range(planned_key_count(self.load)))
        return EachUntilOk(reads, FINAL_PAUSE_NS).op(context)

    def update(self, context: Context, event: Event) -> Generator:
        return self


def planned_key_count(load: Generator) -> int:
    """The number of keys that a list-append load uses if a thread is always free. The keys are 0, 1, 2, ..."""
    keys = (mop.key for each in all_planned(load) for mop in each.mops or () if isinstance(mop.key, int))
    return max(keys, default=-1) + 1


def _mops(steps: list[Step], population: Population, slots: list[Slot]) -> tuple[MicroOp, ...]:
    """The steps as micro-operations; `slots` advance to the next elements."""
    appended = {step.place for step in steps if step.is_append}
    mops = []
    for place, is_append in steps:
        slot = slots[place]
        if is_append:
            mops.append(MicroOp("append", slot.key, slot.element))
            slots[place] = Slot(slot.key, slot.element + 1, slot.last)
        elif population.lock == "locked":
            mops.append(MicroOp("r", slot.key, lock="exclusive" if place in appended else "shared"))
        else:
            mops.append(MicroOp("r", slot.key, lock=population.lock))
    return tuple(mops)


@lru_cache(maxsize=64)
def _running_weights(count: int) -> tuple[int, ...]:
    """Running sums of weights of about 1, 1/2, 1/3, ...: Zipf's law, in integers."""
    return tuple(accumulate(5040 // rank for rank in range(1, count + 1)))
