"""Rows that are inserted, updated and deleted all the time: for streams with before-images, and for merged ones.

A row is the list of its versions, so that a read shows their order: an element above zero inserts or updates the row,
one below zero deletes it. To delete a row that is not there fails. A few rows get most of the traffic, so that one
epoch often has several changes of a row; new rows take their place after a while. No transaction changes a row twice. A
quarter of the transactions read a row that the one before them changed. At the end each row is read until that
succeeds.
"""

from typing import Final

import msgspec

from harness.core.generators.combinators import Answer, Event, Stagger, TimeLimit, all_planned, planned
from harness.core.generators.dice import Dice
from harness.core.generators.generator import PENDING, Context, Generator
from harness.core.generators.until_ok import FINAL_PAUSE_NS, EachUntilOk
from harness.core.record import MicroOp
from harness.core.seams import Invocation, Workload
from harness.scenario.workloads.options import WorkloadOptions

NAME: Final = "row-churn"
MOST: Final = 3  # Rows of one transaction.
LIFE: Final = 120  # Transactions after which the rows are replaced.
READING: Final = 25  # Percent.
DELETING: Final = 40  # Percent of the changes.


class Changes(msgspec.Struct, frozen=True):
    """An endless source of transactions on `rows` rows at a time; `last` is a row of the one before."""

    rows: int
    dice: Dice
    number: int = 0
    last: str = "row0"

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        drawn, dice = self.dice.each_below((MOST, 100, *[100] * MOST, *[self.rows] * MOST))
        count, reading, *rest = drawn
        first = self.number // LIFE * self.rows
        places = sorted({place * place // self.rows for place in rest[MOST : MOST + count + 1]})  # No deadlocks.
        keys = [f"row{first + place}" for place in places]
        mops = tuple(
            MicroOp("append", key, -value if deleting < DELETING else value)
            for value, (key, deleting) in enumerate(zip(keys, rest, strict=False), self.number * MOST + 1)
        )
        if reading < READING:
            mops = (MicroOp("r", self.last, lock="committed"), *mops)
        after = Changes(self.rows, dice, self.number + 1, keys[-1])
        return planned(context, Invocation(f="txn", mops=mops)), after

    def update(self, context: Context, event: Event) -> Generator:
        return self


class FinalReads(msgspec.Struct, frozen=True):
    """Reads of every row that `load` changes if it is never late; those that it did not reach are read as empty."""

    load: Generator

    def op(self, context: Context) -> Answer:
        if not context.free:
            return PENDING, self
        keys = dict.fromkeys(str(mop.key) for each in all_planned(self.load) for mop in each.mops or ())
        reads = tuple(Invocation(f="txn", mops=(MicroOp("r", key),)) for key in keys)
        return EachUntilOk(reads, FINAL_PAUSE_NS).op(context)

    def update(self, context: Context, event: Event) -> Generator:
        return self


def row_churn(options: WorkloadOptions) -> Workload:
    """The workload as an open loop of `rate_per_s`."""
    source = Changes(options.key_count, Dice.named(options.seed, f"workload-{NAME}"))
    paced = Stagger(source, options.mean_gap_ns, Dice.named(options.seed, "workload-times"))
    load = TimeLimit(paced, options.duration_ns)
    return Workload(name=NAME, load=load, final=FinalReads(load), types=("txn",), checks=("list-append",))
